"""The plan of a mixture in rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from game_rl.config.algorithms import ExplorationConfig
from game_rl.config.experiments.mixture_files import Mixture
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, with_changed
from game_rl.errors import NobodyLeftError
from game_rl.experiments.experiment_dir import ExperimentDir, copied_after, folder_of
from game_rl.experiments.plans import decision
from game_rl.experiments.plans.decision import (
    Trained,
    best_trained,
    fitness_seed,
    scored_member,
    timesteps_of_all,
)
from game_rl.experiments.plans.evolution import Copy, clones, ranked
from game_rl.experiments.plans.learner_plan import Learner
from game_rl.experiments.plans.member_runs import counting_anew, run_id, run_seed, sections_of
from game_rl.experiments.plans.plan import ExtraRun, Results, Rules
from game_rl.experiments.records import (
    CopyRecord,
    GenerationRecord,
    Member,
    TrainedMember,
    read_record,
)
from game_rl.experiments.tasks import CopyOrigin, MemberTasks, Task

_EXPLORING_ROUNDS = 0.5


@dataclass(frozen=True)
class MixturePlan:
    """A Plan: members train alone, the learner on their Lake; its clones replace members."""

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
            frame_skip=self.mixture.run.env.frame_skip,
            kind="mixture",
            shares_lake=True,
            extra_candidate=config.members,
        )

    def first_members(self) -> tuple[Member, ...]:
        numbers = range(self.mixture.config.members)
        return tuple(Member(number=n, folder=folder_of(n), values={}) for n in numbers)

    def timesteps(self, generation: int) -> int:
        return generation * self.mixture.config.timesteps_per_round

    def config_of(self, member: Member) -> RunConfig:
        changes: dict[Key, Any] = {
            ("run_dir",): self.folder.member(member.folder).root,
            ("seed",): run_seed(self.mixture.config.seed, member.folder),
        }
        return with_changed(self.mixture.run, changes)

    def run_id(self, member: Member) -> str | None:
        return run_id(self.folder.identity().id, member)

    def until(self, member: Member, generation: int) -> int:
        if member.number == self._learner.number:
            return self._learner.stretch_timesteps
        return self.timesteps(generation - (copied_after(member.folder) or 0))

    def stretch(self, member: Member, generation: int) -> Task:
        until = self.until(member, generation)
        seed = fitness_seed(self.mixture.config.seed, generation)
        return self._jobs.stretch(member.number, member.folder, generation, until=until, seed=seed)

    def extra_member(self, generation: int) -> Member:
        return self._learner.member(generation)

    def extra_run(
        self, generation: int, members: Sequence[Member], results: Results
    ) -> ExtraRun | None:
        best = self._best(generation, self._trained(generation, members, results))
        return self._learner.extra_run(generation, best)

    def decide(
        self, generation: int, trained: Sequence[Member], results: Results
    ) -> GenerationRecord:
        found = self._trained(generation, trained, results)
        scored = [scored_member(member) for member in found.members]
        copies: list[Copy] = []
        if generation < self.mixture.config.rounds:
            copies = clones(scored[:-1], scored[-1], self.mixture.config.clone)
        by_number = {member.number: member for member in found.members}
        of_members = Trained(found.before, found.members[:-1])
        return GenerationRecord(
            generation=generation,
            timesteps=self.timesteps(generation),
            seed=fitness_seed(self.mixture.config.seed, generation),
            ranking=tuple(member.number for member in ranked(scored)),
            members=found.members,
            copies=tuple(self._copied(generation, by_number, copy) for copy in copies),
            learner=self._learner.record(generation, self._best(generation, of_members)),
            timesteps_of_all=timesteps_of_all(found),
        )

    def members_after(self, record: GenerationRecord) -> tuple[Member, ...]:
        return decision.members_after(record)

    def copy(self, record: GenerationRecord, copied: CopyRecord) -> Task:
        config = self._clone_config(record.generation)
        parent = next(m for m in record.members if m.number == copied.parent)
        member = Member(number=copied.number, folder=copied.folder, values={})
        fork = {"optimiser": self.mixture.config.clone.optimiser, "counters": copied.counters}
        return self._jobs.copy(
            copied.folder,
            self._origin(parent, member, fork),
            sections_of(config) | {"seed": copied.seed},
            self.folder.generation(record.generation).output(copied.number),
        )

    @property
    def _learner(self) -> Learner:
        config = self.mixture.config
        return Learner(
            folder=self.folder,
            run=self.mixture.learner,
            seed=config.seed,
            number=config.members,
            cpus=config.cpus_per_member,
            starts=config.learner_starts,
            is_taught=config.is_taught,
            shares=config.member_shares,
        )

    @property
    def _jobs(self) -> MemberTasks:
        return MemberTasks(self.folder, self.mixture.config.cpus_per_member)

    def _trained(self, generation: int, members: Sequence[Member], results: Results) -> Trained:
        before = read_record(self.folder.generation(generation - 1).record, GenerationRecord)
        return decision.trained(self.mixture.config.fitness.metric, members, results, before)

    def _best(self, generation: int, members: Trained) -> TrainedMember:
        """Return the best of a round's members.

        Raises:
            NobodyLeftError: none has finite weights.
        """
        best = best_trained(members.members)
        if best is None:
            raise NobodyLeftError(
                f"the weights of all members became non-finite in round {generation}; begin "
                "another mixture with a lower algorithm.learning_rate of member"
            )
        return best

    def _clone_config(self, generation: int) -> RunConfig:
        """Return the config of a clone after a round, with the clone's own exploration."""
        config, algorithm = self.mixture.config, self.mixture.run.algorithm
        end = algorithm.model_dump(mode="json")["exploration"]["end"]
        exploration = ExplorationConfig(
            start=max(config.clone.exploration, end),
            end=end,
            fraction=_EXPLORING_ROUNDS / (config.rounds - generation),
        )
        at = self.timesteps(generation)
        return counting_anew(self.mixture.run, at=at, exploration=exploration)

    def _origin(self, parent: TrainedMember, child: Member, fork: Mapping[str, str]) -> CopyOrigin:
        assert parent.checkpoint is not None
        return CopyOrigin(parent.folder, int(parent.checkpoint), fork, self.run_id(child))

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
            seed=run_seed(self.mixture.config.seed, folder),
            old_values={},
            new_values={},
            counters="new",
        )
