"""The plan of a live mixture."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from game_rl.config.experiments.mixture_files import Mixture
from game_rl.config.experiments.population_config import KeepGenerationsConfig
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, with_changed
from game_rl.errors import ExperimentError
from game_rl.experiments.experiment_dir import ExperimentDir, folder_of
from game_rl.experiments.plans import decision
from game_rl.experiments.plans.decision import fitness_seed, scored_member, timesteps_of_all
from game_rl.experiments.plans.evolution import ranked
from game_rl.experiments.plans.member_runs import agents_of, run_id, run_seed
from game_rl.experiments.plans.plan import Results, Rules
from game_rl.experiments.records import CopyRecord, GenerationRecord, LearnerRecord, Member
from game_rl.experiments.tasks import MemberTasks, Task

LEARNER = "learner"
"""The name of the learner's run directory."""


@dataclass(frozen=True)
class LiveMixturePlan:
    """A Plan: the learner trains on what members play while they play it; none is copied."""

    folder: ExperimentDir
    mixture: Mixture

    @property
    def rules(self) -> Rules:
        config = self.mixture.config
        return Rules(
            seed=config.seed,
            generations=1,
            fitness=config.fitness,
            champion=config.champion,
            keep_generations=KeepGenerationsConfig(),
            cpus_per_member=config.cpus_per_member,
            frame_skip=self.mixture.run.env.frame_skip,
            kind="mixture",
            shares_lake=True,
            is_live=True,
            extra_candidate=config.members,
        )

    def first_members(self) -> tuple[Member, ...]:
        """Return the members and, as the last one, the learner."""
        names = [*map(folder_of, range(self.mixture.config.members)), LEARNER]
        return tuple(Member(number=n, folder=name, values={}) for n, name in enumerate(names))

    def timesteps(self, generation: int) -> int:
        return generation * self.mixture.config.total_timesteps

    def config_of(self, member: Member) -> RunConfig:
        config = self.mixture.config
        changes: dict[Key, Any] = {
            ("run_dir",): self.folder.member(member.folder).root,
            ("seed",): run_seed(config.seed, member.folder),
        }
        if member.folder != LEARNER:
            return with_changed(self.mixture.run, changes)
        agents = agents_of(config.member_shares, members=config.members)
        changes["algorithm", "learn_from", "agents"] = agents
        return with_changed(self.mixture.learner, changes)

    def run_id(self, member: Member) -> str | None:
        return run_id(self.folder.identity().id, member)

    def until(self, member: Member, generation: int) -> int:
        if member.folder == LEARNER:
            return self.mixture.config.learner_timesteps
        return self.timesteps(generation)

    def stretch(self, member: Member, generation: int) -> Task:
        jobs = MemberTasks(self.folder, self.mixture.config.cpus_per_member)
        until = self.until(member, generation)
        seed = fitness_seed(self.mixture.config.seed, generation)
        task = jobs.stretch(member.number, member.folder, generation, until=until, seed=seed)
        is_learner = member.folder == LEARNER
        return replace(task, needs=self.folder.lake / "lake.json") if is_learner else task

    def extra_member(self, generation: int) -> None:  # noqa: ARG002
        return None

    def extra_run(
        self,
        generation: int,  # noqa: ARG002
        members: Sequence[Member],  # noqa: ARG002
        results: Results,  # noqa: ARG002
    ) -> None:
        return None

    def decide(
        self, generation: int, trained: Sequence[Member], results: Results
    ) -> GenerationRecord:
        metric = self.mixture.config.fitness.metric
        found = decision.trained(metric, trained, results, None)
        if all(member.fitness is None for member in found.members):
            raise ExperimentError(
                "the weights of all members and of the learner became non-finite; begin another "
                "mixture with a lower algorithm.learning_rate in member and in learner"
            )
        return GenerationRecord(
            generation=generation,
            timesteps=self.timesteps(generation),
            seed=fitness_seed(self.mixture.config.seed, generation),
            ranking=tuple(m.number for m in ranked([scored_member(m) for m in found.members])),
            members=found.members,
            copies=(),
            learner=LearnerRecord(
                number=self.mixture.config.members,
                parent_folder=None,
                parent_checkpoint=None,
                teacher=None,
            ),
            timesteps_of_all=timesteps_of_all(found),
        )

    def members_after(self, record: GenerationRecord) -> tuple[Member, ...]:  # noqa: ARG002
        return self.first_members()

    def copy(self, record: GenerationRecord, copied: CopyRecord) -> Task:  # noqa: ARG002
        raise ExperimentError(f"a live mixture has no copies, but its record names {copied.folder}")
