"""Types of the numbers, names and schedules in a run config."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from game_rl.config.strict_model import StrictModel

_SECRETS = (
    re.compile(r"(://)\S*(?=@)"),  # to the last @: a key may have slashes
    re.compile(r"(://[^/\s@:]*:)\S+"),
    re.compile(r"(://[^?#\s]*[?#])\S+"),
)


def printable(text: str) -> str:
    if any(character < " " for character in text):
        raise ValueError("has a control character in it; remove that")
    return text


def without_secrets(text: str) -> str:
    """Return the text without the user, password and signature of addresses, so it may be shown.

    An address with any of these is refused, and the message about it must not repeat them.
    """
    for pattern in _SECRETS:
        text = pattern.sub(r"\1…", text)
    return text


def named_folder(path: Path) -> Path:
    if not Path(printable(str(path))).name:
        raise ValueError("names no folder; write one, for example runs/my_run")
    return expanded_path(str(path))


def expanded_path(text: str) -> Path:
    """Return the path with `~` expanded, where the home folder is known."""
    try:
        return Path(text).expanduser()
    except RuntimeError:  # ~USER of an unknown user
        return Path(text)


Count = Annotated[int, Field(ge=1, le=1_000_000)]
Timesteps = Annotated[int, Field(ge=1, le=10**12)]
Processes = Annotated[int, Field(ge=1, le=1024)]
UnitInterval = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Name = Annotated[str, Field(min_length=1), AfterValidator(printable)]


class LinearSchedule(StrictModel):
    """A value that goes in a straight line from `start` to `end` over the run."""

    start: Positive
    """Value at timestep 0."""
    end: NotNegative
    """Value at total_timesteps."""


Schedule = Positive | LinearSchedule


def schedule_values(schedule: Schedule) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield the numbers of a schedule, each with its key within it."""
    if isinstance(schedule, LinearSchedule):
        yield ("start",), schedule.start
        yield ("end",), schedule.end
    else:
        yield (), schedule


def nearest_divisors(wanted: int, whole: int) -> list[int]:
    """Return the divisors of `whole`, other than 1, next to `wanted` on either side."""
    small = [n for n in range(1, int(whole**0.5) + 1) if whole % n == 0]
    divisors = {*small, *(whole // n for n in small)} - {1}
    below = max((n for n in divisors if n < wanted), default=None)
    above = min((n for n in divisors if n > wanted), default=None)
    return [n for n in (below, above) if n is not None]
