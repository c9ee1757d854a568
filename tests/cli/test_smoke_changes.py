from pathlib import Path

import pytest

from game_rl.cli.smoke import smoke_changes, smoke_overrides
from game_rl.config.experiments.experiment import load_experiment
from game_rl.config.loader import config_kind, load_config
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import with_changed
from game_rl.preflight.workload import training_arithmetic

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))
RUNS = [path for path in CONFIGS if config_kind(path) is None]
EXPERIMENTS = [path for path in CONFIGS if config_kind(path) in ("population", "mixture")]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_run_is_short_and_goes_the_whole_way(path: Path) -> None:
    config = load_config(path)
    small = with_changed(config, smoke_changes(config))
    counts = training_arithmetic(small)
    assert counts.gradient_steps == 2 * counts.gradient_steps_per_update > 0
    assert (counts.evaluations, counts.may_end_early) == (1, False)
    assert counts.checkpoints >= 2
    assert small.recording.episodes == 1
    assert small.total_timesteps <= config.total_timesteps
    for same in ("game", "seed", "device"):
        assert getattr(small, same) == getattr(config, same)
    kept = {"n_envs", "frame_skip", "frame_stack", "observation", "start_states"}
    assert small.env.model_dump(include=kept) == config.env.model_dump(include=kept)
    assert small.algorithm.batch_size == config.algorithm.batch_size
    assert small.algorithm.replay == config.algorithm.replay


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_an_experiment_has_two_members_and_one_generation(path: Path, tmp_path: Path) -> None:
    experiment = load_experiment(path)
    small = load_experiment(path, smoke_overrides(experiment, tmp_path / "run"))
    assert (small.config.members, small.config.generations) == (2, 1)
    assert small.config.upload is None
    assert small.config.run_dir == tmp_path / "run"
    assert small.config.rule == experiment.config.rule
    for run in small.players:
        assert training_arithmetic(run).updates >= 2
        assert run.total_timesteps <= 10_000


def test_nothing_is_written_or_read_outside_of_its_folder(tmp_path: Path) -> None:
    config = RunConfig.model_validate(
        {
            "game": "duel",
            "total_timesteps": 100_000,
            "run_dir": tmp_path / "run",
            "algorithm": {"name": "dqn", "learning_starts": 5_000, "n_step": 3},
            "lake": {"path": tmp_path / "shared_lake"},
            "upload": {"to": f"file://{tmp_path}/copy"},
            "stop_when": {"mean_reward": 1.0},
        }
    )
    small = with_changed(config, smoke_changes(config))
    assert small.lake is not None
    assert (small.lake.path, small.upload, small.stop_when) == (None, None, None)


def test_what_is_small_already_stays() -> None:
    config = RunConfig.model_validate(
        {
            "game": "duel",
            "total_timesteps": 256,
            "run_dir": "runs/small",
            "env": {"n_envs": 2, "max_episode_timesteps": 40},
            "algorithm": {"n_steps": 64, "batch_size": 128, "n_epochs": 1},
            "evaluation": {"every_timesteps": 256, "episodes": 1, "final_episodes": 2},
            "checkpoints": {"every_timesteps": 128},
            "recording": {"episodes": 0, "max_s": 2.0},
        }
    )
    assert smoke_changes(config) == {}
