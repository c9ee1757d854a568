"""The plan of a mixture: its rounds, its learner, and who goes on as a clone of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from game_rl.config.mixtures import Mixture
from game_rl.config.schema import RunConfig
from game_rl.errors import NobodyLeftError
from game_rl.experiments import decision
from game_rl.experiments.cloning import clones
from game_rl.experiments.decision import fitness_seed, scored_member, trained_member
from game_rl.experiments.experiment_dir import ExperimentDir, copied_after, folder_of
from game_rl.experiments.jobs import Jobs, Origin
from game_rl.experiments.mixture_runs import (
    clone_config,
    learner_config,
    learner_folder,
    member_config,
    run_id,
    run_seed,
    sections_of,
    teacher_section,
)
from game_rl.experiments.plan import Apprentice, Results, Rules
from game_rl.experiments.records import (
    CopyRecord,
    GenerationRecord,
    LearnerRecord,
    Member,
    TrainedMember,
    read_record,
)
from game_rl.experiments.selection import Copy, ranked
from game_rl.experiments.tasks import Task


@dataclass(frozen=True)
class MixturePlan:
    """A Plan: members play apart, the learner learns from all of it, members become its clones."""

    folder: ExperimentDir
    mixture: Mixture

    @property
    def rules(self) -> Rules:
        config = self.mixture.config
        return Rules(
            seed=config.seed,
            generations=config.rounds,
            fitness=config.fitness,
            champion=config.champion,
            keep_generations=config.keep_rounds,
            cpus_per_member=config.cpus_per_member,
            kind="mixture",
        )

    def first_members(self) -> tuple[Member, ...]:
        numbers = range(self.mixture.config.members)
        return tuple(Member(number=n, folder=folder_of(n), values={}) for n in numbers)

    def timesteps(self, generation: int) -> int:
        return generation * self.mixture.config.timesteps_per_round

    def config_of(self, member: Member) -> RunConfig:
        return member_config(self.folder, self.mixture, member)

    def run_id(self, member: Member) -> str | None:
        return run_id(self.folder.identity().id, member)

    def until(self, member: Member, generation: int) -> int:
        if member.number == self._learner_number:
            return self.mixture.config.learner_per_round.timesteps
        return self.timesteps(generation - (copied_after(member.folder) or 0))

    def stretch(self, member: Member, generation: int) -> Task:
        until = self.until(member, generation)
        seed = fitness_seed(self.mixture.config.seed, generation)
        return self._jobs.stretch(member.number, member.folder, generation, until=until, seed=seed)

    def apprentice_of(self, generation: int) -> Member:
        return Member(number=self._learner_number, folder=learner_folder(generation), values={})

    def apprentice(
        self, generation: int, members: Sequence[Member], results: Results
    ) -> Apprentice | None:
        best, before = self._best(generation, members, results), self._learner_before(generation)
        member = self.apprentice_of(generation)
        teacher = self._teacher(best)
        config = learner_config(self.folder, self.mixture, member.folder, teacher)
        output = self.folder.generation(generation).output(member.number)
        if self.mixture.config.learner_starts == "best_member":
            fork = {"optimiser": "new", "counters": "new"}
            origin = self._origin(best, member, fork)
            made_by = self._jobs.copy(member.folder, origin, sections_of(config), output)
        elif before is not None:
            values = {"seed": config.seed, "algorithm.teacher": teacher_section(teacher)}
            origin = self._origin(before, member, {"counters": "new"})
            made_by = self._jobs.copy(member.folder, origin, values, output)
        else:
            return Apprentice(member, config)
        return Apprentice(member, made_by)

    def decide(
        self, generation: int, trained: Sequence[Member], results: Results
    ) -> GenerationRecord:
        members = [self._trained(member, results) for member in trained]
        scored = [scored_member(member) for member in members]
        found: list[Copy] = []
        if generation < self.mixture.config.rounds:
            found = clones(scored[:-1], scored[-1], self.mixture.config.clone)
        by_number = {member.number: member for member in members}
        return GenerationRecord(
            generation=generation,
            timesteps=self.timesteps(generation),
            seed=fitness_seed(self.mixture.config.seed, generation),
            ranking=tuple(member.number for member in ranked(scored)),
            members=tuple(members),
            copies=tuple(self._copied(generation, by_number, copy) for copy in found),
            learner=self._learner_record(generation, trained[:-1], results),
        )

    def members_after(self, record: GenerationRecord) -> tuple[Member, ...]:
        after = decision.members_after(record)
        return tuple(member for member in after if member.number != self._learner_number)

    def copy(self, record: GenerationRecord, copied: CopyRecord) -> Task:
        config = clone_config(self.mixture, copied.folder, generation=record.generation)
        parent = next(m for m in record.members if m.number == copied.parent)
        member = Member(number=copied.number, folder=copied.folder, values={})
        fork = {"optimiser": self.mixture.config.clone.optimiser, "counters": "new"}
        return self._jobs.copy(
            copied.folder,
            self._origin(parent, member, fork),
            sections_of(config),
            self.folder.generation(record.generation).output(copied.number),
        )

    # ------------------------------------------------------------------ the learner

    @property
    def _learner_number(self) -> int:
        """It follows on the members'."""
        return self.mixture.config.members

    def _learner_before(self, generation: int) -> TrainedMember | None:
        """Whom the learner of a round goes on from; None: it begins by itself."""
        record = read_record(self.folder.generation(generation - 1).record, GenerationRecord)
        if record is None or self.mixture.config.learner_starts != "kept":
            return None
        (before,) = (m for m in record.members if m.number == self._learner_number)
        return before if before.checkpoint is not None else None

    def _learner_record(
        self, generation: int, members: Sequence[Member], results: Results
    ) -> LearnerRecord:
        best = self._best(generation, members, results)
        is_copy = self.mixture.config.learner_starts == "best_member"
        parent = best if is_copy else self._learner_before(generation)
        return LearnerRecord(
            number=self._learner_number,
            parent_folder=None if parent is None else parent.folder,
            parent_checkpoint=None if parent is None else parent.checkpoint,
            teacher=best.folder if self.mixture.config.is_taught else None,
        )

    def _teacher(self, best: TrainedMember) -> str | None:
        if not self.mixture.config.is_taught:
            return None
        assert best.checkpoint is not None
        return f"{self.folder.member(best.folder).root.absolute()}@{int(best.checkpoint)}"

    # ------------------------------------------------------------------ members

    @property
    def _jobs(self) -> Jobs:
        return Jobs(self.folder, self.mixture.config.cpus_per_member)

    def _trained(self, member: Member, results: Results) -> TrainedMember:
        metric = self.mixture.config.fitness.metric
        return trained_member(metric, member, results[member.number])

    def _best(self, generation: int, members: Sequence[Member], results: Results) -> TrainedMember:
        """Of a round's members.

        Raises:
            NobodyLeftError: none has finite weights.
        """
        trained = {member.number: self._trained(member, results) for member in members}
        best = trained[ranked([scored_member(member) for member in trained.values()])[0].number]
        if best.fitness is None:
            raise NobodyLeftError(
                f"the weights of all members became non-finite in round {generation}; begin "
                "another mixture with a lower algorithm.learning_rate of member"
            )
        return best

    def _origin(self, parent: TrainedMember, child: Member, fork: Mapping[str, str]) -> Origin:
        assert parent.checkpoint is not None
        return Origin(parent.folder, int(parent.checkpoint), fork, self.run_id(child))

    def _copied(
        self, generation: int, by_number: dict[int, TrainedMember], copy: Copy
    ) -> CopyRecord:
        parent, child = by_number[copy.parent], by_number[copy.number]
        assert parent.checkpoint is not None
        folder = folder_of(copy.number, copied_after=generation)
        is_asked = self.mixture.config.clone.only_if_better
        reason: Literal["worse", "always"] = "worse" if is_asked else "always"
        return CopyRecord(
            number=copy.number,
            folder=folder,
            parent=copy.parent,
            parent_folder=parent.folder,
            parent_checkpoint=parent.checkpoint,
            reason="non_finite" if child.fitness is None else reason,
            seed=run_seed(self.mixture, folder),
            old_values={},
            new_values={},
        )
