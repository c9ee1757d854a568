"""An agent learns the bundled game, which takes minutes on two cores."""

from pathlib import Path

import pytest

from game_rl.config.loader import load_config
from game_rl.system.stop_request import StopRequest
from game_rl.training.train import TrainCommand, train

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.usefixtures("worker_processes")
def test_a_short_run_wins_far_more_than_a_random_player(tmp_path: Path) -> None:
    """Train two fifths of the default run; random players win less than a fifth."""
    config = load_config(
        ROOT / "configs/duel_ppo.yaml",
        [
            f"run_dir={tmp_path / 'run'}",
            "total_timesteps=61_440",
            "evaluation.every_timesteps=10_240",
            "evaluation.baselines=false",
            "recording.episodes=0",
        ],
    )
    result = train(config, TrainCommand(stop=StopRequest()))
    assert result.evaluation is not None
    assert result.evaluation.success_rate is not None
    assert result.evaluation.success_rate >= 0.5
