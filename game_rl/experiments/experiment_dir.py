"""Every path of an experiment, and its lock."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from game_rl.errors import UsageError
from game_rl.executors.notes import errands_folder
from game_rl.run_dir import RunDir, RunIdentity


@dataclass(frozen=True)
class ExperimentDir:
    """The directory of one experiment."""

    root: Path

    @property
    def config(self) -> Path:
        """As resolved; its presence makes a directory an experiment."""
        return self.root / "experiment.yaml"

    @property
    def state(self) -> Path:
        return self.root / "state.json"

    @property
    def events(self) -> Path:
        """What happened, one JSON object a line; only ever appended to."""
        return self.root / "events.jsonl"

    @property
    def preflight(self) -> Path:
        return self.root / "preflight.json"

    @property
    def members(self) -> Path:
        return self.root / "members"

    @property
    def lake(self) -> Path:
        """Of all members, where they share one."""
        return self.root / "lake"

    @property
    def generations(self) -> Path:
        return self.root / "generations"

    @property
    def curves(self) -> Path:
        """Of the population; each member draws its own."""
        return self.root / "tensorboard"

    @property
    def champion(self) -> Path:
        """A run directory, once the experiment is complete."""
        return self.root / "champion"

    @property
    def champion_record(self) -> Path:
        return self.root / "champion.json"

    @property
    def validation(self) -> Path:
        """Episodes that the candidates have played."""
        return self.root / "validation"

    @property
    def errands(self) -> Path:
        """Notes of what is on its way from nodes that share no files with us."""
        return errands_folder(self.root)

    @property
    def superseded(self) -> Path:
        """Generations that were set aside when the population went back."""
        return self.root / "superseded"

    def member(self, folder: str) -> RunDir:
        return RunDir(self.members / folder)

    def generation(self, number: int) -> "GenerationDir":
        return GenerationDir(self.generations / f"{number:04d}")

    def kept_generations(self) -> list[int]:
        """Those with a record, ascending."""
        if not self.generations.is_dir():
            return []
        names = (path.name for path in self.generations.iterdir() if path.name.isdecimal())
        return sorted(n for n in map(int, names) if self.generation(n).record.exists())

    def exists(self) -> bool:
        return self.config.is_file()

    def identity(self) -> RunIdentity:
        return RunDir(self.root).identity()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only controller here; the kernel lets go when the process ends.

        Raises:
            UsageError: another one is.
        """
        try:
            with FileLock(self.root / "lock", timeout=0):
                yield
        except Timeout:
            raise UsageError(
                f"another experiment is running in {self.root}; wait until it has ended, stop it, "
                "or choose another place with --set run_dir=..."
            ) from None


@dataclass(frozen=True)
class GenerationDir:
    """What is left of one generation."""

    root: Path

    @property
    def record(self) -> Path:
        """Who trained, how good they are, who copies whom: written once."""
        return self.root / "record.json"

    def result(self, number: int) -> Path:
        """Of a member's stretch."""
        return self.root / f"{number:02d}.json"

    def output(self, number: int) -> Path:
        """What the member's process has printed."""
        return self.root / f"{number:02d}.log"

    @property
    def actions(self) -> Path:
        """What members and learner would do on the same observations."""
        return self.root / "actions.json"

    def checkpoint(self, number: int) -> Path:
        """A member's checkpoint, its files linked."""
        return self.root / f"{number:02d}"


def folder_of(number: int, *, copied_after: int | None = None) -> str:
    """The name of a member's run directory: `03`, or `03.g0007` for a copy made in generation 7."""
    return f"{number:02d}" if copied_after is None else f"{number:02d}.g{copied_after:04d}"


def copied_after(folder: str) -> int | None:
    """The generation in which a member's run directory was made as a copy; None if it is none."""
    _, is_copy, generation = folder.partition(".g")
    return int(generation) if is_copy and generation.isdecimal() else None


def find_experiment(root: Path) -> ExperimentDir:
    """Raise UsageError if `root` is no experiment's directory."""
    folder = ExperimentDir(root)
    if not folder.exists():
        raise UsageError(
            f"{root} is not the directory of an experiment: it has no {folder.config.name}; "
            "name the run_dir of one, such as runs/duel_population"
        )
    return folder


def run_of(root: Path) -> Path:
    """The run directory that a command on `root` means: of an experiment, its champion's.

    Raises:
        UsageError: it is an experiment that has no champion yet.
    """
    folder = ExperimentDir(root)
    if not folder.exists():
        return root
    if not folder.champion.is_dir():
        raise UsageError(
            f"{root} is an experiment that has no champion yet; name one of its members, such as "
            f"{folder.members / folder_of(0)}, or go on with --resume {root}"
        )
    return folder.champion
