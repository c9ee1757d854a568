"""An episode limit that grows with a variable, beside the formula computed by hand."""

from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.config.schema import EnvConfig, GrowingLimit
from game_rl.envs.episode_ends import check_episode_limit
from game_rl.envs.game_boy_env import EnvState, GameBoyEnv
from game_rl.envs.make_env import check_env_config
from game_rl.errors import UsageError
from game_rl.games.definition import load_game
from tests.emulator import fake_emulator as fake
from tests.envs.example import FAKE_GAME_YAML, fake_env, fake_game

LEFT, RIGHT = 1, 2
START_X = 80


def growing(start: int, add: int, most: int, per: str = "x") -> GrowingLimit:
    return GrowingLimit(start=start, add=add, per=per, most=most)


def limited(limit: GrowingLimit | int | None, **settings: Any) -> GameBoyEnv:
    return fake_env(max_episode_timesteps=limit, frame_skip=1, **settings)


def length_by_hand(actions: list[int], start: int, add: int, most: int) -> int | None:
    """The timestep at which the episode is cut off, if it is while these actions are played."""
    x = START_X
    for timestep, action in enumerate(actions, 1):
        x += {LEFT: -1, RIGHT: 1}.get(action, 0)
        growth = x - START_X if x > START_X else 0
        allowed = start + add * growth
        if timestep >= (allowed if allowed < most else most):
            return timestep
    return None


@given(
    st.lists(st.sampled_from([0, LEFT, RIGHT, RIGHT]), max_size=60),
    st.integers(1, 20),
    st.integers(1, 5),
    st.integers(0, 40),
)
def test_an_episode_lasts_as_long_as_the_formula_says(
    actions: list[int], start: int, add: int, more: int
) -> None:
    length = None
    with closing(limited(growing(start, add, start + more))) as env:
        env.reset(seed=0, options={"start_state": "level_1", "idle_frames": 0})
        for timestep, action in enumerate(actions, 1):
            _, _, terminated, truncated, info = env.step(action)
            assert not terminated
            if truncated:
                assert info["start_state"] == "level_1"
                length = timestep
                break
    assert length == length_by_hand(actions, start, add, start + more)


def test_growth_is_counted_from_where_each_episode_begins() -> None:
    with closing(limited(growing(3, 2, 30, per="frames"))) as env:
        for _ in range(3):
            env.reset(seed=0, options={"start_state": "level_2", "idle_frames": 0})
            lengths = 0
            truncated = False
            while not truncated:
                truncated = env.step(0)[3]
                lengths += 1
            assert lengths == 30, "one more frame a timestep grows the limit by two"


def test_a_limit_that_grows_goes_on_from_its_state() -> None:
    lengths = []
    for stops_at in (None, 1, 5, 9):
        with closing(limited(growing(6, 1, 100))) as env:
            env.reset(seed=0, options={"start_state": "level_1", "idle_frames": 0})
            actions = [RIGHT] * 7 + [LEFT] * 100
            played = 0
            for action in actions[:stops_at]:
                played += 1
                if env.step(action)[3]:
                    break
            state = EnvState.model_validate_json(env.save_state().model_dump_json())
        if stops_at is not None:
            assert state.trackers["limit_from"] == START_X
            with closing(limited(growing(6, 1, 100))) as env:
                env.load_state(state)
                for action in actions[stops_at:]:
                    played += 1
                    if env.step(action)[3]:
                        break
        lengths.append(played)
    assert len(set(lengths)) == 1
    assert 6 < lengths[0] < 13


def test_a_limit_that_does_not_grow_is_saved_as_before_and_cuts_at_once() -> None:
    with closing(limited(4)) as env:
        env.reset(seed=0)
        assert env.save_state().trackers["limit_from"] is None
        assert [env.step(0)[3] for _ in range(4)] == [False, False, False, True]


def test_a_variable_that_the_game_lacks_is_named() -> None:
    limit = growing(5, 1, 10, per="y")
    with pytest.raises(UsageError, match=r"env\.max_episode_timesteps\.per: fake has no variable"):
        limited(limit)
    with pytest.raises(UsageError, match=r"per: duel has no variable y"):
        check_env_config(EnvConfig(max_episode_timesteps=limit), load_game("duel"))


def test_an_episode_that_would_never_end_is_refused_and_one_that_grows_ends() -> None:
    endless = fake_game(endings={})
    check_episode_limit(growing(5, 1, 10), endless)
    with pytest.raises(UsageError, match="would never end"):
        check_episode_limit(None, endless)


def test_the_most_is_known() -> None:
    assert EnvConfig(max_episode_timesteps=growing(5, 1, 10)).most_episode_timesteps == 10
    assert EnvConfig(max_episode_timesteps=7).most_episode_timesteps == 7
    assert EnvConfig(max_episode_timesteps=None).most_episode_timesteps is None


def test_a_limit_may_grow_with_a_variable_that_is_computed_from_others() -> None:
    variables = FAKE_GAME_YAML["variables"] | {
        "way": {"sum": ["x", "level"]},
        "memory": {"address": fake.X, "type": "bits", "bytes": 2},
    }
    game = fake_game(variables=variables)
    with closing(limited(growing(4, 1, 20, per="way"), game=game)) as env:
        env.reset(seed=0, options={"start_state": "level_1", "idle_frames": 0})
        lengths, truncated = 0, False
        while not truncated:
            truncated = env.step(RIGHT if lengths < 5 else 0)[3]
            lengths += 1
        assert lengths == 9
        assert env.save_state().trackers["limit_from"] == START_X + 1
    with pytest.raises(UsageError, match="memory is an array, and a number is needed"):
        limited(growing(4, 1, 20, per="memory"), game=game)
