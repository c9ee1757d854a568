"""The resources that an experiment asks of an executor."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Demand:
    """The resources that members need, as the preflight forecasts them.

    Attributes:
        slots: number of members that fit on this machine at once.
        members: number of members in all.
        cpus: CPUs of each member.
        ram_bytes: peak memory of each member.
        gpus: GPUs of each member; below 1, a share of one.
        patience_s: time that a member may take to save and end.
        folder: the experiment's folder.
        disk_bytes: disk space of each member's run.
        game: game of the members, as their config names it.
        warn: called with the text of a warning for the user.
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
