"""The typed events of an experiment, which go to its `events.jsonl` and to listeners."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from game_rl.event_log import EventFile
from game_rl.experiments.fitness import Fitness
from game_rl.json_lines import located_lines, parsed

_Count = Annotated[int, Field(ge=0)]


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)

    time: datetime = Field(default_factory=lambda: datetime.now(UTC))
    """Time of the event, in UTC."""
    generation: _Count = 0


class ExperimentBegun(_Event):
    """A controller begins an experiment, or resumes it after `generation`."""

    event: Literal["experiment_begun"] = "experiment_begun"
    experiment: str
    """The experiment's id."""
    kind: str = "population"
    members: _Count
    generations: _Count
    slots: _Count
    """Members that train at once."""


class WentBack(_Event):
    """The population went back: of what happened before, only generations up to this one count."""

    event: Literal["went_back"] = "went_back"
    set_aside: str
    """The folder that later records and members were moved to."""


class GenerationBegun(_Event):
    """A generation began, in which all members train up to `timesteps`."""

    event: Literal["generation_begun"] = "generation_begun"
    timesteps: _Count


class StretchEnded(_Event):
    """A member has trained and played its episodes."""

    event: Literal["stretch_ended"] = "stretch_ended"
    number: _Count
    folder: str
    timesteps: _Count
    host: str
    timesteps_per_s: float
    seconds: float
    ram_peak_bytes: _Count
    fitness: Fitness | None = None
    failure: str | None = None


class MemberDied(_Event):
    """A member's process was killed."""

    event: Literal["member_died"] = "member_died"
    name: str
    code: int
    deaths: _Count
    """Deaths since its newest checkpoint."""
    pause_s: float | None = None
    """Seconds until it is started again; None if it is not, and in logs of the last release."""
    text: str = ""
    """The cause, if the executor knows more than the exit code; else empty."""


class GenerationEnded(_Event):
    """The decision after a generation was carried out."""

    event: Literal["generation_ended"] = "generation_ended"
    record: str
    """Path of the generation's record."""
    seconds: float
    """Time that this controller has spent on the generation."""
    copies: _Count
    checkpoints_bytes: _Count
    """Size of all checkpoints that are kept; a file with several hard links counts once."""


class Warned(_Event):
    """A warning to the user; the experiment continues."""

    event: Literal["warned"] = "warned"
    text: str


class ChampionFound(_Event):
    """The experiment is complete."""

    event: Literal["champion_found"] = "champion_found"
    number: _Count
    folder: str
    path: str
    final: Fitness


class ExperimentEnded(_Event):
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
    | Warned
    | ChampionFound
    | ExperimentEnded
)
Listener = Callable[[ExperimentEvent], None]

_ANY: TypeAdapter[ExperimentEvent] = TypeAdapter(
    Annotated[ExperimentEvent, Field(discriminator="event")]
)


class Account:
    """Appends events to the experiment's file and passes them to listeners; a context manager."""

    def __init__(self, path: Path, listeners: Sequence[Listener] = ()) -> None:
        self._file = EventFile(path)
        self._listeners = listeners

    def add_listener(self, listener: Listener) -> None:
        self._listeners = (*self._listeners, listener)

    def emit(self, event: ExperimentEvent) -> None:
        for listener in self._listeners:
            listener(event)
        self._file.add(event)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read_account(path: Path) -> list[ExperimentEvent]:
    """Return the events of a file, without generations that the population went back from.

    Torn lines and events that this version does not know are left out.
    """
    kept: list[ExperimentEvent] = []
    for _, line in located_lines(path):
        event = parsed(_ANY, line)
        if event is None:
            continue
        if isinstance(event, WentBack):
            kept = [old for old in kept if old.generation <= event.generation]
        kept.append(event)
    return kept
