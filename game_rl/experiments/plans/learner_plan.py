"""The learner's runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, with_changed
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.plans.member_runs import agents_of, run_id, run_seed, sections_of
from game_rl.experiments.plans.plan import ExtraRun
from game_rl.experiments.records import (
    GenerationRecord,
    LearnerRecord,
    Member,
    TrainedMember,
    read_record,
)
from game_rl.experiments.tasks import CopyOrigin, MemberTasks

Starts = Literal["kept", "fresh", "best_member"]


@dataclass(frozen=True)
class Learner:
    """The one learner of an experiment, with a run of its own in each generation.

    Attributes:
        run: the config of its first run.
        seed: the experiment's.
        number: the learner's number, which follows the members' numbers.
        cpus: cores of each job.
        starts: what its run begins from. kept: the learner's newest weights, of the generation
            before; fresh: new weights; best_member: the weights of the generation's best member.
        is_taught: whether the generation's best member is its teacher.
        shares: weights of members in what it draws from the Lake; see `agents_of`.
    """

    folder: ExperimentDir
    run: RunConfig
    seed: int
    number: int
    cpus: int
    starts: Starts
    is_taught: bool
    shares: Mapping[str, float] | None

    @property
    def stretch_timesteps(self) -> int:
        """Timesteps that each of its runs plays, counted from 0."""
        return self.run.total_timesteps

    def member(self, generation: int) -> Member:
        return Member(number=self.number, folder=f"learner.g{generation:04d}", values={})

    def extra_run(self, generation: int, best: TrainedMember) -> ExtraRun:
        """Return the learner of a generation, with what its run begins from.

        Args:
            best: the best of the generation's members.
        """
        member, before = self.member(generation), self._before(generation)
        config = self._config(member.folder, best)
        if self.starts == "best_member":
            fork = {"optimiser": "new", "counters": "new"}
            return self._fork(generation, best, fork, sections_of(config))
        if before is not None:
            values = {
                "seed": config.seed,
                "algorithm.teacher": self._teacher(best),
                "algorithm.learn_from.lakes": [str(self.folder.lake.absolute())],
                "algorithm.learn_from.agents": self._agents(best),
            }
            return self._fork(generation, before, {"counters": "new"}, values)
        return ExtraRun(member, config)

    def record(self, generation: int, best: TrainedMember) -> LearnerRecord:
        parent = best if self.starts == "best_member" else self._before(generation)
        return LearnerRecord(
            number=self.number,
            parent_folder=None if parent is None else parent.folder,
            parent_checkpoint=None if parent is None else parent.checkpoint,
            teacher=best.folder if self.is_taught else None,
        )

    def _before(self, generation: int) -> TrainedMember | None:
        """Return the learner of the generation before, if this one continues from its weights."""
        record = read_record(self.folder.generation(generation - 1).record, GenerationRecord)
        if record is None or self.starts != "kept":
            return None
        (before,) = (m for m in record.members if m.number == self.number)
        return before if before.checkpoint is not None else None

    def _fork(
        self,
        generation: int,
        parent: TrainedMember,
        fork: Mapping[str, object],
        values: Mapping[str, object],
    ) -> ExtraRun:
        member = self.member(generation)
        assert parent.checkpoint is not None
        name = run_id(self.folder.identity().id, member)
        made_by = MemberTasks(self.folder, self.cpus).copy(
            member.folder,
            CopyOrigin(parent.folder, int(parent.checkpoint), fork, name),
            values,
            self.folder.generation(generation).output(self.number),
        )
        return ExtraRun(member, made_by)

    def _config(self, name: str, best: TrainedMember) -> RunConfig:
        changes: dict[Key, Any] = {
            ("run_dir",): self.folder.member(name).root,
            ("seed",): run_seed(self.seed, name),
            ("algorithm", "teacher"): self._teacher(best),
            ("algorithm", "learn_from", "agents"): self._agents(best),
        }
        return with_changed(self.run, changes)

    def _agents(self, best: TrainedMember) -> dict[str, float] | None:
        return agents_of(self.shares, members=self.number, best=best.number)

    def _teacher(self, best: TrainedMember) -> dict[str, object] | None:
        """Return the section `teacher` of the learner's run, or None if it is not taught.

        The plan decides which member teaches, so the run must not compare the two.
        """
        if not self.is_taught:
            return None
        assert best.checkpoint is not None
        root = self.folder.member(best.folder).root.absolute()
        return {"run": f"{root}@{int(best.checkpoint)}", "keep_if_better": False}
