"""The plan of a population: its members' runs, and what follows from their results."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from game_rl.config.changed_values import with_changed
from game_rl.config.experiments import Population
from game_rl.config.schema import RunConfig
from game_rl.experiments import decision
from game_rl.experiments.decision import fitness_seed, member_seed
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.jobs import Jobs, Origin
from game_rl.experiments.mutation import Value, values_of
from game_rl.experiments.plan import Apprentice, Results, Rules
from game_rl.experiments.records import CopyRecord, GenerationRecord, Member
from game_rl.experiments.tasks import Task


@dataclass(frozen=True)
class PopulationPlan:
    """A Plan: members train side by side, and the worst go on as copies of the best."""

    folder: ExperimentDir
    population: Population

    @property
    def rules(self) -> Rules:
        config = self.population.config
        return Rules(
            seed=config.seed,
            generations=config.generations,
            fitness=config.fitness,
            champion=config.champion,
            keep_generations=config.keep_generations,
            cpus_per_member=config.cpus_per_member,
        )

    def first_members(self) -> tuple[Member, ...]:
        config = self.population.config
        values = values_of(self.population.run.model_dump(mode="json"), config.mutation)
        return decision.first_members(config, values)

    def timesteps(self, generation: int) -> int:
        return generation * self.population.config.timesteps_per_generation

    def config_of(self, member: Member) -> RunConfig:
        seed = member_seed(self.population.config, member.number)
        places: dict[tuple[str, ...], Any] = {
            ("run_dir",): self.folder.member(member.folder).root,
            ("seed",): seed,
        }
        return with_changed(self.population.run, {**places, **_changes(member.values)})

    def run_id(self, member: Member) -> str | None:  # noqa: ARG002
        return None

    def until(self, member: Member, generation: int) -> int:  # noqa: ARG002
        return self.timesteps(generation)

    def stretch(self, member: Member, generation: int) -> Task:
        return self._jobs.stretch(
            member.number,
            member.folder,
            generation,
            until=self.until(member, generation),
            seed=fitness_seed(self.population.config.seed, generation),
        )

    def apprentice_of(self, generation: int) -> Member | None:  # noqa: ARG002
        return None

    def apprentice(
        self,
        generation: int,  # noqa: ARG002
        members: Sequence[Member],  # noqa: ARG002
        results: Results,  # noqa: ARG002
    ) -> Apprentice | None:
        return None

    def decide(
        self, generation: int, trained: Sequence[Member], results: Results
    ) -> GenerationRecord:
        return decision.decide(self.population.config, generation, trained, results)

    def members_after(self, record: GenerationRecord) -> tuple[Member, ...]:
        return decision.members_after(record)

    def copy(self, record: GenerationRecord, copied: CopyRecord) -> Task:
        return self._jobs.copy(
            copied.folder,
            Origin(copied.parent_folder, int(copied.parent_checkpoint)),
            {**copied.new_values, "seed": copied.seed},
            self.folder.generation(record.generation).output(copied.number),
        )

    @property
    def _jobs(self) -> Jobs:
        return Jobs(self.folder, self.population.config.cpus_per_member)


def _changes(values: dict[str, Value]) -> dict[tuple[str, ...], Value]:
    return {tuple(key.split(".")): value for key, value in values.items()}
