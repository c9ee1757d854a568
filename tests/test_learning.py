"""An agent learns the bundled game, which takes minutes on two cores."""

from pathlib import Path

import pytest

from game_rl.callbacks.stop import StopRequest
from game_rl.config.experiments.population_files import load_population
from game_rl.training.train import Command, train

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.usefixtures("worker_processes")
def test_a_short_run_wins_far_more_than_a_random_player(tmp_path: Path) -> None:
    """Train a member of the bundled population; random players win less than a fifth."""
    population = load_population(
        ROOT / "configs/duel_population.yaml",
        [
            f"run_dir={tmp_path / 'population'}",
            "member.recording.episodes=0",
            "generations=2",
            "timesteps_per_generation=40_960",
        ],
    )
    config = population.run
    result = train(config, Command(stop=StopRequest()))
    assert result.evaluation is not None
    assert result.evaluation.success_rate is not None
    assert result.evaluation.success_rate >= 0.5
