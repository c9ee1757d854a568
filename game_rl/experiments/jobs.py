"""The jobs that an experiment gives to an executor: stretches, copies and episodes of members."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from game_rl.executors.executor import Job
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import GenerationRecord
from game_rl.experiments.tasks import Task


@dataclass(frozen=True)
class Origin:
    """The checkpoint that a copy begins from, and the parts that it takes over.

    Attributes:
        folder: folder of the parent's run.
        timesteps: timestep of the parent's checkpoint.
        fork: keys of the copy's section `fork` in addition to `run`, or None.
        run_id: id of the copy, or None to draw one at random.
    """

    folder: str
    timesteps: int
    fork: Mapping[str, object] | None = None
    run_id: str | None = None


@dataclass(frozen=True)
class Jobs:
    """Makes tasks for the runs in an experiment's folder.

    Attributes:
        cpus: cores of each job.
    """

    folder: ExperimentDir
    cpus: int

    def stretch(self, number: int, folder: str, generation: int, *, until: int, seed: int) -> Task:
        """Return the task that trains a run up to its timestep `until`, and plays episodes there.

        Args:
            seed: seed of the episodes.
        """
        place, run_dir = self.folder.generation(generation), self.folder.member(folder)
        result = place.result(number)
        arguments = {"--until": until, "--seed": seed, "--result": result}
        job = self._job(
            f"member {folder} in generation {generation}",
            ("member", "train", run_dir.root, *_flat(arguments)),
            place.output(number),
            reads=run_dir.root,
            writes=(run_dir.root, result),
        )
        return Task(job, result, run_dir)

    def copy(self, folder: str, origin: Origin, values: Mapping[str, object], output: Path) -> Task:
        """Return the task that forks a checkpoint into a new run directory.

        Args:
            values: values of the fork's config, by dotted key.
        """
        run_dir, parent = self.folder.member(folder), self.folder.member(origin.folder).root
        arguments: dict[str, object] = {
            "--at": origin.timesteps,
            "--to": run_dir.root,
            "--values": json.dumps(values),
            "--known-as": str(parent.absolute()),
        }
        if origin.fork:
            arguments["--fork"] = json.dumps(origin.fork)
        if origin.run_id is not None:
            arguments["--id"] = origin.run_id
        job = self._job(
            f"copy {folder} of {origin.folder}",
            ("member", "copy", parent, *_flat(arguments)),
            output,
            reads=parent,
            writes=(run_dir.root,),
        )
        return Task(job, run_dir.config)

    def play(
        self, number: int, folder: str, checkpoint: str, *, what: str, episodes: int, seed: int
    ) -> Task:
        """Return the task that plays episodes with a checkpoint.

        Args:
            what: what the episodes are for, which the result's file name begins with.
        """
        place, run_dir = self.folder.validation, self.folder.member(folder)
        result = place / f"{what}-{number:02d}.json"
        arguments = {
            "--checkpoint": int(checkpoint),
            "--episodes": episodes,
            "--seed": seed,
            "--result": result,
        }
        job = self._job(
            f"{what} of member {folder}",
            ("member", "play", run_dir.root, *_flat(arguments)),
            place / f"{what}-{number:02d}.log",
            reads=run_dir.root,
            writes=(result,),
        )
        return Task(job, result)

    def actions(self, record: GenerationRecord, *, observations: int, seed: int) -> Task | None:
        """Return the task that compares the actions of a generation's runs on rows of their Lake.

        None if fewer than two runs have finite weights.
        """
        place, members = self.folder.generation(record.generation), self.folder.members
        asked = {m.folder: int(m.checkpoint) for m in record.members if m.checkpoint is not None}
        if len(asked) < 2:
            return None
        arguments = {
            "--checkpoints": json.dumps(asked),
            "--lake": self.folder.lake,
            "--observations": observations,
            "--seed": seed,
            "--result": place.actions,
        }
        job = Job(
            f"actions in generation {record.generation}",
            ("member", "actions", members, *_flat(arguments)),
            place.actions.with_suffix(".log"),
            self.cpus,
            reads=(*(members / name for name in asked), self.folder.lake),
            writes=(place.actions,),
            experiment=str(self.folder.root),
        )
        return Task(job, place.actions)

    def _job(
        self,
        name: str,
        arguments: tuple[str | Path, ...],
        output: Path,
        *,
        reads: Path,
        writes: tuple[Path, ...],
    ) -> Job:
        return Job(
            name,
            arguments,
            output,
            self.cpus,
            reads=(reads,),
            writes=writes,
            experiment=str(self.folder.root),
        )


def _flat(arguments: Mapping[str, object]) -> tuple[str | Path, ...]:
    words = (word for pair in arguments.items() for word in pair)
    return tuple(word if isinstance(word, Path) else str(word) for word in words)
