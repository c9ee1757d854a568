"""The end of a run's event file: the run's progress, without reading the whole file."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

_LAST_BYTES = 65_536  # more than the last hundred events


@dataclass(frozen=True)
class FollowedStatus:
    """What the learner of a live mixture sees of its Lake; see `events.LakesFollowed`."""

    rows: int
    newest_age_s: float | None
    own_drawn: int
    drawn: int


@dataclass(frozen=True)
class RunTail:
    """The newest value of each kind in a run's events.

    Attributes:
        drawn: the newest event `rows_drawn`.
    """

    timesteps: int = 0
    timesteps_per_s: float | None = None
    followed: FollowedStatus | None = None
    drawn: dict[str, Any] | None = None


def read_tail(events: Path) -> RunTail:
    """Read the end of an event file; torn lines are skipped."""
    if not events.exists():
        return RunTail()
    with events.open("rb") as file:
        file.seek(max(0, events.stat().st_size - _LAST_BYTES))
        lines = file.read().splitlines()
    found = RunTail()
    for line in lines:
        try:
            event = json.loads(line)
            found = RunTail(
                timesteps=int(event.get("timesteps", found.timesteps)),
                timesteps_per_s=event.get("timesteps_per_s", found.timesteps_per_s),
                followed=_followed(event) or found.followed,
                drawn=event if event.get("event") == "rows_drawn" else found.drawn,
            )
        except (KeyError, ValueError, AttributeError, TypeError):
            continue  # a torn line, or the end of one whose start was not read
    return found


def _followed(event: dict[str, Any]) -> FollowedStatus | None:
    if event.get("event") != "lakes_followed":
        return None
    return FollowedStatus(**{each.name: event[each.name] for each in fields(FollowedStatus)})
