"""A run as its events and its lock tell it: how far it is, its results, its clock.

Lists, `status`, the page, plots and reports show what `RunView` says.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from math import sqrt
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from game_rl.events import (
    BaselinePlayed,
    Begun,
    CheckpointSaved,
    CurvesRecorded,
    Ended,
    Evaluated,
    Event,
    Forked,
    HintGiven,
    MilestoneReached,
    PoolCounted,
    PoolLevel,
    Resumed,
    RolloutEnded,
    StopConditionMet,
    TimedEvent,
)
from game_rl.events.event_log import EventFollower, read_events
from game_rl.events.time_left import EndClock, TimeLeft
from game_rl.files.run_dir import RunDir
from game_rl.statistics import Z95, Floats, percent, wilson_interval


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
            at = event.timesteps
            frame = None
            if frame_skip is not None:
                frame = at * frame_skip + (event.waited_frames or 0)
            found.append(
                MilestoneRow(
                    event.kind, event.name, event.value, event.text, at, frame, event.hours
                )
            )
    if is_newest:
        found = list({(row.kind, row.name): row for row in found}.values())
    return sorted(found, key=lambda row: row.timesteps)


@dataclass(frozen=True)
class PoolInUse:
    """The pool of a run at its newest boundary, and its last episodes by where they began.

    Attributes:
        states: number of its states.
        share: share of the episodes that began in it.
        success_rate, success_rate_from_start: of those, and of the others, by `env.pool.goal`;
            None: there were none.
        passed: number of the states on routes that are passed; None: it has no routes.
        levels: see `PoolCounted`.
    """

    states: int
    share: float | None
    success_rate: float | None
    success_rate_from_start: float | None
    passed: int | None
    levels: tuple[PoolLevel, ...]

    @property
    def as_json(self) -> dict[str, object]:
        return asdict(self) | {"levels": [level.model_dump() for level in self.levels]}

    @property
    def in_words(self) -> str:
        words = [f"{self.states:,} states"]
        if self.passed is not None:
            words.append(f"{self.passed:,} of them passed")
        if self.share is not None:
            words.append(f"{percent(self.share)} of the episodes start there")
        if self.success_rate is not None:
            words.append(f"goal met in {percent(self.success_rate)} from there")
        if self.success_rate_from_start is not None:
            words.append(
                f"goal met in {percent(self.success_rate_from_start)} from the start states"
            )
        return ", ".join(words)


PlotAxis = Literal["timesteps", "frames", "hours"]
RunState = Literal[
    "not begun", "training", "completed", "until", "stopped", "failed", "killed", "unknown"
]
"""`until`: it was to pause there. `unknown`: this user may not read whether it trains."""
STATE_WORDS: dict[str, str] = {
    "not begun": "not begun",
    "training": "training",
    "completed": "complete",
    "until": "paused",
    "stopped": "stopped",
    "failed": "failed",
    "killed": "killed",
    "unknown": "state unknown",
}
_Kind = TypeVar("_Kind", bound=Event)
_LAST_BYTES = 65_536  # more than the last hundred events
_LAST_POINTS = 5  # of a curve that changes with each episode
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
    waited = 0
    for event, seconds in zip(events, _trained_s(events), strict=True):
        waited = waited if event.waited_frames is None else event.waited_frames
        if event.timesteps > points[-1][0]:
            frames = event.timesteps * frame_skip + waited
            points.append((event.timesteps, frames, seconds / _S_IN_HOUR))
    timesteps, frames, hours = np.array(points, dtype=np.float64).T
    return RunClock(timesteps, frames, hours)


def _trained_s(events: Sequence[Event]) -> Iterator[float]:
    """Yield the seconds of training and evaluations up to each event.

    The gap before a start is left out, with what was lost when a session was killed.
    """
    seconds = 0.0
    before: Event | None = None
    for event in events:
        if before is not None and not isinstance(event, Begun | Resumed | Forked):
            seconds += max(0.0, (event.time - before.time).total_seconds())
        yield seconds
        before = event


@dataclass(frozen=True)
class RunView:
    """A run at a moment.

    Attributes:
        events: those that are not superseded, in their order.
        is_training: whether a process on this machine trains it; None if that cannot be told,
            because this user may not read the lock.
    """

    events: Sequence[Event]
    is_training: bool | None

    @property
    def state(self) -> RunState:
        if self.is_training:
            return "training"
        if self.end is not None:
            return self.end.reason
        if self.is_training is None:
            return "unknown"
        return "killed" if self.events else "not begun"

    @property
    def start(self) -> Begun | Resumed | None:
        """The start of the newest session."""
        return next((e for e in reversed(self.events) if isinstance(e, Begun | Resumed)), None)

    @property
    def end(self) -> Ended | None:
        """How the last session ended; None while one trains, or if it was killed."""
        last = self.events[-1] if self.events else None
        return last if isinstance(last, Ended) and not self.is_training else None

    @property
    def ended_by(self) -> str:
        """The condition that has ended the run, if nothing was played since; empty if none has."""
        for event in reversed(self.events):
            if isinstance(event, StopConditionMet):
                return event.text
            if isinstance(event, RolloutEnded):
                break
        return ""

    @property
    def timesteps(self) -> int:
        """Timesteps that it has reached: the highest of any event."""
        return max((event.timesteps for event in self.events), default=0)

    @property
    def total_timesteps(self) -> int | None:
        return None if self.start is None else self.start.total_timesteps

    @property
    def stop_when(self) -> tuple[str, ...]:
        """Conditions under which the run ends before its total, in words."""
        return () if self.start is None else self.start.stop_when

    @property
    def game_changes(self) -> tuple[str, ...]:
        return () if self.start is None else self.start.game_changes

    @property
    def frames(self) -> int | None:
        """Emulator frames of its timesteps; None if the log does not say `frame_skip`."""
        starts = (e.frame_skip for e in reversed(self.events) if isinstance(e, Begun | Resumed))
        frame_skip = next(filter(None, starts), None)
        if frame_skip is None:
            return None
        return self.timesteps * frame_skip + self.waited_frames

    @property
    def waited_frames(self) -> int:
        """Frames beyond `frame_skip` in each timestep."""
        waited = (e.waited_frames for e in self.events if e.waited_frames is not None)
        return max(waited, default=0)

    @property
    def trained_s(self) -> float:
        """Seconds in which it trained or evaluated, without the time between sessions."""
        return max(_trained_s(self.events), default=0.0)

    @property
    def rollout(self) -> RolloutEnded | None:
        return self.newest(RolloutEnded)

    @property
    def checkpoint(self) -> CheckpointSaved | None:
        return self.newest(CheckpointSaved)

    @property
    def timesteps_per_s(self) -> float | None:
        return None if self.rollout is None else self.rollout.timesteps_per_s

    @cached_property
    def curves(self) -> dict[str, Curve]:
        return read_curves(self.events)

    @property
    def stuck_episodes(self) -> float | None:
        """Share of the last episodes that were stuck; None if it is not known."""
        return self._recent("game/stuck/episodes")

    @property
    def pool(self) -> PoolInUse | None:
        """The states in which episodes begin, besides the start states; None if there are none."""
        curves = self.curves
        if "pool/states" not in curves:
            return None
        states = int(curves["pool/states"].values[-1])
        passed = None
        if "pool/passed" in curves:
            passed = round(states * float(curves["pool/passed"].values[-1]))
        counted = self.newest(PoolCounted)
        return PoolInUse(
            states=states,
            share=self._recent("pool/share"),
            success_rate=self._recent("pool/success_rate"),
            success_rate_from_start=self._recent("pool/success_rate_from_start"),
            passed=passed,
            levels=() if counted is None else counted.levels,
        )

    def _recent(self, name: str) -> float | None:
        curve = self.curves.get(name)
        return None if curve is None else float(curve.values[-_LAST_POINTS:].mean())

    @property
    def hints(self) -> list[HintGiven]:
        """The newest hint of each name, in the order of their timesteps."""
        newest = {event.name: event for event in self.all_of(HintGiven)}
        return sorted(newest.values(), key=lambda hint: hint.timesteps)

    @property
    def evaluations(self) -> list[Evaluated]:
        """The evaluations during the training, of all ways to act."""
        return [
            event
            for event in self.all_of(Evaluated)
            if not event.is_final and event.offline_gradient_steps is None
        ]

    @property
    def baselines(self) -> list[BaselinePlayed]:
        """What policies that have learned nothing reached before the training."""
        return self.all_of(BaselinePlayed)

    @property
    def final(self) -> Evaluated | None:
        """The newest final evaluation, of the best policy on held-out episodes."""
        return next((e for e in reversed(self.all_of(Evaluated)) if e.is_final), None)

    @property
    def better_evaluations(self) -> list[Evaluated]:
        """One evaluation for each timestep: of two ways to act, the one that the run counts."""
        by_timestep: dict[int, list[Evaluated]] = {}
        for event in self.evaluations:
            by_timestep.setdefault(event.timesteps, []).append(event)
        return [_better(events) for events in by_timestep.values()]

    def all_of(self, kind: type[_Kind]) -> list[_Kind]:
        return [event for event in self.events if isinstance(event, kind)]

    def newest(self, kind: type[_Kind]) -> _Kind | None:
        return next((event for event in reversed(self.events) if isinstance(event, kind)), None)

    def time_left(self) -> tuple[str, TimeLeft | None]:
        """Return what it does now, and the time up to its end, if that is known."""
        if not self.is_training:
            return "ended", None
        clock = EndClock()
        for event in self.events:
            clock.hear(event)
        return clock.phase, clock.time_left(datetime.now(UTC))


def read_view(run_dir: RunDir) -> RunView:
    return RunView(read_events(run_dir), run_dir.is_locked)


def read_tail(run_dir: RunDir) -> RunView:
    """Return what a run's last events say, which takes as long for a long run as for a short one.

    It may lack what happens rarely, and does not look at the lock.
    """
    newest = EventFollower(run_dir, last_bytes=_LAST_BYTES).read()
    return RunView([event for _, event in newest], None)


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
    half = Z95 * event.std_reward / sqrt(event.episodes - 1)
    return event.mean_reward - half, event.mean_reward + half
