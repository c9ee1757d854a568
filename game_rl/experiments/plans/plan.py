"""The interface of plans, which the controller asks what to train next and what to decide."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from game_rl.config.experiments.population_config import (
    ChampionConfig,
    FitnessConfig,
    KeepGenerationsConfig,
)
from game_rl.config.schema import RunConfig
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import CopyRecord, GenerationRecord, Member
from game_rl.experiments.tasks import Task
from game_rl.jobs.results import StretchResult

Results = Mapping[int, StretchResult]
"""The results of stretches, by the member's number."""


@dataclass(frozen=True)
class Rules:
    """Settings that plans of every kind have.

    Attributes:
        seed: the experiment's; the seeds of the champion's episodes follow from it.
        frame_skip: emulator frames of a timestep, the same in all runs.
        is_live: whether the learner of a mixture trains while the members do.
        shares_lake: whether all runs feed one Lake or learn from it.
        extra_candidate: number of the learner, or of the best member that trains on. It is a
            candidate for the champion in addition to the best members, whatever its fitness.
    """

    seed: int
    generations: int
    fitness: FitnessConfig
    champion: ChampionConfig
    keep_generations: KeepGenerationsConfig
    cpus_per_member: int
    frame_skip: int
    kind: Literal["population", "mixture"] = "population"
    is_live: bool = False
    shares_lake: bool = False
    extra_candidate: int | None = None

    def frames_of(self, timesteps: int | None) -> int | None:
        """Return the emulator frames of so many timesteps; None if these were not counted."""
        return None if timesteps is None else timesteps * self.frame_skip


@dataclass(frozen=True)
class ExtraRun:
    """A run that trains after the generation's members: the learner, or the best, training on.

    Attributes:
        beginning: the task that forks its run from another one, or the config of a new run.
    """

    member: Member
    beginning: Task | RunConfig


class Plan(Protocol):
    """Functions of a config and of results; none of them waits for a job."""

    @property
    def folder(self) -> ExperimentDir: ...

    @property
    def rules(self) -> Rules: ...

    def first_members(self) -> tuple[Member, ...]:
        """Return the members that train in the first generation."""

    def timesteps(self, generation: int) -> int:
        """Return the timesteps of a member at the end of a generation, its ancestors' included."""

    def config_of(self, member: Member) -> RunConfig:
        """Return the config of a member of the first generation."""

    def run_id(self, member: Member) -> str | None:
        """Return the id of the member's run, or None to let the run draw one at random.

        Call it only while holding the experiment's lock.
        """

    def until(self, member: Member, generation: int) -> int:
        """Return the timestep of the member's run at which it ends the generation."""

    def stretch(self, member: Member, generation: int) -> Task:
        """Return the task that trains a member to the end of a generation, and plays there."""

    def extra_member(self, generation: int) -> Member | None:
        """Return the member that trains after the others of a generation, or None."""

    def extra_run(
        self, generation: int, members: Sequence[Member], results: Results
    ) -> ExtraRun | None:
        """Return the same member with what it begins from, which follows from the results."""

    def decide(
        self, generation: int, trained: Sequence[Member], results: Results
    ) -> GenerationRecord:
        """Return the generation's record: the ranking, and which members are copied over."""

    def members_after(self, record: GenerationRecord) -> tuple[Member, ...]:
        """Return the members that train in the next generation."""

    def copy(self, record: GenerationRecord, copied: CopyRecord) -> Task:
        """Return the task that makes the run of a copy."""
