"""What happens in an experiment, as typed events: `events.jsonl` of its folder, and who watches."""

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
    """In UTC."""
    generation: _Count = 0


class ExperimentBegun(_Event):
    """A controller begins an experiment, or goes on with it after `generation`."""

    event: Literal["experiment_begun"] = "experiment_begun"
    experiment: str
    """Its id."""
    kind: str = "population"
    members: _Count
    generations: _Count
    slots: _Count
    """Members that train at once."""


class WentBack(_Event):
    """The population goes on from `generation`; what came later is no part of it any more."""

    event: Literal["went_back"] = "went_back"
    set_aside: str
    """Where the later records are."""


class GenerationBegun(_Event):
    """All members are to train up to `timesteps`."""

    event: Literal["generation_begun"] = "generation_begun"
    timesteps: _Count


class StretchEnded(_Event):
    """A member has trained, and has played its episodes."""

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
    """A member's process was killed; it is started again."""

    event: Literal["member_died"] = "member_died"
    name: str
    code: int
    deaths: _Count
    """Since its newest checkpoint."""
    text: str = ""
    """What is known of the cause, where the executor knows more than the exit code."""


class GenerationEnded(_Event):
    """The decision was carried out."""

    event: Literal["generation_ended"] = "generation_ended"
    record: str
    """Its file."""
    seconds: float
    """In this process."""
    copies: _Count
    checkpoints_bytes: _Count
    """Of all checkpoints that are kept; files with several names count once."""


class Warned(_Event):
    """Something that the user should know; the experiment goes on."""

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
    """The controller lets go of the experiment."""

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
    """Appends events to the experiment's file and hands them on; a context manager."""

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
    """What happened, without generations that the population went back from.

    A torn line, and an event that this version does not know, are left out.
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
