"""An env's part of a pool: what it saves at new maxima, and that its state goes on."""

from contextlib import closing
from typing import Any

import numpy as np
import pytest

from game_rl.config.pool_config import PoolConfig
from game_rl.config.schema import EnvConfig
from game_rl.envs.episode_starts import PoolBeginning, pool_draw, pool_values
from game_rl.envs.game_boy_env import EnvState, GameBoyEnv
from game_rl.episodes.button_log import EPISODE_LOG, EpisodeNotes, LoggedPlay
from game_rl.errors import UsageError
from game_rl.pool.pool_watch import FoundState, PoolWatch, hand_pool, take_found
from tests.envs.example import fake_env, fake_game

RIGHT = 2
LEFT = 1
HURT = 3
POOL = PoolConfig.model_validate({"save_on": {"new_maximum": "x"}})


def env_with_pool() -> GameBoyEnv:
    return fake_env(trackers=[PoolWatch.of, EpisodeNotes.of], pool=POOL)


def test_a_new_maximum_of_an_episode_is_saved_unless_a_higher_one_is_known() -> None:
    with closing(env_with_pool()) as env:
        hand_pool(env, None, (), None)
        plain: list[tuple[int, int, float]] = []
        highest = -1
        for episode, actions in enumerate(([RIGHT, LEFT, RIGHT, RIGHT, RIGHT], [RIGHT] * 5)):
            env.reset(seed=episode, options={"start_state": "level_1"})
            best = env.read_variables()["x"]
            for timestep, action in enumerate(actions, 1):
                env.step(action)
                x = env.read_variables()["x"]
                assert isinstance(x, int)
                assert isinstance(best, int)
                if x > best:
                    best = x
                    if x >= highest:
                        highest = x
                        plain.append((x, timestep, sum(env.reward_terms.values())))
        found = take_found(env)
        assert [(each.value, each.timesteps, each.reward) for each in found] == plain
        assert len(found) > 3
        assert {each.start_state for each in found} == {"level_1"}
        assert take_found(env) == ()
        for each in found:
            env.emulator.load_state(each.state)
            assert env.read_variables()["x"] == each.value
        hand_pool(env, None, (), highest + 1)
        env.reset(options={"start_state": "level_1"})
        for _ in range(5):
            env.step(RIGHT)
        assert take_found(env) == ()


def begin_in_pool(env: GameBoyEnv) -> None:
    env.reset(seed=0, options={"start_state": "level_1"})
    env.step(RIGHT)
    state = PoolBeginning(4, env.emulator.save_state(), "level_1", 2.5, 30)
    assert hand_pool(env, pool_draw(1.0, (4,), (1,)), (), None) == (4,)
    assert hand_pool(env, pool_draw(1.0, (4,), (1,)), [state], None) == ()
    env.reset()


def test_a_way_goes_on_from_the_state_in_which_the_episode_began() -> None:
    """Also in an env that takes over in the middle of it."""
    with closing(env_with_pool()) as env, closing(env_with_pool()) as other:
        begin_in_pool(env)
        take_found(env)
        env.step(RIGHT)
        other.load_state(EnvState.model_validate_json(env.save_state().model_dump_json()))
        found: list[tuple[FoundState, ...]] = []
        for each in (env, other):
            each.step(RIGHT)
            found.append(take_found(each))
        assert found[0] == found[1]
        assert [each.timesteps for each in found[0]] == [31, 32]
        last = found[0][-1]
        assert last.reward == 2.5 + sum(env.reward_terms.values())


def test_variables_are_written_where_an_episode_begins_in_the_pool_and_nowhere_else() -> None:
    pool = POOL.model_copy(update={"write": {"health": 77}})
    with closing(fake_env(trackers=[PoolWatch.of, EpisodeNotes.of], pool=pool)) as env:
        begin_in_pool(env)
        assert env.read_variables()["health"] == 77
        terms = dict(env.reward_terms)
        is_over = False
        info: dict[str, Any] = {}
        while not is_over:
            _, _, terminated, truncated, info = env.step(np.int64(HURT))
            is_over = terminated or truncated
        assert terms["hurt"] == 0.0  # the beginning is what it is after writing
        hurt = env.reward_terms["hurt"]
        with closing(fake_env(pool=pool)) as again:
            play = LoggedPlay(again, info[EPISODE_LOG])
            play.begin()
            assert again.read_variables()["health"] == 77
            assert len(list(play.steps())) == info[EPISODE_LOG].timesteps
            assert again.reward_terms["hurt"] == hurt
        env.reset(options={"start_state": "level_1"})
        assert env.read_variables()["health"] != 77


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ({"helth": 1}, "env.pool.write: fake has no variable in memory helth; did you mean health"),
        ({"health": 256}, "env.pool.write.health: "),
    ],
)
def test_a_variable_that_cannot_be_written_is_named(written: dict[str, int], fault: str) -> None:
    pool = POOL.model_copy(update={"write": written})
    with pytest.raises(UsageError, match=fault):
        pool_values(fake_game(), EnvConfig(pool=pool))


@pytest.mark.parametrize("is_saved", [False, True])
def test_an_episode_that_began_in_a_pool_is_played_again_from_its_log(is_saved: bool) -> None:
    """Also if the pool has dropped its state, and if a checkpoint lay in it."""
    with closing(env_with_pool()) as env, closing(env_with_pool()) as other:
        begin_in_pool(env)
        seen: list[object] = []
        if is_saved:
            other.load_state(EnvState.model_validate_json(env.save_state().model_dump_json()))
        plays = other if is_saved else env
        hand_pool(plays, None, (), None)
        is_over = False
        info: dict[str, Any] = {}
        while not is_over:
            action = LEFT if len(seen) == 1 else HURT
            observation, _, terminated, truncated, info = plays.step(np.int64(action))
            seen.append(observation.tobytes())
            is_over = terminated or truncated
        log = info[EPISODE_LOG]
        assert (log.start_state, log.fault, log.beginning.number) == ("(pool)", "", 4)
        with closing(fake_env(pool=POOL)) as again:
            play = LoggedPlay(again, log)
            play.begin()
            assert [step.observation.tobytes() for step in play.steps()] == seen
            assert (play.game_reward, play.is_over) == (log.game_reward, True)
