"""The types of values in a config: numbers, names, folders, schedules, `RUN@T`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from game_rl.config.strict_model import StrictModel
from game_rl.files.pretrained import PRETRAINED, pretrained_path, why_no_run


def printable(text: str) -> str:
    if any(character < " " for character in text):
        raise ValueError("has a control character in it; remove that")
    return text


def named_folder(path: Path) -> Path:
    if not Path(printable(str(path))).name:
        raise ValueError("names no folder; write one, for example runs/my_run")
    folder = expanded_path(str(path))
    if str(folder).startswith(PRETRAINED):
        raise ValueError(why_no_run(str(folder)))
    return folder


def expanded_path(text: str) -> Path:
    """Return the path with `~` expanded, where the home folder is known.

    `pretrained:NAME` is the folder of an agent that comes with game_rl.
    """
    agent = pretrained_path(text)
    if agent is not None:
        return agent
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
Weight = Annotated[float, Field(gt=0, le=1_000_000)]
"""How often something is drawn, relative to the weights of the others."""
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


def run_at(text: str) -> tuple[Path, int | None]:
    """Return the folder and the timestep that `RUN@T` names; the timestep is None without `@T`."""
    run, at, timesteps = text.rpartition("@")
    digits = timesteps.replace("_", "").replace(",", "")
    if at and run and digits.isascii() and digits.isdecimal():
        return expanded_path(run), int(digits)
    return expanded_path(text), None


def _absolute(text: str) -> str:
    """Make the path absolute, as a resume may have another current folder."""
    run, timesteps = run_at(text)
    if (fault := why_no_run(str(run))) is not None:
        raise ValueError(fault)
    return str(run.absolute()) if timesteps is None else f"{run.absolute()}@{timesteps}"


RunAt = Annotated[Name, AfterValidator(_absolute)]
"""A run directory, with `@T` for its checkpoint of timestep T; see `run_at`."""

BASELINES_S = 10.0
"""The longest time in seconds that the baselines of a training take together."""
