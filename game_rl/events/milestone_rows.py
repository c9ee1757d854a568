"""The milestones of a run as the rows of a table."""

from collections.abc import Iterable
from dataclasses import dataclass

from game_rl.events import Begun, Event, MilestoneReached, Resumed


@dataclass(frozen=True)
class MilestoneRow:
    """Something that a run has reached for the first time.

    Attributes:
        kind: reward_term, start_state or variable.
        value: value of the variable; None for the others.
        frame: emulator frames of the run up to there; None if the log does not say `frame_skip`.
        hours: hours of training up to there.
    """

    kind: str
    name: str
    value: int | float | None
    text: str
    timesteps: int
    frame: int | None
    hours: float


def milestone_rows(events: Iterable[Event], *, is_newest: bool = False) -> list[MilestoneRow]:
    """Return what the run has reached, the earliest first.

    Args:
        events: the run's events, as `read_events` returns them.
        is_newest: whether only the last maximum of each variable is kept.
    """
    found: list[MilestoneRow] = []
    frame_skip: int | None = None
    for event in events:
        if isinstance(event, Begun | Resumed):
            frame_skip = event.frame_skip
        elif isinstance(event, MilestoneReached):
            found.append(_row(event, frame_skip))
    if is_newest:
        found = list({(row.kind, row.name): row for row in found}.values())
    return sorted(found, key=lambda row: row.timesteps)


def _row(event: MilestoneReached, frame_skip: int | None) -> MilestoneRow:
    frame = None
    if frame_skip is not None:
        frame = event.timesteps * frame_skip + (event.waited_frames or 0)
    return MilestoneRow(
        event.kind, event.name, event.value, event.text, event.timesteps, frame, event.hours
    )
