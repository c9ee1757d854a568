"""An agent learns the bundled game: minutes on two cores."""

from pathlib import Path

import pytest

from game_rl.callbacks.stop import StopRequest
from game_rl.config.loader import load_config
from game_rl.training.train import Command, train

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_a_short_run_of_the_default_config_wins_far_more_than_a_random_player(
    tmp_path: Path,
) -> None:
    """Half of the default run; a random player wins less than a fifth of its fights."""
    overrides = [
        f"run_dir={tmp_path / 'run'}",
        "total_timesteps=200_000",
        "evaluation.every_timesteps=50_000",
    ]
    config = load_config(ROOT / "configs/duel_ppo.yaml", overrides)
    result = train(config, Command(stop=StopRequest()))
    assert result.evaluation is not None
    assert result.evaluation.success_rate is not None
    assert result.evaluation.success_rate >= 0.5
