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
        folder: the experiment's.
        warn: tells the user something; the experiment goes on.
    """

    slots: int
    members: int
    cpus: int
    ram_bytes: int
    gpus: float
    patience_s: float
    folder: Path
    warn: Callable[[str], None]
