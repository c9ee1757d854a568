"""A saved env goes on, in another env and another emulator, exactly as the one that was saved."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.config.schema import EnvConfig
from game_rl.envs.game_boy_env import EnvState, GameBoyEnv
from game_rl.envs.make_env import make_env
from game_rl.errors import EmulatorError, GameFileError
from game_rl.games.definition import load_game
from tests.envs.example import fake_env, fake_game, with_folder


def through_json(state: EnvState) -> EnvState:
    return EnvState.model_validate_json(state.model_dump_json())


def play_on(env: GameBoyEnv, actions: list[int]) -> list[Any]:
    """Everything to be seen from here on, the first episodes of later resets included."""
    seen: list[Any] = []
    for action in actions:
        observation, *rest = env.step(action)
        seen.append((observation.tobytes(), rest, env.read_variables(), env.reward_terms))
        if rest[1] or rest[2]:
            observation, info = env.reset()
            seen.append((observation.tobytes(), info))
    return seen


def assert_exact(make: Callable[[], GameBoyEnv], before: list[int], after: list[int]) -> None:
    with closing(make()) as saved, closing(make()) as restored:
        saved.reset(seed=3)
        play_on(saved, before)
        state = saved.save_state()
        restored.reset(seed=99)
        restored.step(0)  # whatever happened to it before must not shine through
        restored.load_state(through_json(state))
        assert play_on(restored, after) == play_on(saved, after)


ACTIONS = st.lists(st.integers(0, 3), max_size=60)


@given(before=ACTIONS, after=ACTIONS)
def test_on_the_fake_emulator(before: list[int], after: list[int]) -> None:
    assert_exact(lambda: fake_env(max_idle_frames=9, max_episode_timesteps=20), before, after)


@pytest.mark.parametrize("seed", range(3))
def test_on_the_bundled_game(seed: int) -> None:
    game = load_game("duel")
    config = EnvConfig(max_episode_timesteps=150)
    rng = np.random.default_rng(seed)
    n_actions = len(game.definition.actions)
    # each action for a while, so that buttons are held over the moment of saving
    before, after = (list(np.repeat(rng.integers(0, n_actions, 130), 3)) for _ in range(2))
    assert_exact(lambda: make_env(config, game), before[: 100 + 67 * seed], after)


def test_an_env_before_its_first_episode() -> None:
    with closing(fake_env()) as saved, closing(fake_env()) as restored:
        saved.np_random.random()
        restored.load_state(through_json(saved.save_state()))
        assert restored.reset()[1] == saved.reset()[1]


def test_a_state_of_another_emulator_is_refused() -> None:
    with closing(fake_env()) as env, closing(make_env(EnvConfig(), load_game("duel"))) as other:
        env.reset(seed=0)
        other.reset(seed=0)
        with pytest.raises(EmulatorError, match="another ROM"):
            env.load_state(other.save_state())


REWARD_CLASS = """\
class Reward:
    def reset(self, variables):
        self.seen = {keeps}

    def step(self, variables):
        self.seen.append(variables["x"])
        return float(sum(self.seen))
"""
OWN_METHODS = """
    def save_state(self):
        return sorted(self.numbers)

    def load_state(self, state):
        self.numbers = set(state)
"""


def env_with_reward(folder: Path, source: str) -> GameBoyEnv:
    (folder / "rewards.py").write_text(source, encoding="utf-8")
    return fake_env(with_folder(fake_game(reward="rewards:Reward", rewards={}), folder))


def test_a_reward_class_of_plain_data_is_saved_by_itself(tmp_path: Path) -> None:
    source = REWARD_CLASS.format(keeps="[]")
    assert_exact(lambda: env_with_reward(tmp_path, source), [2, 2, 1], [2, 2, 1])


def test_a_reward_class_may_save_itself(tmp_path: Path) -> None:
    source = """\
class Reward:
    def reset(self, variables):
        self.numbers = set()

    def step(self, variables):
        self.numbers.add(variables["x"])
        return len(self.numbers)
"""
    assert_exact(lambda: env_with_reward(tmp_path, source + OWN_METHODS), [2, 2], [1, 1, 2])


def test_a_reward_class_may_count_places_by_tuples(tmp_path: Path) -> None:
    source = """\
from collections import Counter


class Reward:
    def reset(self, variables):
        self.visits, self.last = Counter(), ()

    def step(self, variables):
        self.last = (variables["level"], variables["x"])
        self.visits[self.last] += 1
        return self.visits[self.last] + len(self.visits) / 100
"""
    assert_exact(lambda: env_with_reward(tmp_path, source), [2, 2, 1], [1, 2, 1, 1, 0])


@pytest.mark.parametrize("keeps", ["{1, 2}", "[{1}]", "[1e999]", "[object()]"])
def test_a_reward_class_that_cannot_be_saved_is_told_how_to(tmp_path: Path, keeps: str) -> None:
    env = env_with_reward(tmp_path, REWARD_CLASS.format(keeps=keeps))
    with closing(env):
        env.reset(seed=0)
        with pytest.raises(GameFileError, match=r"rewards:Reward .*give the class `save_state"):
            env.save_state()


def test_an_env_goes_on_with_the_reward_class_that_it_has_saved_and_loaded(tmp_path: Path) -> None:
    """So a class whose load_state forgets something fails then, not after a resume."""
    source = """\
class Reward:
    def reset(self, variables):
        self.numbers, self.bonus = set(), 1

    def step(self, variables):
        self.numbers.add(variables["x"])
        return len(self.numbers) + self.bonus
"""
    with closing(env_with_reward(tmp_path, source + OWN_METHODS)) as env:
        env.check_reward()  # nothing has begun
        env.reset(seed=0)
        env.step(2)
        env.check_reward()
        with pytest.raises(
            GameFileError, match=r"no attribute 'bonus' in .*rewards\.py, line 7: `ret"
        ):
            env.step(2)


def test_json_of_a_state_is_checked_when_it_is_read() -> None:
    with closing(fake_env()) as env:
        env.reset(seed=0)
        fields = json.loads(env.save_state().model_dump_json())
    for change in ({"timesteps": "many"}, {"emulator": "%%"}, {"unknown": 1}):
        with pytest.raises(ValueError, match=next(iter(change))):
            EnvState.model_validate(fields | change)
