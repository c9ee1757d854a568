"""The numbers of a run that its page shows first, from its events alone."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from game_rl.events import (
    Begun,
    CheckpointSaved,
    Ended,
    Evaluated,
    Event,
    Forked,
    Resumed,
    RolloutEnded,
    StopConditionMet,
)
from game_rl.events.time_left import EndClock
from game_rl.statistics import wilson_interval

_FPS = 59.727500569606
"""Frames that a Game Boy draws in a second."""
_NO_TIME_LEFT = {"phase": "ended", "seconds_left": None, "left_is": None}

_STARTS = Begun | Forked | Resumed

Json = dict[str, Any]


def run_summary(events: Sequence[Event], *, is_training: bool | None) -> Json:
    """Return what the events say about the run's progress and results.

    Args:
        events: those that are not superseded, in their order.
        is_training: whether a process writes to the run; None if that cannot be told.
    """
    starts = [event for event in events if isinstance(event, Begun | Resumed)]
    rollouts = [event for event in events if isinstance(event, RolloutEnded)]
    start = _last(starts)
    rollout = _last(rollouts)
    timesteps = max((event.timesteps for event in events), default=0)
    total = None if start is None else start.total_timesteps
    ended = _ended(events, is_training=is_training)
    return {
        "algorithm": next((e.algorithm for e in events if isinstance(e, Begun)), None),
        "device": None if start is None else start.device,
        "version": "" if start is None else start.version,
        "state": _state(ended, is_training=is_training),
        "ended": ended,
        "trained_s": _trained_s(events),
        "timesteps": timesteps,
        "total_timesteps": total,
        "stop_when": [] if start is None else list(start.stop_when),
        "game_changes": [] if start is None else list(start.game_changes),
        "timesteps_per_s": None if rollout is None else rollout.timesteps_per_s,
        "mean_reward": None if rollout is None else rollout.mean_reward,
        "success_rate": None if rollout is None else rollout.success_rate,
        **(_time_left(events) if is_training else _NO_TIME_LEFT),
        "last_event": events[-1].time.isoformat() if events else None,
        **_frames(events, timesteps),
        **_evaluations(events),
        "checkpoint": _checkpoint(events),
    }


def _state(ended: Json | None, *, is_training: bool | None) -> str:
    if is_training:
        return "training"
    if ended is not None:
        return str(ended["reason"])
    return "unknown" if is_training is None else "not training"


def _last(events: Sequence[Any]) -> Any:  # noqa: ANN401 - of the same class
    return events[-1] if events else None


def _frames(events: Sequence[Event], timesteps: int) -> Json:
    """Return emulator frames and the hours that a person would have played."""
    skips = [e.frame_skip for e in events if isinstance(e, Begun | Resumed) and e.frame_skip]
    if not skips:
        return {"frames": None, "played_s": None}
    waited = max((e.waited_frames for e in events if e.waited_frames is not None), default=0)
    frames = timesteps * skips[-1] + waited
    return {"frames": frames, "played_s": frames / _FPS}


def _trained_s(events: Sequence[Event]) -> float:
    """Return the seconds in which the run trained or evaluated, without the time between sessions.

    The gap before a start is left out, with what was lost when a session was killed.
    """
    pairs = pairwise(events)
    stretches = (_between(a.time, b.time) for a, b in pairs if not isinstance(b, _STARTS))
    return sum(max(0.0, seconds) for seconds in stretches)


def _time_left(events: Sequence[Event]) -> Json:
    """Return what the run does now and until when, evaluations and the clip included."""
    clock = EndClock()
    for event in events:
        clock.hear(event)
    left = clock.time_left(datetime.now(UTC))
    return {
        "phase": clock.phase,
        "seconds_left": None if left is None else left.seconds,
        "left_is": None if left is None else left.qualifier,
    }


def _between(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds()


def _ended(events: Sequence[Event], *, is_training: bool | None) -> Json | None:
    last = _last(events)
    if is_training or not isinstance(last, Ended):
        return None
    met = [e.text for e in events if isinstance(e, StopConditionMet)]
    text = last.text or (met[-1] if met and last.reason == "completed" else "")
    return {"reason": last.reason, "text": text, "time": last.time.isoformat()}


def _evaluations(events: Sequence[Event]) -> Json:
    played = [event for event in events if isinstance(event, Evaluated)]
    best = [event for event in played if event.is_best and not event.is_final]
    finals = [event for event in played if event.is_final]
    regular = [event for event in played if not event.is_final]
    return {
        "evaluation": _evaluation(_last(regular)),
        "best_evaluation": _evaluation(_last(best)),
        "final_evaluation": _evaluation(_last(finals)),
    }


def _evaluation(event: Evaluated | None) -> Json | None:
    if event is None:
        return None
    rate = event.success_rate
    states = event.by_start_state or {}
    interval = None
    if rate is not None:
        interval = wilson_interval(round(rate * event.episodes), event.episodes)
    return {
        "policy_timesteps": event.policy_timesteps,
        "deterministic": event.deterministic,
        "episodes": event.episodes,
        "mean_reward": event.mean_reward,
        "std_reward": event.std_reward,
        "success_rate": rate,
        "success_interval": interval,
        "mean_length": event.mean_length,
        "by_start_state": {k: v.model_dump() for k, v in states.items()} or None,
    }


def _checkpoint(events: Sequence[Event]) -> Json | None:
    saved = _last([event for event in events if isinstance(event, CheckpointSaved)])
    if saved is None:
        return None
    return {"timesteps": saved.timesteps, "n_bytes": saved.n_bytes, "time": saved.time.isoformat()}
