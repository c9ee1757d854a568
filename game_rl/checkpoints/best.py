"""Finding the best checkpoint of a run."""

import csv
import io
from pathlib import Path

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.evaluation_files import seed_of, was_deterministic, with_ways
from game_rl.checkpoints.state import Best
from game_rl.checkpoints.teacher import read_validation
from game_rl.run_dir import RunDir


def best_checkpoint(run_dir: RunDir, best: Best) -> Path:
    """Return the path of the best checkpoint, which may be lost."""
    if best.offline_gradient_steps:
        return run_dir.offline.checkpoint(best.offline_gradient_steps)
    return RunDir(run_dir.root).checkpoint(best.timesteps)


def best_of(run_dir: RunDir, newest: Checkpoint) -> Best | None:
    """Return the best evaluation of the run with this newest checkpoint, or None if there is none.

    An evaluation that a stop interrupted is played after the resume, when the checkpoint has been
    written. If the run ends with it, its result is only in the table of evaluations.
    """
    if newest.state.evaluation_due and run_dir.evaluations.exists():
        way = was_deterministic(newest.state.config)
        table = with_ways(run_dir.evaluations.read_text(encoding="utf-8"), deterministic=way)
        rows = list(csv.DictReader(io.StringIO(table)))
        now = str(newest.state.num_timesteps)
        for row in rows:
            if row["timesteps"] == now and row["is_best"] == "True":
                return Best(
                    timesteps=int(now),
                    mean_reward=float(row["mean_reward"]),
                    deterministic=row["deterministic"] == "True",
                    seed=seed_of(newest.state.config),
                )
    return newest.state.best


def is_teacher_best(run_dir: RunDir, newest: Checkpoint) -> bool:
    """Return whether the run's validation found its teacher to be its best policy."""
    best = best_of(run_dir, newest)
    if best is None:
        return False
    now = newest.state.num_timesteps
    found = read_validation(run_dir, at_timesteps=now, best=best.timesteps)
    return found is not None and found.teacher_is_best
