"""A run as plots and reports show it: what its directory tells, read without torch."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from game_rl.checkpoints.checkpoint_state import CheckpointState
from game_rl.checkpoints.named import open_run, saved_state
from game_rl.config.schema import RunConfig
from game_rl.errors import NoCheckpointError
from game_rl.events import BaselinePlayed, Begun, Evaluated, Event, Forked, Resumed
from game_rl.events.curve_points import Curve, read_curves
from game_rl.events.event_log import read_events
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import parse_json
from game_rl.statistics import wilson_interval

PlotAxis = Literal["timesteps", "frames", "hours"]
Floats = NDArray[np.float64]
_Z95 = 1.959963984540054  # the normal distribution's 97.5 % point
_S_IN_HOUR = 3600.0


@dataclass(frozen=True)
class RunClock:
    """Frames and hours of a run by its timesteps; float64 [n] each, ascending, from 0 on.

    Hours are those in which the run was trained and evaluated, without the time between an end and
    the resume after it.
    """

    timesteps: Floats
    frames: Floats
    hours: Floats

    def at(self, timesteps: ArrayLike, axis: PlotAxis) -> Floats:
        """Return the places of timesteps on an axis, between two events in proportion."""
        wanted = np.asarray(timesteps, dtype=np.float64)
        if axis == "timesteps":
            return wanted
        known = self.frames if axis == "frames" else self.hours
        found: Floats = np.interp(wanted, self.timesteps, known)
        return found


def run_clock(events: Sequence[Event], frame_skip: int) -> RunClock:
    """Read the clock of a run; its first moment at each timestep counts."""
    points = [(0.0, 0.0, 0.0)]
    hours = 0.0
    waited = 0
    before: Event | None = None
    for event in events:
        if before is not None and not isinstance(event, Begun | Resumed | Forked):
            hours += max(0.0, (event.time - before.time).total_seconds()) / _S_IN_HOUR
        waited = waited if event.waited_frames is None else event.waited_frames
        if event.timesteps > points[-1][0]:
            points.append((event.timesteps, event.timesteps * frame_skip + waited, hours))
        before = event
    timesteps, frames, hour = np.array(points, dtype=np.float64).T
    return RunClock(timesteps, frames, hour)


@dataclass(frozen=True)
class ShownRun:
    """A run and what its files tell.

    Attributes:
        events: those that are not superseded.
        preflight: content of `preflight.json`; empty if there is none that can be read.
        footprint: content of `footprint.json`, likewise.
    """

    run_dir: RunDir
    config: RunConfig
    events: tuple[Event, ...]
    preflight: Mapping[str, Any]
    footprint: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the run's folder."""
        return self.run_dir.root.absolute().name

    @cached_property
    def curves(self) -> dict[str, Curve]:
        return read_curves(self.events)

    @cached_property
    def clock(self) -> RunClock:
        return run_clock(self.events, self.config.env.frame_skip)

    @cached_property
    def state(self) -> CheckpointState | None:
        """Description of the newest checkpoint that is valid; None if there is none."""
        with suppress(NoCheckpointError):
            found = saved_state(self.run_dir)
            return None if found is None else found[1]
        return None

    @property
    def is_training(self) -> bool | None:
        """Whether a process on this machine trains it now; None if that cannot be told."""
        return self.run_dir.is_locked

    @property
    def timesteps(self) -> int:
        """Timesteps that it has reached."""
        return max((event.timesteps for event in self.events), default=0)

    @property
    def evaluations(self) -> list[Evaluated]:
        """The evaluations during the training, of all ways to act."""
        return [
            event
            for event in self.events
            if isinstance(event, Evaluated)
            and not event.is_final
            and event.offline_gradient_steps is None
        ]

    @property
    def baselines(self) -> list[BaselinePlayed]:
        """What policies that have learned nothing reached before the training."""
        return [event for event in self.events if isinstance(event, BaselinePlayed)]

    @property
    def final(self) -> Evaluated | None:
        """The newest final evaluation, of the best policy on held-out episodes."""
        finals = [e for e in self.events if isinstance(e, Evaluated) and e.is_final]
        return finals[-1] if finals else None

    @property
    def better_evaluations(self) -> list[Evaluated]:
        """One evaluation for each timestep: of two ways to act, the one that the run counts."""
        by_timestep: dict[int, list[Evaluated]] = {}
        for event in self.evaluations:
            by_timestep.setdefault(event.timesteps, []).append(event)
        return [_better(events) for events in by_timestep.values()]


def _better(events: Sequence[Evaluated]) -> Evaluated:
    """Return the first, unless another is better by more than the difference's standard error.

    It is the rule by which the training chooses (`callbacks.evaluation.better_of`).
    """
    best = events[0]
    for other in events[1:]:
        if min(best.episodes, other.episodes) < 2:
            continue
        variances = (e.std_reward**2 / (e.episodes - 1) for e in (best, other))
        if other.mean_reward - best.mean_reward > sqrt(sum(variances)):
            best = other
    return best


def success_interval(event: Evaluated) -> tuple[float, float] | None:
    """Return Wilson's 95 % interval of the success rate; None if the game defines no success."""
    if event.success_rate is None or not event.episodes:
        return None
    return wilson_interval(round(event.success_rate * event.episodes), event.episodes)


def reward_interval(event: Evaluated) -> tuple[float, float] | None:
    """Return the normal 95 % interval of the mean reward; None with fewer than two episodes."""
    if event.episodes < 2:
        return None
    half = _Z95 * event.std_reward / sqrt(event.episodes - 1)
    return event.mean_reward - half, event.mean_reward + half


def read_run(root: Path) -> ShownRun:
    """Read a run.

    Raises:
        UsageError: there is no run at `root`.
        ConfigError: its config cannot be read.
    """
    run_dir, config = open_run(root)
    return ShownRun(
        run_dir=run_dir,
        config=config,
        events=tuple(read_events(run_dir)),
        preflight=_json_file(run_dir.preflight),
        footprint=_json_file(run_dir.footprint),
    )


def _json_file(path: Path) -> dict[str, Any]:
    """Return the object in a file; an empty one if it is missing or is none."""
    try:
        found = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def objects_at(tree: object, *keys: str) -> list[Mapping[str, Any]]:
    """Return the objects in the list at these keys of a file's content; of others, none."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return [each for each in tree if isinstance(each, Mapping)] if isinstance(tree, list) else []


def number_at(tree: object, *keys: str) -> float | None:
    """Return the number at these keys of a file's content; None if there is none."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return float(tree) if isinstance(tree, int | float) else None
