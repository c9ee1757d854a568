from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from game_rl.callbacks.game_warnings import GameCheckCallback
from game_rl.emulator import fake_emulator as fake
from game_rl.errors import GameFileError
from game_rl.event_log import EventLog
from game_rl.games.definition import Game
from tests.callbacks.conftest import N_STEPS
from tests.callbacks.test_curves import training
from tests.envs.example import fake_env, fake_game, fake_game_seeded_at, with_folder

REWARD = """\
class Reward:
    def reset(self, variables):
        self.seen, self.timesteps = {}, 0

    def step(self, variables):
        self.timesteps += 1
        {step}
"""


def warnings_of(game: Game) -> list[str]:
    """Train two rollouts on one env of the game; return the warnings."""
    warnings: list[str] = []
    envs, others = (VecMonitor(DummyVecEnv([partial(fake_env, game)])) for _ in range(2))
    events = EventLog(listeners=[lambda event: warnings.append(event.text)])
    with closing(envs), closing(others):
        training(envs).learn(2 * N_STEPS, callback=GameCheckCallback(others, events))
    return warnings


def trained(folder: Path, step: str) -> list[str]:
    (folder / "rewards.py").write_text(REWARD.replace("{step}", step), encoding="utf-8")
    return warnings_of(with_folder(fake_game(reward="rewards:Reward", rewards={}), folder))


def test_a_reward_that_cannot_be_saved_any_more_ends_the_first_rollout(tmp_path: Path) -> None:
    step = "self.seen[variables['x']] = {variables['level']}; return 0.0"
    with pytest.raises(GameFileError, match=r"the state\['seen'\]\[\d+\] is of type set; keep"):
        trained(tmp_path, step)


def test_an_absurd_reward_is_warned_of_once_and_before_the_first_update(tmp_path: Path) -> None:
    step = "self.seen[variables['x'], variables['level']] = 1; return {'bonus': 1e12}"
    (warning,) = trained(tmp_path, step)
    assert "reward term bonus has earned 1e+12 in one timestep" in warning


def test_a_sound_reward_is_not_spoken_of(tmp_path: Path) -> None:
    assert trained(tmp_path, "self.seen[variables['x'],] = 1; return 1.0") == []


def test_a_start_that_does_not_vary_is_warned_of_when_a_run_begins() -> None:
    (warning,) = warnings_of(fake_game_seeded_at(fake.HELD))
    assert warning.startswith("random_seed: other (0xC002) makes no difference")
