"""Building a schedule from a config's number or line."""

from game_rl import schedules
from game_rl.config.values import LinearSchedule, Schedule


def make_schedule(value: Schedule, share: float = 1.0) -> schedules.Schedule:
    """Return the schedule; a line spans this share of the training."""
    if isinstance(value, LinearSchedule):
        return schedules.ending_early(schedules.linear(value.start, value.end), share)
    return schedules.constant(value)
