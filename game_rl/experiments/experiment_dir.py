"""All paths of an experiment, and its lock."""

import os
import shlex
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from game_rl.config.schema_guide import meant_folder
from game_rl.errors import UsageError
from game_rl.experiments.jobs.job_files import staging_folder
from game_rl.files.run_dir import RunDir, RunIdentity, has_file, locked

_RUNS = ("members", "champion")  # folders with runs of the experiment


@dataclass(frozen=True)
class ExperimentDir:
    """The directory of one experiment."""

    root: Path

    @property
    def config(self) -> Path:
        """The resolved config; a directory that has one is an experiment's."""
        return self.root / "experiment.yaml"

    @property
    def state(self) -> Path:
        return self.root / "state.json"

    @property
    def events(self) -> Path:
        """The events, one JSON object a line; the file is only ever appended to."""
        return self.root / "events.jsonl"

    @property
    def preflight(self) -> Path:
        return self.root / "preflight.json"

    @property
    def members(self) -> Path:
        return self.root / "members"

    @property
    def lake(self) -> Path:
        """The Lake of all members, if they share one."""
        return self.root / "lake"

    @property
    def generations(self) -> Path:
        return self.root / "generations"

    @property
    def curves(self) -> Path:
        """The experiment's TensorBoard curves; each member has its own in its run directory."""
        return self.root / "tensorboard"

    @property
    def champion(self) -> Path:
        """The champion's run directory, which exists once the experiment is complete."""
        return self.root / "champion"

    @property
    def champion_record(self) -> Path:
        return self.root / "champion.json"

    @property
    def validation(self) -> Path:
        """Results of the episodes that candidates for the champion have played."""
        return self.root / "validation"

    @property
    def staging(self) -> Path:
        """Notes on files that are being fetched from nodes without a shared file system."""
        return staging_folder(self.root)

    @property
    def superseded(self) -> Path:
        """Everything that was set aside when the population went back."""
        return self.root / "superseded"

    def member(self, folder: str) -> RunDir:
        return RunDir(self.members / folder)

    def generation(self, number: int) -> "GenerationDir":
        return GenerationDir(self.generations / f"{number:04d}")

    def kept_generations(self) -> list[int]:
        """Numbers of the generations that have a record, ascending."""
        if not self.generations.is_dir():
            return []
        names = (path.name for path in self.generations.iterdir() if path.name.isdecimal())
        return sorted(n for n in map(int, names) if self.generation(n).record.exists())

    def exists(self) -> bool:
        return has_file(self.config)

    def identity(self) -> RunIdentity:
        return RunDir(self.root).identity()

    @property
    def is_locked(self) -> bool | None:
        """Whether a process controls the experiment; None if this user cannot find out."""
        return RunDir(self.root).is_locked

    def locked(self) -> AbstractContextManager[None]:
        """Hold the experiment's lock, so that no other process controls it meanwhile.

        The kernel releases the lock when the process ends.

        Raises:
            UsageError: another process holds it.
        """
        busy = (
            f"another experiment is running in {self.root}; wait until it has ended, stop it, or "
            "choose another place with --set run_dir=..."
        )
        return locked(self.root / "lock", busy=busy)


@dataclass(frozen=True)
class GenerationDir:
    """The directory of one generation: its record, results, logs and checkpoints."""

    root: Path

    @property
    def record(self) -> Path:
        """The generation's record: members, ranking and copies; written once."""
        return self.root / "record.json"

    def result(self, number: int) -> Path:
        """Result of a member's stretch."""
        return self.root / f"{number:02d}.json"

    def output(self, number: int) -> Path:
        """Output of the member's process."""
        return self.root / f"{number:02d}.log"

    @property
    def actions(self) -> Path:
        """The actions that members and learner choose on the same observations, compared."""
        return self.root / "actions.json"

    def checkpoint(self, number: int) -> Path:
        """A member's checkpoint, whose files are hard links."""
        return self.root / f"{number:02d}"


def folder_of(number: int, *, copied_after: int | None = None) -> str:
    """Return a member's folder name: `03`, or `03.g0007` for a copy made after generation 7."""
    if copied_after is None:
        return f"{number:02d}"
    return f"{number:02d}.g{copied_after:04d}"


def copied_after(folder: str) -> int | None:
    """Return the generation after which a member's folder was made as a copy, or None."""
    _, _, generation = folder.partition(".g")
    if generation.isdecimal():
        return int(generation)
    return None


def find_experiment(root: Path) -> ExperimentDir:
    """Raise UsageError if `root` is not the directory of an experiment."""
    folder = ExperimentDir(root)
    if not folder.exists():
        raise UsageError(
            f"{root} is not the directory of an experiment: it has no {folder.config.name}; "
            f"{meant_folder(root) or 'name the run_dir of one, such as runs/duel_population'}"
        )
    return folder


def refuse_run_of_experiment(root: Path) -> None:
    """Raise UsageError if `root` is a member, the learner or the champion of an experiment.

    Only the experiment knows how far each of its runs may train.
    """
    run = root.resolve()
    for above in run.parents:
        if ExperimentDir(above).exists() and run.relative_to(above).parts[0] in _RUNS:
            shown = above if root.is_absolute() else Path(os.path.relpath(above))
            raise UsageError(
                f"{root} is a run of the experiment in {shown}, which decides how far it trains: "
                f"continue the experiment with {RunDir(shown).way_on}, or train a copy of this run "
                f"with --fork {shlex.quote(str(root))} --set run_dir=runs/NAME"
            )


def run_of(root: Path) -> Path:
    """Return the run directory that `root` stands for: of an experiment, its champion's.

    Raises:
        UsageError: `root` is an experiment that has no champion yet.
    """
    folder = ExperimentDir(root)
    if not folder.exists():
        return root
    if not folder.champion.is_dir():
        raise UsageError(
            f"{root} is an experiment that has no champion yet; name one of its members, such as "
            f"{folder.members / folder_of(0)}, or continue it with {RunDir(root).way_on}"
        )
    return folder.champion
