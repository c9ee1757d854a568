"""Every event of an experiment, as a typed model."""

from collections.abc import Callable
from typing import Literal

from game_rl.events.run_events import TimedEvent
from game_rl.files.saved import Natural, Saved


class _ExperimentEvent(TimedEvent):
    generation: Natural = 0


class ExperimentBegun(_ExperimentEvent):
    """A controller begins an experiment, or resumes it after `generation`."""

    event: Literal["experiment_begun"] = "experiment_begun"
    experiment: str
    """The experiment's id."""
    kind: str = "population"
    members: Natural
    generations: Natural
    slots: Natural
    """Members that train at once."""


class WentBack(_ExperimentEvent):
    """The population went back: of what happened before, only generations up to this one count."""

    event: Literal["went_back"] = "went_back"
    set_aside: str
    """The folder that later records and members were moved to."""


class GenerationBegun(_ExperimentEvent):
    """A generation began, in which all members train up to `timesteps`."""

    event: Literal["generation_begun"] = "generation_begun"
    timesteps: Natural


class Fitness(Saved):
    """How good one policy is over the episodes of one seed."""

    value: float
    """The number that is compared."""
    seed: int
    """Seed that determines the episodes."""
    episodes: int
    deterministic: bool
    """Whether the policy took its most probable actions instead of sampling them."""
    success_rate: float | None = None
    """Share of successful episodes; None if the game does not define success."""
    success_interval: tuple[float, float] | None = None
    """Wilson's 95 % interval of the success rate."""
    mean_reward: float
    std_reward: float
    """Standard deviation over the episodes."""


class StretchEnded(_ExperimentEvent):
    """A member has trained and played its episodes."""

    event: Literal["stretch_ended"] = "stretch_ended"
    number: Natural
    folder: str
    timesteps: Natural
    host: str
    timesteps_per_s: float
    seconds: float
    ram_peak_bytes: Natural
    fitness: Fitness | None = None
    failure: str | None = None


class MemberDied(_ExperimentEvent):
    """A member's process was killed."""

    event: Literal["member_died"] = "member_died"
    name: str
    code: int
    deaths: Natural
    """Deaths since its newest checkpoint."""
    pause_s: float | None = None
    """Seconds until it is started again; None if it is not, and in logs of the last release."""
    text: str = ""
    """The cause, if the executor knows more than the exit code; else empty."""


class GenerationEnded(_ExperimentEvent):
    """The decision after a generation was carried out."""

    event: Literal["generation_ended"] = "generation_ended"
    record: str
    """Path of the generation's record."""
    seconds: float
    """Time that this controller has spent on the generation."""
    copies: Natural
    checkpoints_bytes: Natural
    """Size of all checkpoints that are kept; a file with several hard links counts once."""


class ExperimentWarned(_ExperimentEvent):
    """A warning to the user; the experiment continues."""

    event: Literal["warned"] = "warned"
    text: str


class ChampionFound(_ExperimentEvent):
    """The experiment is complete."""

    event: Literal["champion_found"] = "champion_found"
    number: Natural
    folder: str
    path: str
    final: Fitness


class ExperimentEnded(_ExperimentEvent):
    """The controller has ended its work on the experiment."""

    event: Literal["experiment_ended"] = "experiment_ended"
    reason: Literal["completed", "stopped", "failed"]
    exit_code: int
    text: str = ""


ExperimentEvent = (
    ExperimentBegun
    | WentBack
    | GenerationBegun
    | StretchEnded
    | MemberDied
    | GenerationEnded
    | ExperimentWarned
    | ChampionFound
    | ExperimentEnded
)
ExperimentListener = Callable[[ExperimentEvent], None]
