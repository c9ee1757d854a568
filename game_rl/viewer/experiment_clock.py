"""When an experiment's last generation ends, from how long its generations have taken."""

from collections.abc import Sequence
from datetime import datetime
from statistics import fmean

from game_rl.events import ExperimentEvent, GenerationBegun, GenerationEnded
from game_rl.experiments.experiment_status import ExperimentStatus

_NEWEST = 3
"""Generations over which the mean is taken: what slows the machine now counts, one outlier less."""


def experiment_seconds_left(
    status: ExperimentStatus, events: Sequence[ExperimentEvent], now: datetime
) -> float | None:
    """Return the seconds up to the end of the last generation; None if nothing is known of it.

    The champion's episodes, which follow, are not counted.
    """
    if status.state != "training":
        return None
    if status.is_live:
        return _of_slowest(status)
    took = _whole_generations(events)
    begun = [event for event in events if isinstance(event, GenerationBegun)]
    if not took or not begun:
        return None
    ended = any(
        isinstance(event, GenerationEnded) and event.generation >= status.generations
        for event in events[events.index(begun[-1]) :]
    )
    if ended:
        return None  # the champion is sought
    mean = fmean(took[-_NEWEST:])
    in_this = mean - (now - begun[-1].time).total_seconds()
    after = max(0, status.generations - begun[-1].generation)
    left = after * mean + max(0.0, in_this)
    return left or None


def _whole_generations(events: Sequence[ExperimentEvent]) -> list[float]:
    """Return the seconds of the generations that one controller has carried out from the start."""
    found: list[float] = []
    starts = 0
    for event in events:
        if isinstance(event, GenerationBegun):
            starts += 1
        elif isinstance(event, GenerationEnded):
            if starts == 1:
                found.append(event.seconds)
            starts = 0
    return found


def _of_slowest(status: ExperimentStatus) -> float | None:
    """Return the seconds until the last of those that train at once has trained."""
    left = []
    for member in status.members:
        if member.has_ended_stretch:
            continue
        if not member.timesteps_per_s:
            return None
        left.append(max(0, member.until - member.timesteps) / member.timesteps_per_s)
    return max(left, default=None) or None
