"""An agent learns the bundled game, which takes minutes on two cores."""

from pathlib import Path

import pytest

from game_rl.config.loader import load_config
from game_rl.system.stop_request import StopRequest
from game_rl.training.train import TrainCommand, train

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.usefixtures("worker_processes")
def test_the_default_run_wins_far_more_than_a_random_player(tmp_path: Path) -> None:
    """Train until more than half of the fights are won; random players win less than a fifth.

    A hundred new episodes or more confirm it. Processors round in different ways, so machines
    differ in the timestep at which it happens.
    """
    config = load_config(
        ROOT / "configs/duel_ppo.yaml",
        [
            f"run_dir={tmp_path / 'run'}",
            "stop_when={success_rate: 0.5}",
            "evaluation.final_episodes=1",
            "evaluation.baselines=false",
            "recording.episodes=0",
        ],
    )
    result = train(config, TrainCommand(stop=StopRequest()))
    assert result.ended_by.startswith("stop_when.success_rate")
    assert result.timesteps < config.total_timesteps
