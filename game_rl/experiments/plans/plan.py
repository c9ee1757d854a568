"""What the controller of an experiment asks its plan: who trains next, and what follows from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from game_rl.config.experiments.population import (
    ChampionConfig,
    FitnessConfig,
    KeepGenerationsConfig,
)
from game_rl.config.schema import RunConfig
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import CopyRecord, GenerationRecord, Member
from game_rl.experiments.tasks import Task
from game_rl.training.stretch_result import StretchResult

Results = Mapping[int, StretchResult]
"""By the number of a member."""


@dataclass(frozen=True)
class Rules:
    """What every plan has, whatever it decides.

    Attributes:
        seed: of the experiment; the champion's episodes follow from it.
        is_live: a mixture's learner trains beside the members.
        shares_lake: all who train feed one Lake, or learn from it.
        extra_candidate: number of who may be the champion beside the best, whatever it reaches.
    """

    seed: int
    generations: int
    fitness: FitnessConfig
    champion: ChampionConfig
    keep_generations: KeepGenerationsConfig
    cpus_per_member: int
    kind: Literal["population", "mixture"] = "population"
    is_live: bool = False
    shares_lake: bool = False
    extra_candidate: int | None = None


@dataclass(frozen=True)
class Apprentice:
    """Who trains after the others of a generation, on what they have played.

    Attributes:
        beginning: the task that makes its run of another's, or the config of one of its own.
    """

    member: Member
    beginning: Task | RunConfig


class Plan(Protocol):
    """Pure functions of a config and of results; nothing here waits for anybody."""

    @property
    def folder(self) -> ExperimentDir: ...

    @property
    def rules(self) -> Rules: ...

    def first_members(self) -> tuple[Member, ...]:
        """Who trains in the first generation."""

    def timesteps(self, generation: int) -> int:
        """Of a member at the end of a generation, those of whom it was copied from included."""

    def config_of(self, member: Member) -> RunConfig:
        """Of a member of the first generation."""

    def run_id(self, member: Member) -> str | None:
        """Of its run; None: drawn. Only for who holds the experiment's lock."""

    def until(self, member: Member, generation: int) -> int:
        """The timestep of a member's own run at which a generation ends for it."""

    def stretch(self, member: Member, generation: int) -> Task:
        """Train to the end of a generation, and play there."""

    def apprentice_of(self, generation: int) -> Member | None:
        """Who trains once the members have; None: nobody."""

    def apprentice(
        self, generation: int, members: Sequence[Member], results: Results
    ) -> Apprentice | None:
        """The same, with what it begins from: the members' results say that."""

    def decide(
        self, generation: int, trained: Sequence[Member], results: Results
    ) -> GenerationRecord:
        """Who is how good, and who goes on as a copy of whom."""

    def members_after(self, record: GenerationRecord) -> tuple[Member, ...]:
        """Who trains next."""

    def copy(self, record: GenerationRecord, copied: CopyRecord) -> Task:
        """Make the run of a copy."""
