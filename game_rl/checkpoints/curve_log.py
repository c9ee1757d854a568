"""The training curves as events, so that they can be read without TensorBoard."""

import math

import numpy as np
from stable_baselines3.common.logger import KVWriter

from game_rl.checkpoints.checkpoint_state import CurveSums
from game_rl.events import CURVE_POINTS, CurvesRecorded
from game_rl.events.event_log import EventLog

_OTHER_STEPS = ("eval/", "offline/")  # events of their own have them


class CurveLog(KVWriter):
    """Emits `CurvesRecorded`, as one of the outputs of SB3's logger.

    Args:
        total_timesteps: of the run; an event is due after each thousandth of them.
    """

    def __init__(self, events: EventLog, *, total_timesteps: int) -> None:
        self._events = events
        self._every = math.ceil(total_timesteps / CURVE_POINTS)
        self.continue_from(CurveSums())

    def continue_from(self, state: CurveSums) -> None:
        self._recorded_at = state.recorded_at
        self._sums = dict(state.sums)
        self._counts = dict(state.counts)

    def state(self) -> CurveSums:
        return CurveSums(recorded_at=self._recorded_at, sums=self._sums, counts=self._counts)

    def write(
        self,
        key_values: dict[str, object],
        key_excluded: dict[str, tuple[str, ...]],
        step: int = 0,
    ) -> None:
        for name, value in key_values.items():
            if name.startswith(_OTHER_STEPS) or "tensorboard" in (key_excluded[name] or ()):
                continue
            if isinstance(value, int | float | np.number) and math.isfinite(value):
                self._sums[name] = self._sums.get(name, 0.0) + float(value)
                self._counts[name] = self._counts.get(name, 0) + 1
        if self._sums and step // self._every > self._recorded_at // self._every:
            self._emit(step)

    def _emit(self, step: int) -> None:
        means = {name: total / self._counts[name] for name, total in self._sums.items()}
        values = {name: _rounded(mean) for name, mean in sorted(means.items())}
        self._events.emit(CurvesRecorded(timesteps=step, values=values))
        self._recorded_at = step
        self._sums.clear()
        self._counts.clear()

    def close(self) -> None:
        """There is nothing to close: the file is the run's `events.jsonl`."""


def _rounded(value: float) -> float:
    """Round to the seven digits that a float32 has; whole numbers stay whole."""
    return value if value.is_integer() else float(f"{value:.7g}")
