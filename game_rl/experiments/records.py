"""What an experiment writes down: who is a member, what a generation was, how far it has come.

A record holds no times and no places, so that the record of an experiment that was broken off and
went on is, byte for byte, that of one that was not.
"""

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, ValidationError

from game_rl.config.saved import Saved
from game_rl.errors import ExperimentError
from game_rl.experiments.fitness import Fitness
from game_rl.experiments.plans.mutation import Value
from game_rl.run_dir import write_atomic
from game_rl.training.action_differences import ActionDifferences

_Count = Annotated[int, Field(ge=0)]
_Kind = TypeVar("_Kind", bound=Saved)


class Member(Saved):
    """Who plays the part of a number."""

    number: _Count
    folder: str
    """Its run directory in `members`."""
    values: dict[str, Value]
    """What it has at the keys that are mutated."""
    counts_from: _Count = 0
    """The generation after which its run was at timestep 0."""


class TrainedMember(Saved):
    """A member at the end of its stretch."""

    number: _Count
    folder: str
    values: dict[str, Value]
    timesteps: _Count
    checkpoint: str | None
    """The name of its folder; None where the weights became non-finite, as for the next two."""
    weights_sha256: str | None
    fitness: Fitness | None
    failure: str | None = None
    counts_from: _Count = 0
    """As a Member's."""
    played_timesteps: _Count | None = None
    """In this generation; None in records of versions that did not count them."""


class CopyRecord(Saved):
    """A member that goes on as a copy of another one."""

    number: _Count
    folder: str
    """The new one."""
    parent: _Count
    parent_folder: str
    parent_checkpoint: str
    reason: Literal["worse", "non_finite", "always", "injected"]
    """always: a plan that copies whoever is better; injected: it was the worst when the learner
    was to replace somebody."""
    seed: _Count
    """Of the copy's own random numbers."""
    old_values: dict[str, Value]
    """The parent's."""
    new_values: dict[str, Value]
    counters: Literal["keep", "new"] = "keep"
    """new: its run begins at timestep 0."""
    weight_noise: float = 0.0
    """Of its weights; see `fork.weight_noise` of a run."""


class LearnerRecord(Saved):
    """Who trained after the members of a generation: on what they had played, or as the best."""

    number: _Count
    """Among the members of the record."""
    parent_folder: str | None
    """Of the run that its weights come from; None: they are its own, as for the next."""
    parent_checkpoint: str | None
    teacher: str | None
    """The folder of who drew it towards itself; None: nobody."""


class GenerationRecord(Saved):
    """One generation, written once."""

    format: Literal[1] = 1
    generation: Annotated[int, Field(ge=1)]
    timesteps: _Count
    """Up to which members were to train."""
    seed: _Count
    """Of the episodes."""
    ranking: tuple[int, ...]
    """Numbers of members, the best first."""
    members: tuple[TrainedMember, ...]
    copies: tuple[CopyRecord, ...]
    learner: LearnerRecord | None = None
    timesteps_of_all: _Count | None = None
    """That all runs of the experiment have played so far: members, those that were copied over, and
    the learner; None in records of versions that did not count them."""
    differences: ActionDifferences | None = None
    """Of members and learner as they were at the end of their stretches; None: they share no Lake,
    or fewer than two have finite weights, or the record is of a version that did not ask them."""

    @property
    def learner_folder(self) -> str | None:
        """None: there is no learner."""
        number = None if self.learner is None else self.learner.number
        return next((m.folder for m in self.members if m.number == number), None)

    @property
    def differing_members(self) -> float | None:
        """Mean over pairs of members: of the same observations, on how many their actions differ;
        None: nobody knows.
        """
        learner = self.learner_folder
        names = {member.folder for member in self.members if member.folder != learner}
        return None if self.differences is None else self.differences.among(names)

    @property
    def differing_learner(self) -> float | None:
        """The same of the learner and each member."""
        learner = self.learner_folder
        if self.differences is None or learner is None:
            return None
        names = {member.folder for member in self.members if member.folder != learner}
        return self.differences.between(learner, names)


class ExperimentState(Saved):
    """Where a population is; replaced in one rename, after all that it speaks of is on the disk."""

    format: Literal[1] = 1
    generation: _Count
    """The last one whose decision was carried out; 0: none."""
    members: tuple[Member, ...]
    """Who trains next."""
    complete: bool = False
    going_back_to: int | None = None
    """A generation whose later ones are being set aside."""


class Candidate(Saved):
    """A member of the last generation that might be the champion."""

    number: _Count
    folder: str
    checkpoint: str
    selection: Fitness
    """What made it a candidate."""
    validation: Fitness
    """On other episodes; the best of these is the champion."""


class ChampionRecord(Saved):
    """How the champion was found, written once."""

    format: Literal[1] = 1
    candidates: tuple[Candidate, ...]
    number: _Count
    folder: str
    checkpoint: str
    final: Fitness
    """On episodes that selected nothing."""
    timesteps_of_all: _Count | None = None
    """As the last generation's: what finding it has taken."""


def write_record(path: Path, record: Saved) -> None:
    """Durably and in one rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, record.model_dump_json(indent=2) + "\n")


def read_record(path: Path, kind: type[_Kind]) -> _Kind | None:
    """None where there is no file.

    Raises:
        ExperimentError: it was changed into something else.
    """
    if not path.exists():
        return None
    try:
        return kind.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ExperimentError(
            f"{path} cannot be read: {where}: {first['msg']}; restore it from a copy"
        ) from None
