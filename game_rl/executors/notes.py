"""What is on its way from nodes that share no files with us: a note for each attempt."""

from pathlib import Path

from game_rl.config.saved import Saved


def errands_folder(root: Path) -> Path:
    """Where the notes are in the folder of an experiment."""
    return root / "errands"


class Note(Saved):
    """An attempt; paths are below the experiment's folder."""

    claim: str
    """No other attempt's."""
    run: str | None
    """The run directory that it trains; None: it trains none."""
    writes: tuple[str, ...]
    """Files and folders that it leaves."""
