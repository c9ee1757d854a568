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
from game_rl.experiments.training_on import best_of, recorded, trained_on_folder


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
            extra_candidate=None if config.train_on is None else config.members,
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

    def until(self, member: Member, generation: int) -> int:
        if self._is_trained_on(member):
            return self.population.config.total_timesteps
        return self.timesteps(generation)

    def stretch(self, member: Member, generation: int) -> Task:
        # whoever trains on plays games that selected nobody
        games = generation + 1 if self._is_trained_on(member) else generation
        return self._jobs.stretch(
            member.number,
            member.folder,
            generation,
            until=self.until(member, generation),
            seed=fitness_seed(self.population.config.seed, games),
        )

    def apprentice_of(self, generation: int) -> Member | None:
        config = self.population.config
        if config.train_on is None or generation < config.generations:
            return None
        return Member(number=config.members, folder=trained_on_folder(generation), values={})

    def apprentice(
        self, generation: int, members: Sequence[Member], results: Results
    ) -> Apprentice | None:
        """The best member goes on: with its seed, so as the run that it would have become."""
        found, config = self.apprentice_of(generation), self.population.config
        best = best_of(members, results, config.fitness.metric)
        if found is None or best is None or best.checkpoint is None:
            return None
        made_by = self._jobs.copy(
            found.folder,
            Origin(best.folder, int(best.checkpoint)),
            {"evaluation.every_timesteps": config.total_timesteps},
            self.folder.generation(generation).output(found.number),
        )
        return Apprentice(found.model_copy(update={"values": best.values}), made_by)

    def decide(
        self, generation: int, trained: Sequence[Member], results: Results
    ) -> GenerationRecord:
        config = self.population.config
        record = decision.decide(config, generation, trained, results)
        members = [member for member in trained if not self._is_trained_on(member)]
        return recorded(record, best_of(members, results, config.fitness.metric))

    def members_after(self, record: GenerationRecord) -> tuple[Member, ...]:
        after = decision.members_after(record)
        return tuple(member for member in after if not self._is_trained_on(member))

    def copy(self, record: GenerationRecord, copied: CopyRecord) -> Task:
        return self._jobs.copy(
            copied.folder,
            Origin(copied.parent_folder, int(copied.parent_checkpoint)),
            {**copied.new_values, "seed": copied.seed},
            self.folder.generation(record.generation).output(copied.number),
        )

    def _is_trained_on(self, member: Member) -> bool:
        return member.number == self.population.config.members

    @property
    def _jobs(self) -> Jobs:
        return Jobs(self.folder, self.population.config.cpus_per_member)


def _changes(values: dict[str, Value]) -> dict[tuple[str, ...], Value]:
    return {tuple(key.split(".")): value for key, value in values.items()}
