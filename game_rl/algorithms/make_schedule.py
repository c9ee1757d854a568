"""From a number or a line in a config to a schedule."""

from game_rl import schedules
from game_rl.config.values import LinearSchedule, Schedule


def make_schedule(value: Schedule, share: float = 1.0) -> schedules.Schedule:
    """The schedule, over this share of the training."""
    if isinstance(value, LinearSchedule):
        return schedules.ending_early(schedules.linear(value.start, value.end), share)
    return schedules.constant(value)
