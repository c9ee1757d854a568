"""The pairs of a study: for each arm and seed a run or an experiment, and the job that ends it."""

from collections.abc import Iterator
from dataclasses import dataclass

from game_rl.config.experiments.experiment import dump_experiment
from game_rl.config.experiments.study_config import ExperimentArm, Study
from game_rl.config.loader import dump_config
from game_rl.executors.executor import Job
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.study.study_dir import StudyDir
from game_rl.experiments.tasks import Task
from game_rl.run_dir import write_atomic


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


@dataclass(frozen=True)
class PairRuns:
    """Makes the folders and jobs of pairs."""

    study: Study
    folder: StudyDir

    def begin(self, pair: Pair) -> None:
        """Write the config of a pair's run or experiment, unless it exists."""
        arm, run_dir = self.study.arms[pair.arm], self.folder.run(pair.arm, pair.seed)
        if isinstance(arm, ExperimentArm):
            path = ExperimentDir(run_dir.root).config
            text = dump_experiment(arm.of(pair.seed, run_dir.root))
        else:
            path, text = run_dir.config, dump_config(arm.of(pair.seed, run_dir.root))
        if not path.exists():
            run_dir.root.mkdir(parents=True, exist_ok=True)
            write_atomic(path, text)

    def task(self, pair: Pair) -> Task:
        """Return the task that trains a pair to its end and plays the test."""
        config, run_dir = self.study.config, self.folder.run(pair.arm, pair.seed)
        result = self.folder.finished(pair.arm, pair.seed)
        arguments: dict[str, object] = {
            "--episodes": config.test.episodes,
            "--seed": config.test.seed,
            "--result": result,
        }
        step = "finish-experiment"
        if not isinstance(self.study.arms[pair.arm], ExperimentArm):
            step, arguments = "finish", {"--selection": config.selection, **arguments}
        words = tuple(str(word) for option in arguments.items() for word in option)
        job = Job(
            pair.name,
            ("member", step, str(run_dir.root), *words),
            self.folder.output(pair.arm, pair.seed),
            config.cpus_per_run,
        )
        return Task(job, result, run_dir)
