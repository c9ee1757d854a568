"""What users read of a run that ended early: the fault, what is saved, and how to continue."""

from game_rl.errors import system_fault
from game_rl.run_dir import RunDir


def disk_fault(error: OSError, run_dir: RunDir) -> str:
    """Describe a fault of the run's disk, and what is saved."""
    if not run_dir.root.is_dir():
        return f"the run directory {run_dir.root} is gone, and what was learned with it"
    return f"{system_fault(error, run_dir.root)}; {what_is_saved(run_dir)}"


def what_is_saved(run_dir: RunDir) -> str:
    """Say up to where a run that ended early is saved, and how to continue it."""
    checkpoints = run_dir.checkpoints_newest_first()
    if not checkpoints and run_dir.has_checkpoints():
        offline = int(run_dir.offline.checkpoints_newest_first()[0].name)
        return (
            f"saved up to gradient step {offline:,} before the first timestep; continue with "
            f"{run_dir.way_on}"
        )
    if not checkpoints:
        return f"nothing was saved yet; begin again with {run_dir.way_on}"
    return f"saved up to timestep {int(checkpoints[0].name):,}; continue with {run_dir.way_on}"
