"""Notes of the attempts that are under way on nodes without shared files."""

from pathlib import Path

from game_rl.saved import Saved


def errands_folder(root: Path) -> Path:
    """Return the folder of the notes in an experiment's folder."""
    return root / "errands"


class Note(Saved):
    """An attempt at a job, with paths below the experiment's folder."""

    claim: str
    """Unique id of the attempt."""
    run: str | None
    """The run directory that it trains, or None."""
    writes: tuple[str, ...]
    """Files and folders that it leaves."""
