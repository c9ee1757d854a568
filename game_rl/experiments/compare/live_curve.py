"""The curve of a live mixture, whose runs train at once and do not wait for each other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from game_rl.event_log import read_events
from game_rl.experiments.compare.evaluations import curve_of
from game_rl.experiments.compare.outcome import Point
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.lineage import Source, at, totals
from game_rl.run_dir import RunDir


@dataclass(frozen=True)
class _Progress:
    """A run's timesteps over time, by its events; float64 [n] each, both ascending.

    Attributes:
        times_s: seconds since the epoch.
    """

    times_s: NDArray[np.float64]
    timesteps: NDArray[np.float64]

    def when(self, timesteps: int) -> float:
        return float(np.interp(timesteps, self.timesteps, self.times_s))

    def reached(self, time_s: float) -> int:
        return int(np.interp(time_s, self.times_s, self.timesteps))


def live_curve(folder: ExperimentDir, runs: Mapping[str, Source], name: str) -> Iterator[Point]:
    """Yield a run's evaluations, with the timesteps and frames of all runs at that moment.

    The other runs' timesteps at that moment are interpolated linearly between their events.

    Args:
        runs: all runs in their present state, by folder.
        name: folder of the run.
    """
    progress = {each: _progress(folder.member(each)) for each in runs}
    for point in curve_of(folder.member(name), runs[name]) if name in runs else ():
        now = progress[name].when(point.timesteps)
        then = [
            at(run, point.timesteps if each == name else progress[each].reached(now))
            for each, run in runs.items()
        ]
        timesteps, frames = totals(then)
        yield point.model_copy(update={"total_timesteps": timesteps, "total_frames": frames})


def _progress(run_dir: RunDir) -> _Progress:
    events = read_events(run_dir)
    found = [(event.time.timestamp(), float(event.timesteps)) for event in events] or [(0.0, 0.0)]
    times_s, timesteps = np.array(sorted(found)).T
    return _Progress(times_s, np.maximum.accumulate(timesteps))
