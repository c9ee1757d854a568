"""A study's folders, and its pairs of arm and seed."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from game_rl.config.experiments.experiment import dump_experiment
from game_rl.config.experiments.study_config import ExperimentArm, Study, StudyConfig
from game_rl.config.loader import dump_config
from game_rl.experiments.executors.executor import Job
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.jobs.requests import FinishRequest, request_file
from game_rl.experiments.tasks import Task
from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir, locked


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

    def locked(self) -> AbstractContextManager[None]:
        """Hold the study's lock, so that no other process carries it out meanwhile.

        The kernel releases the lock when the process ends.

        Raises:
            UsageError: another process holds it.
        """
        busy = (
            f"another process is carrying out the study in {self.runs}; wait until it has ended, "
            "or stop it"
        )
        return locked(self.runs / "lock", busy=busy)


def study_dir(config: StudyConfig) -> StudyDir:
    return StudyDir(config.results, config.run_dir)


@dataclass(frozen=True)
class Pair:
    """An arm and a seed."""

    arm: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.arm}, seed {self.seed}"


def pairs_of(study: Study) -> Iterator[Pair]:
    """Yield all arms of the first seed, then those of the next.

    So other work on the machine affects all arms alike.
    """
    for seed in study.config.seeds:
        for arm in study.arms:
            yield Pair(arm, seed)


def begun_task(study: Study, folder: StudyDir, pair: Pair) -> Task:
    """Write the config of a pair's run or experiment, unless it exists.

    Returns:
        The task that trains it to its end and plays the test.
    """
    config = study.config
    arm = study.arms[pair.arm]
    run_dir = folder.run(pair.arm, pair.seed)
    is_experiment = isinstance(arm, ExperimentArm)
    if isinstance(arm, ExperimentArm):
        path = ExperimentDir(run_dir.root).config
        text = dump_experiment(arm.of(pair.seed, run_dir.root))
    else:
        path = run_dir.config
        text = dump_config(arm.of(pair.seed, run_dir.root))
    if not path.exists():
        run_dir.root.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text)
    result = folder.finished(pair.arm, pair.seed)
    request = FinishRequest(
        root=folder.runs,
        run=run_dir.root,
        selection=config.selection,
        episodes=config.test.episodes,
        seed=config.test.seed,
        result=result,
    )
    job = Job(
        pair.name,
        request_file(result),
        folder.output(pair.arm, pair.seed),
        config.cpus_per_run,
        module="game_rl.experiments" if is_experiment else "game_rl.experiments.jobs",
    )
    return Task(job, request, result, run_dir)
