"""Ids, seeds and configs of the runs of members and learner."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from game_rl.config.algorithms import ExplorationConfig
from game_rl.config.experiments.experiment import Experiment, ExperimentConfig
from game_rl.config.experiments.learner_config import BEST_MEMBER
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, with_changed
from game_rl.experiments.experiment_dir import ExperimentDir, copied_after
from game_rl.experiments.records import (
    GenerationRecord,
    LearnerRecord,
    Member,
    TrainedMember,
    read_record,
)
from game_rl.experiments.tasks import MemberTasks, Task
from game_rl.schedules import Ramp
from game_rl.seeds import seed_for

_OF_THE_PLACE = ("run_dir", "fork")


def run_id(experiment: str, member: Member) -> str:
    """Return the unique id of a member's run.

    Streams of a Lake have these ids as names, and rows are drawn in the order of the names. So the
    ids ascend with the member's number and the generation, whatever the experiment's id is.
    """
    unique = sha256(f"{experiment}/{member.folder}".encode()).hexdigest()[:24]
    return f"{_id_beginning(member.number)}{copied_after(member.folder) or 0:04x}{unique}"


def agents_of(
    shares: Mapping[str, float] | None, *, members: int, best: int | None = None
) -> dict[str, float] | None:
    """Return the `learn_from.agents` of a learner, in which all runs of a member share its weight.

    Args:
        shares: weights by a member's number or `best_member`; other members have 1. None: every
            row is drawn alike.
        best: number of the member that `best_member` names.
    """
    if shares is None:
        return None
    weights = {number: shares.get(str(number), 1.0) for number in range(members)}
    if best is not None and BEST_MEMBER in shares:
        weights[best] = shares[BEST_MEMBER]
    return {_id_beginning(number): weight for number, weight in weights.items()}


def _id_beginning(number: int) -> str:
    return f"{number:04x}"


def member_seed(config: ExperimentConfig, folder: str) -> int:
    """Return the seed of a member's own random numbers; a copy's differs from its parent's."""
    if config.kind == "mixture":
        return _run_seed(config.seed, folder)
    return seed_for(config.seed, f"member/{folder.partition('.')[0]}/{copied_after(folder) or 0}")


def _run_seed(seed: int, folder: str) -> int:
    return seed_for(seed, f"run/{folder}")


def sections_of(config: RunConfig) -> dict[str, Any]:
    """Return all that a fork takes over from this config, as JSON values."""
    sections: dict[str, Any] = json.loads(config.model_dump_json())
    return {key: value for key, value in sections.items() if key not in _OF_THE_PLACE}


def counting_anew(config: RunConfig, *, at: int, exploration: ExplorationConfig) -> RunConfig:
    """Return a member's config for a run that begins at its timestep `at` and counts from 0.

    The schedule of the learning rate continues where the member's is.
    """
    rate = config.algorithm.model_dump(mode="json")["learning_rate"]
    if isinstance(rate, dict):
        share = at / config.total_timesteps
        rate = rate | {"start": rate["start"] + (rate["end"] - rate["start"]) * share}
    changes: dict[Key, Any] = {
        ("total_timesteps",): config.total_timesteps - at,
        ("algorithm", "learning_rate"): rate,
        ("algorithm", "exploration"): exploration.model_dump(mode="json"),
    }
    return with_changed(config, changes)


def exploration_from(
    config: ExplorationConfig, *, at: int, total_timesteps: int
) -> ExplorationConfig:
    """Return the rest of a member's exploration, for a run that counts its timesteps from `at`.

    A restart that began before `at` is left out, even if it would not have ended yet.
    """
    ends_at = config.fraction * total_timesteps
    ramp = Ramp(config.start, config.end, max(1, round(ends_at)))
    left = total_timesteps - at
    restarts = (r for r in config.restarts if r.at >= at)
    return ExplorationConfig(
        start=ramp.at(at),
        end=config.end,
        fraction=(ends_at - at) / left if ends_at > at else 1.0,
        restarts=tuple(r.model_copy(update={"at": r.at - at}) for r in restarts),
    )


@dataclass(frozen=True)
class ExtraRun:
    """A run that trains after the generation's members: the learner, or the best, training on.

    Attributes:
        beginning: the task that forks its run from another one, or the config of a new run.
    """

    member: Member
    beginning: Task | RunConfig


@dataclass(frozen=True)
class Learner:
    """The one learner of an experiment, with a run of its own in each generation.

    It begins from its newest weights, from new ones, or from those of the generation's best member;
    see `learner_starts` of a mixture. In a live mixture, it has one run for the whole experiment.
    """

    folder: ExperimentDir
    experiment: Experiment

    @property
    def number(self) -> int:
        """Its number, which follows the members' numbers."""
        return self.experiment.config.members

    @property
    def live_member(self) -> Member:
        return Member(number=self.number, folder="learner", values={})

    def member(self, generation: int) -> Member:
        return Member(number=self.number, folder=f"learner.g{generation:04d}", values={})

    def extra_run(self, generation: int, best: TrainedMember) -> ExtraRun:
        """Return the learner of a generation, with what its run begins from.

        Args:
            best: the best of the generation's members.
        """
        member = self.member(generation)
        before = self._before(generation)
        config = self.config_of(member.folder, best)
        if self.experiment.config.learner_starts == "best_member":
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
        config = self.experiment.config
        parent = best if config.learner_starts == "best_member" else self._before(generation)
        return LearnerRecord(
            number=self.number,
            parent_folder=None if parent is None else parent.folder,
            parent_checkpoint=None if parent is None else parent.checkpoint,
            teacher=best.folder if config.is_taught else None,
        )

    def _before(self, generation: int) -> TrainedMember | None:
        """Return the learner of the generation before, if this one continues from its weights."""
        record = read_record(self.folder.generation(generation - 1).record, GenerationRecord)
        if record is None or self.experiment.config.learner_starts != "kept":
            return None
        (before,) = (m for m in record.members if m.number == self.number)
        if before.checkpoint is None:
            return None
        return before

    def _fork(
        self,
        generation: int,
        parent: TrainedMember,
        fork: Mapping[str, object],
        values: Mapping[str, object],
    ) -> ExtraRun:
        member = self.member(generation)
        assert parent.checkpoint is not None
        made_by = MemberTasks(self.folder, self.experiment.config.cpus_per_member).copy(
            member.folder,
            parent.folder,
            int(parent.checkpoint),
            values,
            self.folder.generation(generation).output(self.number),
            fork=fork,
            run_id=run_id(self.folder.identity().id, member),
        )
        return ExtraRun(member, made_by)

    def config_of(self, name: str, best: TrainedMember | None = None) -> RunConfig:
        """Return the config of a new run of it, in this folder."""
        assert self.experiment.learner is not None
        changes: dict[Key, Any] = {
            ("run_dir",): self.folder.member(name).root,
            ("seed",): _run_seed(self.experiment.config.seed, name),
            ("algorithm", "teacher"): self._teacher(best),
            ("algorithm", "learn_from", "agents"): self._agents(best),
        }
        return with_changed(self.experiment.learner, changes)

    def _agents(self, best: TrainedMember | None) -> dict[str, float] | None:
        number = None if best is None else best.number
        return agents_of(self.experiment.config.member_shares, members=self.number, best=number)

    def _teacher(self, best: TrainedMember | None) -> dict[str, object] | None:
        """Return the section `teacher` of the learner's run, or None if it is not taught.

        The plan decides which member teaches, so the run must not compare the two.
        """
        if not self.experiment.config.is_taught:
            return None
        assert best is not None
        assert best.checkpoint is not None
        root = self.folder.member(best.folder).root.absolute()
        return {"run": f"{root}@{int(best.checkpoint)}", "keep_if_better": False}
