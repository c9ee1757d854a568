"""Reading of run directories for a comparison."""

from pathlib import Path

from game_rl.config.loader import load_config
from game_rl.errors import UsageError
from game_rl.event_log import final_evaluation, read_events
from game_rl.events import Ended
from game_rl.experiments.compare.evaluations import curve_of, last_evaluation
from game_rl.experiments.compare.experiments import read_experiment
from game_rl.experiments.compare.found import NO_DIFFERENCE, Found, settings_of
from game_rl.experiments.compare.outcome import Score
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.lineage import played_by, totals
from game_rl.run_dir import RunDir


def read_folder(path: Path) -> Found:
    """Read a run, or a population or mixture with its champion.

    Raises:
        UsageError: the folder holds neither, or there is no champion yet.
    """
    folder = ExperimentDir(path)
    return read_experiment(folder) if folder.exists() else _run(path)


def _run(path: Path) -> Found:
    run_dir = RunDir(path)
    if not run_dir.exists():
        raise UsageError(
            f"{path} is not a run directory: it has no {run_dir.config.name}; name the run_dir of "
            "a run or of an experiment, or a study's file"
        )
    config = load_config(run_dir.config, is_saved=True)
    own = played_by(run_dir, config.env.frame_skip)
    final, failure = _end_of(run_dir)
    total_timesteps, total_frames = totals([own])
    return Found(
        path=path,
        seed=config.seed,
        settings=settings_of(config.model_dump(mode="json"), NO_DIFFERENCE),
        curve=curve_of(run_dir, own),
        timesteps=own.played_timesteps,
        total_timesteps=total_timesteps,
        total_frames=total_frames,
        final=final,
        last=last_evaluation(run_dir),
        failure=failure,
    )


def _end_of(run_dir: RunDir) -> tuple[Score | None, str]:
    """Return a complete run's final score, if any, and the reason of a failed run's failure."""
    events = read_events(run_dir)
    last = events[-1] if events else None
    if isinstance(last, Ended) and last.reason == "failed":
        return None, last.text.splitlines()[0] if last.text else "it failed"
    final = final_evaluation(events)
    if final is None:
        return None, ""
    return Score(final.mean_reward, final.success_rate, final.episodes), ""
