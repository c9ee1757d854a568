"""The interface of executors: a job, how it ended, and what an experiment asks for.

A job trains a run directory to a timestep and leaves a result in a file. Whenever its end is
unknown, it may be carried out again, here or elsewhere: a job that finds its result does nothing.
So an executor needs no knowledge of training, and nothing is lost if it loses its state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Job:
    """One command: `python -m MODULE REQUEST`.

    Attributes:
        name: name for people, unique among the jobs under way.
        request: file that says what is to be done, in the experiment's folder.
        output: file to which its output is appended.
        cpus: number of CPUs for torch's threads, on which the rounding of its numbers depends.
        claim: claim under which it writes to its run (see `game_rl.files.run_dir`), or None.
        module: module of the command.
        reads: folders of the experiment that it needs, apart from its request.
        writes: files and folders that it writes, apart from its output.
        experiment: the experiment's folder, as messages to the user name it; None without one.
    """

    name: str
    request: Path
    output: Path
    cpus: int = 1
    claim: str | None = None
    module: str = "game_rl.experiments.jobs"
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    experiment: str | None = None


@dataclass(frozen=True)
class CompletedJob:
    """How a job's process has ended.

    Attributes:
        code: its exit code, or minus the number of the signal that killed it.
        where: the machine that it ran on.
        text: the end of its output, if it failed.
        cause: cause of its death, if more than the code is known.
    """

    job: Job
    code: int
    where: str
    text: str = ""
    cause: str = ""

    @property
    def was_stopped(self) -> bool:
        """Whether a signal ended it, saved or not, so that the job can be continued."""
        return self.code < 0 or self.code > 128


class Executor(Protocol):
    """Carries out jobs in parallel; a context manager that leaves nothing running."""

    @property
    def slots(self) -> int:
        """Number of jobs that it accepts at once."""

    def start(self, job: Job) -> None:
        """Start a job; only while fewer than `slots` are under way."""

    def wait(self, timeout_s: float) -> Sequence[CompletedJob]:
        """Return the jobs that ended since the last call; wait for one until the timeout."""

    def ask_to_stop(self) -> None:
        """Have all jobs save and end soon; `wait` reports each when it has."""

    def close(self) -> None:
        """End all jobs at once; may be called twice."""


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


def staging_folder(root: Path) -> Path:
    """Return the folder of the notes in an experiment's folder."""
    return root / "errands"
