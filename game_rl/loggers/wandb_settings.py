"""What the process that sends to Weights & Biases needs to know, and what it has sent."""

from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from game_rl.files.saved import Natural, Saved

WANDB_PROCESS = "game_rl.loggers.wandb_process"


class WandbSettings(Saved):
    """A run for Weights & Biases; the first line that its process reads."""

    run_dir: Path
    run: str
    """Id of the run."""
    name: str
    """Name that is shown."""
    project: str
    entity: str | None
    group: str | None
    mode: Literal["online", "offline"]
    config: dict[str, JsonValue]
    """The run's config."""
    rows: Natural
    """Lines of the journal when the session began."""
    is_exact: bool
    """Whether the training plays the same as what it wrote after its checkpoint, if it did."""


class SentRows(Saved):
    """How much of a run's journal was sent, in the file `wandb/sent.json`."""

    attempt: Natural = 1
    """Number of the run in Weights & Biases: one more each time that the training went back and
    went on in another way."""
    rows: Natural = 0
    """Number of lines of the journal that were sent to that run."""


def journal_rows(journal: Path) -> int:
    """Return the number of whole lines."""
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def sent_file(run_dir: Path) -> Path:
    return run_dir / "wandb" / "sent.json"
