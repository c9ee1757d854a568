"""The runs that a population is made of: their configs, and the jobs that bring them on."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from game_rl.config.changed_values import with_changed
from game_rl.config.experiments import Population
from game_rl.config.loader import dump_config
from game_rl.config.schema import RunConfig
from game_rl.executors.executor import Job
from game_rl.experiments.decision import fitness_seed, member_seed
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.mutation import Value
from game_rl.experiments.records import CopyRecord, GenerationRecord, Member, TrainedMember
from game_rl.experiments.tasks import Task
from game_rl.run_dir import write_atomic
from game_rl.seeds import seed_for


@dataclass(frozen=True)
class MemberRuns:
    """The members of one population as runs and jobs."""

    folder: ExperimentDir
    population: Population

    def begin(self, member: Member) -> None:
        """Write the config of a member of the first generation, unless it is there."""
        run_dir = self.folder.member(member.folder)
        if not run_dir.exists():
            run_dir.root.mkdir(parents=True, exist_ok=True)
            write_atomic(run_dir.config, dump_config(self.config_of(member)))

    def config_of(self, member: Member) -> RunConfig:
        """Of a member that is no copy."""
        seed = member_seed(self.population.config, member.number)
        places: dict[tuple[str, ...], Any] = {
            ("run_dir",): self.folder.member(member.folder).root,
            ("seed",): seed,
        }
        return with_changed(self.population.run, {**places, **_changes(member.values)})

    def stretch(self, member: Member, generation: int) -> Task:
        """Train up to the end of a generation, and play there."""
        config = self.population.config
        place, run_dir = self.folder.generation(generation), self.folder.member(member.folder)
        result = place.result(member.number)
        arguments = {
            "--until": generation * config.timesteps_per_generation,
            "--seed": fitness_seed(config, generation),
            "--result": result,
        }
        job = self._job(
            f"member {member.folder} in generation {generation}",
            ("member", "train", run_dir.root, *_flat(arguments)),
            place.output(member.number),
            reads=run_dir.root,
            writes=(run_dir.root, result),
        )
        return Task(job, result, run_dir)

    def copy(self, record: GenerationRecord, copied: CopyRecord) -> Task:
        """Fork a parent's checkpoint into a new run directory."""
        run_dir = self.folder.member(copied.folder)
        parent = self.folder.member(copied.parent_folder).root
        values = {**copied.new_values, "seed": copied.seed}
        arguments = {
            "--at": int(copied.parent_checkpoint),
            "--to": run_dir.root,
            "--values": json.dumps(values),
            "--known-as": str(parent.absolute()),
        }
        job = self._job(
            f"copy {copied.folder} of {copied.parent_folder}",
            ("member", "copy", parent, *_flat(arguments)),
            self.folder.generation(record.generation).output(copied.number),
            reads=parent,
            writes=(run_dir.root,),
        )
        return Task(job, run_dir.config)

    def validation(self, member: TrainedMember) -> Task:
        """Play a candidate's episodes, on seeds that selected nothing."""
        return self._play(member, "validation")

    def final(self, member: TrainedMember) -> Task:
        """Play the champion's episodes, on seeds that it was not chosen on."""
        return self._play(member, "final")

    def _play(self, member: TrainedMember, what: str) -> Task:
        config = self.population.config
        assert member.checkpoint is not None
        place = self.folder.validation
        result = place / f"{what}-{member.number:02d}.json"
        arguments = {
            "--checkpoint": int(member.checkpoint),
            "--episodes": config.champion.episodes,
            "--seed": seed_for(config.seed, what),
            "--result": result,
        }
        root = self.folder.member(member.folder).root
        job = self._job(
            f"{what} of member {member.folder}",
            ("member", "play", root, *_flat(arguments)),
            place / f"{what}-{member.number:02d}.log",
            reads=root,
            writes=(result,),
        )
        return Task(job, result)

    def _job(
        self,
        name: str,
        arguments: tuple[str | Path, ...],
        output: Path,
        *,
        reads: Path,
        writes: tuple[Path, ...],
    ) -> Job:
        cpus = self.population.config.cpus_per_member
        return Job(name, arguments, output, cpus, reads=(reads,), writes=writes)


def _changes(values: dict[str, Value]) -> dict[tuple[str, ...], Value]:
    return {tuple(key.split(".")): value for key, value in values.items()}


def _flat(arguments: dict[str, object]) -> tuple[str | Path, ...]:
    words = (word for pair in arguments.items() for word in pair)
    return tuple(word if isinstance(word, Path) else str(word) for word in words)
