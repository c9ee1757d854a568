"""What an experiment asks of an executor."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What members take, as the preflight forecasts it.

    Attributes:
        slots: at once on this machine.
        members: in all.
        cpus: of each, as for the next three.
        ram_bytes: at its peak.
        gpus: a share of one, or several.
        patience_s: how long it may take to save and end.
        disk_bytes: of each member's run.
        folder: the experiment's.
        game: of the members, as their config names it.
        warn: tells the user something; the experiment goes on.
    """

    slots: int
    members: int
    cpus: int
    ram_bytes: int
    gpus: float
    patience_s: float
    folder: Path
    disk_bytes: int = 0
    game: str = ""
    warn: Callable[[str], None]
