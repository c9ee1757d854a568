from functools import partial
from pathlib import Path

import pytest
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from game_rl.callbacks.reward_check import RewardCheckCallback
from game_rl.errors import GameFileError
from game_rl.event_log import EventLog
from tests.callbacks.conftest import N_STEPS
from tests.callbacks.test_worker_restarts import training
from tests.envs.example import fake_env, fake_game, with_folder

REWARD = """\
class Reward:
    def reset(self, variables):
        self.seen, self.timesteps = {}, 0

    def step(self, variables):
        self.timesteps += 1
        {step}
"""


def trained(folder: Path, step: str) -> list[str]:
    """Train two rollouts on one env with this reward; return the warnings."""
    warnings: list[str] = []
    (folder / "rewards.py").write_text(REWARD.replace("{step}", step))
    game = with_folder(fake_game(reward="rewards:Reward", rewards={}), folder)
    vec_env = VecMonitor(DummyVecEnv([partial(fake_env, game)]))
    events = EventLog(listeners=[lambda event: warnings.append(event.text)])
    try:
        training(vec_env).learn(2 * N_STEPS, callback=RewardCheckCallback(events))
    finally:
        vec_env.close()
    return warnings


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
