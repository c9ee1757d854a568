"""The training curves of a run, as its events tell them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from game_rl.events import CurvesRecorded, TimedEvent


@dataclass(frozen=True)
class Curve:
    """One training curve.

    Attributes:
        timesteps: int64 [n], ascending.
        values: float64 [n], each the mean since the previous point.
    """

    timesteps: NDArray[np.int64]
    values: NDArray[np.float64]


def read_curves(events: Sequence[TimedEvent]) -> dict[str, Curve]:
    """Return the curves by their names in TensorBoard, which are in order.

    A curve has only the points at which it has a value.

    Args:
        events: from `read_events`.
    """
    found: dict[str, tuple[list[int], list[float]]] = {}
    for event in events:
        if isinstance(event, CurvesRecorded):
            for name, value in event.values.items():
                timesteps, values = found.setdefault(name, ([], []))
                timesteps.append(event.timesteps)
                values.append(value)
    return {
        name: Curve(np.array(found[name][0], np.int64), np.array(found[name][1], np.float64))
        for name in sorted(found)
    }
