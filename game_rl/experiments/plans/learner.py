"""The learner of an experiment: who trains once a generation's members have, on their Lake."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from game_rl.config.changed_values import with_changed
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.jobs import Jobs, Origin
from game_rl.experiments.plans.plan import Apprentice
from game_rl.experiments.plans.run_configs import agents_of, run_id, run_seed, sections_of
from game_rl.experiments.records import (
    GenerationRecord,
    LearnerRecord,
    Member,
    TrainedMember,
    read_record,
)

Starts = Literal["kept", "fresh", "best_member"]


@dataclass(frozen=True)
class Learner:
    """One for the experiment, with a run of its own in each generation.

    Attributes:
        run: the config of its first run.
        seed: of the experiment.
        number: among those who train; it follows on the members'.
        starts: kept: from its own end of the generation before; fresh: from new weights;
            best_member: from the weights of the generation's best member.
        is_taught: by the generation's best member.
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
        """That each of its runs plays, from 0."""
        return self.run.total_timesteps

    def member(self, generation: int) -> Member:
        return Member(number=self.number, folder=f"learner.g{generation:04d}", values={})

    def apprentice(self, generation: int, best: TrainedMember) -> Apprentice:
        """With what its run begins from.

        Args:
            best: of the generation's members.
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
        return Apprentice(member, config)

    def record(self, generation: int, best: TrainedMember) -> LearnerRecord:
        parent = best if self.starts == "best_member" else self._before(generation)
        return LearnerRecord(
            number=self.number,
            parent_folder=None if parent is None else parent.folder,
            parent_checkpoint=None if parent is None else parent.checkpoint,
            teacher=best.folder if self.is_taught else None,
        )

    def _before(self, generation: int) -> TrainedMember | None:
        """Whom the learner of a generation goes on from; None: it begins by itself."""
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
    ) -> Apprentice:
        member = self.member(generation)
        assert parent.checkpoint is not None
        name = run_id(self.folder.identity().id, member)
        made_by = Jobs(self.folder, self.cpus).copy(
            member.folder,
            Origin(parent.folder, int(parent.checkpoint), fork, name),
            values,
            self.folder.generation(generation).output(self.number),
        )
        return Apprentice(member, made_by)

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
        """Who is better is the plan's to say, and not the learner's run's."""
        if not self.is_taught:
            return None
        assert best.checkpoint is not None
        root = self.folder.member(best.folder).root.absolute()
        return {"run": f"{root}@{int(best.checkpoint)}", "keep_if_better": False}
