"""SB3's own model against the settings of the run that it is made for."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from stable_baselines3 import DQN, PPO

from game_rl.config.schema import RunConfig
from game_rl.games.definition import load_game
from game_rl.interchange.sb3_zip import plain_model
from game_rl.vec_env.spaces_env import spaces_env
from tests.tiny_run import MakeConfig

PPO_SECTION = (
    "{name: ppo, n_steps: 16, batch_size: 8, n_epochs: 3, learning_rate: {start: 0.01, end: 0.001},"
    " clip_range: 0.3, clip_range_vf: {start: 0.4, end: 0.2}, normalize_advantage: false,"
    " gamma: 0.9, gae_lambda: 0.8, ent_coef: 0.07, vf_coef: 0.6, max_grad_norm: 0.7,"
    " target_kl: 0.02, stats_window_size: 7}"
)
DQN_SECTION = (
    "{name: dqn, learning_rate: {start: 0.02, end: 0.002}, batch_size: 16, learning_starts: 40,"
    " gamma: 0.8, tau: 0.5, train_freq: 3, gradient_steps: 2, target_update_interval: 77,"
    " max_grad_norm: 4.0, stats_window_size: 9,"
    " exploration: {start: 0.9, end: 0.1, fraction: 0.3}, replay: {capacity: 500}}"
)
SAME_NAME = (
    *("n_steps", "batch_size", "n_epochs", "normalize_advantage", "gamma", "gae_lambda"),
    *("ent_coef", "vf_coef", "max_grad_norm", "target_kl", "learning_starts", "tau"),
    *("gradient_steps", "target_update_interval"),
)
LOADED = """\
import sys
sys.modules["game_rl"] = None  # as where it is not installed
from stable_baselines3 import DQN, PPO
model = {"ppo": PPO, "dqn": DQN}[sys.argv[2]].load(sys.argv[1], device="cpu")
names = [name for name in ("lr_schedule", "clip_range", "clip_range_vf") if hasattr(model, name)]
print([getattr(model, name)(p) for name in names for p in (1, 0.5, 0)])
"""
SCHEDULES = {  # at the beginning, half way and at the end
    "ppo": [0.01, 0.0055, 0.001, 0.3, 0.3, 0.3, 0.4, 0.3, 0.2],
    "dqn": [0.02, 0.011, 0.002],
}


def plain(config: RunConfig) -> PPO | DQN:
    return plain_model(config, spaces_env(config, load_game(config.game)))


@pytest.mark.parametrize("section", [PPO_SECTION, DQN_SECTION], ids=["ppo", "dqn"])
def test_settings_of_the_same_name_are_the_runs(make_config: MakeConfig, section: str) -> None:
    config = make_config("run", f"algorithm={section}")
    model: Any = plain(config)
    known = [name for name in SAME_NAME if hasattr(config.algorithm, name)]
    assert {name: getattr(model, name) for name in known} == {
        name: getattr(config.algorithm, name) for name in known
    }
    assert model._stats_window_size == config.algorithm.stats_window_size


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ppo", "dqn"])
def test_schedules_are_the_runs_where_game_rl_is_not_installed(
    make_config: MakeConfig, tmp_path: Path, kind: str
) -> None:
    section = {"ppo": PPO_SECTION, "dqn": DQN_SECTION}[kind]
    plain(make_config("run", f"algorithm={section}")).save(tmp_path / "model.zip")
    found = subprocess.run(
        [sys.executable, "-c", LOADED, str(tmp_path / "model.zip"), kind],
        capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    values = [float(text) for text in found.stdout.strip("[]\n").split(",")]
    assert values == pytest.approx(SCHEDULES[kind])
