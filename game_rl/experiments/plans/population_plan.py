"""The plan of a population."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from game_rl.config.algorithms import PPOConfig
from game_rl.config.experiments.population_files import Population
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import with_changed
from game_rl.errors import NobodyLeftError
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.plans import decision
from game_rl.experiments.plans.decision import (
    Trained,
    best_trained,
    counted_from,
    fitness_seed,
    injection,
    is_injected,
    member_seed,
    replaced,
    trained_on_folder,
    trained_on_record,
    with_injected,
    with_learner,
)
from game_rl.experiments.plans.evolution import values_of
from game_rl.experiments.plans.learner_plan import Learner
from game_rl.experiments.plans.member_runs import (
    counting_anew,
    exploration_from,
    run_id,
    sections_of,
)
from game_rl.experiments.plans.plan import ExtraRun, Results, Rules
from game_rl.experiments.records import (
    CopyRecord,
    GenerationRecord,
    Member,
    TrainedMember,
    Value,
    read_record,
)
from game_rl.experiments.tasks import CopyOrigin, MemberTasks, Task


@dataclass(frozen=True)
class PopulationPlan:
    """A Plan: members train side by side, and copies of the best replace the worst.

    With a learner, the members feed one Lake, from which it learns. After every `inject_every`
    generations, a copy of the learner replaces the worst member.
    """

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
            frame_skip=self.population.run.env.frame_skip,
            shares_lake=config.learner is not None,
            extra_candidate=config.members if config.has_extra_run else None,
        )

    def first_members(self) -> tuple[Member, ...]:
        config = self.population.config
        return decision.first_members(config, self._values_in(self.population.run))

    def timesteps(self, generation: int) -> int:
        return generation * self.population.config.timesteps_per_generation

    def config_of(self, member: Member) -> RunConfig:
        seed = member_seed(self.population.config, member.number)
        places: dict[tuple[str, ...], Any] = {
            ("run_dir",): self.folder.member(member.folder).root,
            ("seed",): seed,
        }
        return with_changed(self.population.run, {**places, **_changes(member.values)})

    def run_id(self, member: Member) -> str | None:
        """Return None without a learner: then no rows of a Lake are drawn in the order of ids."""
        return None if self._learner is None else run_id(self.folder.identity().id, member)

    def until(self, member: Member, generation: int) -> int:
        learner = self._learner
        if learner is not None and member.number == learner.number:
            return learner.stretch_timesteps
        if self._is_trained_on(member):
            return self.population.config.total_timesteps
        return self.timesteps(generation - member.counts_from)

    def stretch(self, member: Member, generation: int) -> Task:
        # the member that trains on plays episodes that were not used for selection
        games = generation + 1 if self._is_trained_on(member) else generation
        return self._jobs.stretch(
            member.number,
            member.folder,
            generation,
            until=self.until(member, generation),
            seed=fitness_seed(self.population.config.seed, games),
        )

    def extra_member(self, generation: int) -> Member | None:
        """Return the learner or, after the last generation, the member that trains on.

        No experiment has both.
        """
        config = self.population.config
        if self._learner is not None:
            return self._learner.member(generation)
        if config.train_on is None or generation < config.generations:
            return None
        return Member(number=config.members, folder=trained_on_folder(generation), values={})

    def extra_run(
        self, generation: int, members: Sequence[Member], results: Results
    ) -> ExtraRun | None:
        found = self.extra_member(generation)
        if found is None:
            return None
        best = self._best(generation, self._trained(generation, members, results))
        if self._learner is not None:
            return self._learner.extra_run(generation, best)
        return self._trained_on(generation, found, best)

    def decide(
        self, generation: int, trained: Sequence[Member], results: Results
    ) -> GenerationRecord:
        config, found = self.population.config, self._trained(generation, trained, results)
        of_members = Trained(found.before, found.members[: config.members])
        alone = decision.decide(config, generation, of_members)
        if len(found.members) == config.members:
            return alone
        best, last = self._best(generation, of_members), found.members[-1]
        if self._learner is None:
            counted = counted_from(best, found, last.folder)
            return with_learner(alone, counted, trained_on_record(last.number, best))
        record = with_learner(alone, found, self._learner.record(generation, best))
        child = replaced(config, alone)
        if not is_injected(config, generation) or child is None or last.checkpoint is None:
            return record
        return with_injected(record, injection(config, generation, child, last))

    def members_after(self, record: GenerationRecord) -> tuple[Member, ...]:
        return decision.members_after(record)

    def copy(self, record: GenerationRecord, copied: CopyRecord) -> Task:
        at, counters = int(copied.parent_checkpoint), copied.counters
        member = Member(number=copied.number, folder=copied.folder, values=copied.new_values)
        fork: dict[str, object] = {"weight_noise": copied.weight_noise, "counters": counters}
        if counters == "new":
            values = sections_of(self._config(copied.new_values, record.generation))
            fork |= {"optimiser": "new"}
        else:
            parent = next(m for m in record.members if m.number == copied.parent)
            values = dict(self._values_in(self._config(copied.new_values, parent.counts_from)))
            if self._learner is not None:
                values["lake.path"] = str(self.folder.lake.absolute())
        return self._jobs.copy(
            copied.folder,
            CopyOrigin(copied.parent_folder, at, fork, self.run_id(member)),
            {**values, "seed": copied.seed},
            self.folder.generation(record.generation).output(copied.number),
        )

    def _is_trained_on(self, member: Member) -> bool:
        config = self.population.config
        return config.train_on is not None and member.number == config.members

    def _trained_on(self, generation: int, member: Member, best: TrainedMember) -> ExtraRun:
        """Fork the best member with its own seed: the fork is what its run would have become."""
        assert best.checkpoint is not None
        made_by = self._jobs.copy(
            member.folder,
            CopyOrigin(best.folder, int(best.checkpoint)),
            {"evaluation.every_timesteps": self.population.config.total_timesteps},
            self.folder.generation(generation).output(member.number),
        )
        return ExtraRun(member.model_copy(update={"values": best.values}), made_by)

    @property
    def _learner(self) -> Learner | None:
        config = self.population.config
        if self.population.learner is None:
            return None
        return Learner(
            folder=self.folder,
            run=self.population.learner,
            seed=config.seed,
            number=config.members,
            cpus=config.cpus_per_member,
            starts="kept",
            is_taught=config.is_taught,
            shares=config.member_shares,
        )

    @property
    def _jobs(self) -> MemberTasks:
        return MemberTasks(self.folder, self.population.config.cpus_per_member)

    def _trained(self, generation: int, members: Sequence[Member], results: Results) -> Trained:
        before = read_record(self.folder.generation(generation - 1).record, GenerationRecord)
        return decision.trained(self.population.config.fitness.metric, members, results, before)

    def _best(self, generation: int, members: Trained) -> TrainedMember:
        """Return the best member, or raise NobodyLeftError if none has finite weights."""
        best = best_trained(members.members)
        if best is None:
            raise NobodyLeftError(decision.all_non_finite(generation))
        return best

    def _values_in(self, run: RunConfig) -> dict[str, Value]:
        dumped = run.model_dump(mode="json")
        return values_of(dumped, self.population.config.mutation.values)

    def _config(self, values: Mapping[str, Value], counts_from: int) -> RunConfig:
        """Return the config of a run that begins at timestep 0, after generation `counts_from`.

        The values of a schedule describe the member's whole training; the run gets what is left.
        """
        run = with_changed(self.population.run, _changes(values))
        if not counts_from:
            return run
        at, algorithm = self.timesteps(counts_from), run.algorithm
        assert not isinstance(algorithm, PPOConfig)  # the config refuses it, with a learner
        total = run.total_timesteps
        exploration = exploration_from(algorithm.exploration, at=at, total_timesteps=total)
        return counting_anew(run, at=at, exploration=exploration)


def _changes(values: Mapping[str, Value]) -> dict[tuple[str, ...], Value]:
    return {tuple(key.split(".")): value for key, value in values.items()}
