"""Who carries out what an experiment asks for: commands of ours, each in a process of its own.

A job brings a run directory to a timestep and leaves a result in a file. It may be carried out
again, here or elsewhere, whenever its end is not known: whoever finds the result does nothing. So
an executor needs to know nothing of training, and nothing that it forgets is lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Job:
    """One command, by default `game-rl ARGUMENTS`.

    Attributes:
        name: what it is, for people; no two under way have the same.
        output: a file that gets what it prints; what an earlier attempt printed stays.
        cpus: that it counts as its own: threads of torch, and so how its numbers round.
        claim: under which it writes to its run (see `game_rl.claims`); None: it has none.
        arguments: a Path is one of the experiment's folder.
        module: whose arguments they are, as `python -m` runs it.
        reads: folders of the experiment that it needs.
        writes: files and folders that it leaves beside its output.
    """

    name: str
    arguments: tuple[str | Path, ...]
    output: Path
    cpus: int = 1
    claim: str | None = None
    module: str = "game_rl"
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Ended:
    """How a job's process has ended.

    Attributes:
        code: its exit code; less than 0: the number of the signal that killed it.
        where: the machine.
        text: the end of what it has printed, if it has failed.
        cause: of its death, where more is known than the code.
    """

    job: Job
    code: int
    where: str
    text: str = ""
    cause: str = ""

    @property
    def was_stopped(self) -> bool:
        """By a signal, saved or not: the job can go on."""
        return self.code < 0 or self.code > 128


class Executor(Protocol):
    """Carries out jobs, so many at once; a context manager, after which nothing is left running."""

    @property
    def slots(self) -> int:
        """Jobs that it takes at once."""

    def start(self, job: Job) -> None:
        """Begin it; only while fewer than `slots` are under way."""

    def wait(self, timeout_s: float) -> Sequence[Ended]:
        """Those that have ended since the last call; returns early once there is one."""

    def ask_to_stop(self) -> None:
        """Have all jobs save and end soon; `wait` tells when each has."""

    def close(self) -> None:
        """End all jobs at once; may be called twice."""
