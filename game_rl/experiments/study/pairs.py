"""The runs of a study: their configs, and the jobs that bring them to their end."""

from collections.abc import Iterator
from dataclasses import dataclass

from game_rl.config.changed_values import with_changed
from game_rl.config.loader import dump_config
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key
from game_rl.config.studies import Study
from game_rl.executors.executor import Job
from game_rl.experiments.study.study_dir import StudyDir
from game_rl.experiments.tasks import Task
from game_rl.run_dir import write_atomic


@dataclass(frozen=True)
class Pair:
    """An arm with a seed."""

    arm: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.arm}, seed {self.seed}"


def pairs_of(study: Study) -> Iterator[Pair]:
    """Arm beside arm, seed after seed: what else the machine does meets all arms alike."""
    for seed in study.config.seeds:
        for arm in study.runs:
            yield Pair(arm, seed)


@dataclass(frozen=True)
class PairRuns:
    """Pairs as runs and jobs."""

    study: Study
    folder: StudyDir

    def config_of(self, pair: Pair) -> RunConfig:
        run_dir = self.folder.run(pair.arm, pair.seed).root
        changes: dict[Key, object] = {("seed",): pair.seed, ("run_dir",): run_dir}
        return with_changed(self.study.runs[pair.arm], changes)

    def begin(self, pair: Pair) -> None:
        """Write the run's config, unless it is there."""
        run_dir = self.folder.run(pair.arm, pair.seed)
        if not run_dir.exists():
            run_dir.root.mkdir(parents=True, exist_ok=True)
            write_atomic(run_dir.config, dump_config(self.config_of(pair)))

    def task(self, pair: Pair) -> Task:
        """Train to the end, and play the test."""
        config, run_dir = self.study.config, self.folder.run(pair.arm, pair.seed)
        result = self.folder.finished(pair.arm, pair.seed)
        arguments = {
            "--selection": config.selection,
            "--episodes": config.test.episodes,
            "--seed": config.test.seed,
            "--result": result,
        }
        words = tuple(str(word) for option in arguments.items() for word in option)
        job = Job(
            pair.name,
            ("member", "finish", str(run_dir.root), *words),
            self.folder.output(pair.arm, pair.seed),
            config.cpus_per_run,
        )
        return Task(job, result, run_dir)
