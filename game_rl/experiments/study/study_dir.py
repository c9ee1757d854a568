"""All paths of a study, in a folder to keep and a folder that may be deleted."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from game_rl.config.experiments.study_config import StudyConfig
from game_rl.errors import UsageError
from game_rl.run_dir import RunDir


@dataclass(frozen=True)
class StudyDir:
    """The two folders of one study.

    Attributes:
        results: the registration and the results, to be committed.
        runs: run directories, which may be deleted once their results exist.
    """

    results: Path
    runs: Path

    @property
    def registration(self) -> Path:
        return self.results / "registered.json"

    def result(self, arm: str, seed: int) -> Path:
        """Result of an (arm, seed), written once."""
        return self.results / "results" / f"{arm}-{seed}.json"

    def run(self, arm: str, seed: int) -> RunDir:
        return RunDir(self.runs / f"{arm}-{seed}")

    def finished(self, arm: str, seed: int) -> Path:
        """File that the run's process leaves at its end."""
        return self.runs / f"{arm}-{seed}.json"

    def output(self, arm: str, seed: int) -> Path:
        """Output of the run's process."""
        return self.runs / f"{arm}-{seed}.log"

    @property
    def registration_of_runs(self) -> Path:
        """The SHA-256 of the registration that the runs belong to."""
        return self.runs / "registration.sha256"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the study's lock, so that no other process carries it out meanwhile.

        The kernel releases the lock when the process ends.

        Raises:
            UsageError: another process holds it.
        """
        try:
            with FileLock(self.runs / "lock", timeout=0):
                yield
        except Timeout:
            raise UsageError(
                f"another process is carrying out the study in {self.runs}; wait until it has "
                "ended, or stop it"
            ) from None


def study_dir(config: StudyConfig) -> StudyDir:
    return StudyDir(config.results, config.run_dir)
