"""`env.sticky_actions` beside Gymnasium's own wrapper, and through a checkpoint."""

from contextlib import closing
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import StickyAction
from hypothesis import given
from hypothesis import strategies as st

from game_rl.envs.game_boy_env import EnvState
from tests.emulator import fake_emulator as fake
from tests.emulator.fake_emulator import FakeEmulator
from tests.envs.example import fake_env, fake_game

SETTINGS: dict[str, Any] = {"max_idle_frames": 5, "max_episode_timesteps": 12}
STICKY: dict[str, Any] = {"sticky_actions": 0.5}
FOREVER = fake_game(endings={})
plays = st.lists(st.integers(0, 3), min_size=1, max_size=40)


def played(env: "gymnasium.Env[Any, Any]", actions: list[int], seed: int) -> list[Any]:
    """Everything that an agent sees, over the ends of episodes."""
    seen: list[Any] = [env.reset(seed=seed)[0].tobytes()]
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(np.int64(action))
        seen.append((observation.tobytes(), reward, terminated, truncated, info))
        if terminated or truncated:
            seen.append(env.reset()[0].tobytes())
    return seen


@given(plays, st.sampled_from([0.1, 0.25, 0.9]), st.integers(0, 2**31 - 1))
def test_it_is_gymnasiums_wrapper(actions: list[int], probability: float, seed: int) -> None:
    with (
        closing(fake_env(sticky_actions=probability, **SETTINGS)) as ours,
        closing(StickyAction(fake_env(**SETTINGS), probability)) as theirs,
    ):
        assert played(ours, actions, seed) == played(theirs, actions, seed)


@given(plays, st.integers(0, 39), st.integers(0, 2**31 - 1))
def test_an_env_goes_on_from_its_saved_state(actions: list[int], at: int, seed: int) -> None:
    def play(resumed_at: int | None) -> list[bytes]:
        env, seen = fake_env(FOREVER, **STICKY), []
        env.reset(seed=seed)
        for index, action in enumerate(actions):
            if index == resumed_at:
                state = env.save_state().model_dump_json()
                env = fake_env(FOREVER, **STICKY)
                env.load_state(EnvState.model_validate_json(state))
            seen.append(env.step(action)[0].tobytes())
        return seen

    assert play(None) == play(at)


def test_a_state_of_an_earlier_version_repeats_nothing_at_first() -> None:
    env = fake_env(FOREVER, **STICKY)
    env.reset(seed=0)
    env.step(1)
    assert env.save_state().last_action is not None
    old = env.save_state().model_dump()
    del old["last_action"]
    env.load_state(EnvState.model_validate(old))
    assert env.save_state().last_action is None


def test_without_it_nothing_is_drawn_and_nothing_is_kept() -> None:
    with closing(fake_env(FOREVER)) as env:
        env.reset(seed=0)
        before = env.save_state()
        env.step(1)
        after = env.save_state()
    assert (before.random, before.last_action) == (after.random, after.last_action)


class HeldLog(FakeEmulator):
    """Notes after each timestep whether a button was held."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[int] = []

    def tick(self, frames: int, *, render: bool) -> None:
        super().tick(frames, render=render)
        self.held.append(int(self.read(fake.HELD) > 0))


def test_as_many_timesteps_repeat_the_last_action_as_the_probability_says() -> None:
    game = fake_game(actions={"idle": [], "right": ["right"]}, endings={})
    emulator, chosen = HeldLog(), [index % 2 for index in range(4_000)]
    settings: dict[str, Any] = {"sticky_actions": 0.25, "max_episode_timesteps": 5_000}
    with closing(fake_env(game, emulator=emulator, **settings)) as env:
        env.reset(seed=7)
        emulator.held.clear()
        for action in chosen:
            env.step(action)
    # A repeat shows only after a timestep that played its choice, as choices alternate. So the
    # share s of timesteps that play another action than the choice is 0.25 x (1 - s).
    others = np.mean(np.array(emulator.held) != chosen)
    assert others == pytest.approx(0.2, abs=0.02)
