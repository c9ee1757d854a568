"""What all events have in common, and all events of a run."""

from datetime import UTC, datetime
from typing import Annotated, ClassVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from game_rl.files.saved import Natural


def _checked(time: datetime) -> datetime:
    if not 1970 <= time.year < 9999:
        raise ValueError("a year that no clock of a computer shows")
    return time


_Time = Annotated[AwareDatetime, AfterValidator(_checked)]


def _now() -> datetime:
    return datetime.now(UTC)


class TimedEvent(BaseModel):
    """The base of all events of runs and experiments."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)

    is_kept: ClassVar[bool] = True
    """Whether the event is written to the file; the others only reach the listeners."""

    time: _Time = Field(default_factory=_now)
    """Time of the event, in UTC."""


class RunEvent(TimedEvent):
    """The base of all events of a run."""

    timesteps: Natural = 0
    """Timesteps of the run, summed over all envs."""
    waited_frames: Natural | None = None
    """Emulator frames beyond `frame_skip` in each timestep, which the envs have played so far
    because the game's `step` plays on; None if the game has no `step`."""
