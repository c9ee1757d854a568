"""An env's part of a pool: what it saves at new maxima, and that its state goes on."""

from contextlib import closing

from game_rl.config.pool_config import PoolConfig
from game_rl.envs.episode_starts import PoolBeginning, pool_draw
from game_rl.envs.game_boy_env import EnvState, GameBoyEnv
from game_rl.episodes.button_log import BEGAN_IN_POOL, EPISODE_LOG, EpisodeNotes
from game_rl.pool.pool_watch import FoundState, PoolWatch, hand_pool, take_found
from tests.envs.example import fake_env

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


def test_the_log_lists_an_episode_of_a_pool_as_one_that_cannot_be_played_again() -> None:
    with closing(env_with_pool()) as env:
        begin_in_pool(env)
        is_over = False
        info: dict[str, object] = {}
        while not is_over:
            *_, terminated, truncated, info = env.step(HURT)
            is_over = terminated or truncated
        log = info[EPISODE_LOG]
        assert (log.start_state, log.fault) == ("(pool)", BEGAN_IN_POOL)  # type: ignore[attr-defined]
