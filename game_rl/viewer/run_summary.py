"""The numbers of a run that its page shows first: progress, results, memory and disk."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from game_rl.emulator.emulator import FRAMES_PER_SECOND
from game_rl.events import Begun, CheckpointSaved, Evaluated
from game_rl.events.run_view import RunView, success_interval
from game_rl.files.run_dir import RunDir
from game_rl.files.saved_forecast import SavedForecast, read_footprint, read_forecast
from game_rl.system.units import GIB

Json = dict[str, Any]


def run_summary(run: RunView) -> Json:
    """Return what the events say about the run's progress and results."""
    start = run.start
    rollout = run.rollout
    frames = run.frames
    phase, left = run.time_left()
    played = run.all_of(Evaluated)
    regular = [event for event in played if not event.is_final]
    best = [event for event in regular if event.is_best]
    return {
        "algorithm": next((e.algorithm for e in run.all_of(Begun)), None),
        "device": None if start is None else start.device,
        "version": "" if start is None else start.version,
        "state": run.state,
        "ended": _ended(run),
        "trained_s": run.trained_s,
        "timesteps": run.timesteps,
        "total_timesteps": run.total_timesteps,
        "stop_when": list(run.stop_when),
        "game_changes": list(run.game_changes),
        "timesteps_per_s": run.timesteps_per_s,
        "mean_reward": None if rollout is None else rollout.mean_reward,
        "success_rate": None if rollout is None else rollout.success_rate,
        "phase": phase,
        "seconds_left": None if left is None else left.seconds,
        "left_is": None if left is None else left.qualifier,
        "last_event": run.events[-1].time.isoformat() if run.events else None,
        "frames": frames,
        "played_s": None if frames is None else frames / FRAMES_PER_SECOND,
        "evaluation": _evaluation(regular[-1]) if regular else None,
        "best_evaluation": _evaluation(best[-1]) if best else None,
        "final_evaluation": None if run.final is None else _evaluation(run.final),
        "checkpoint": _checkpoint(run.newest(CheckpointSaved)),
    }


def _ended(run: RunView) -> Json | None:
    end = run.end
    if end is None:
        return None
    text = end.text or (run.ended_by if end.reason == "completed" else "")
    return {"reason": end.reason, "text": text, "time": end.time.isoformat()}


def _evaluation(event: Evaluated) -> Json:
    states = event.by_start_state or {}
    return {
        "policy_timesteps": event.policy_timesteps,
        "deterministic": event.deterministic,
        "episodes": event.episodes,
        "mean_reward": event.mean_reward,
        "std_reward": event.std_reward,
        "success_rate": event.success_rate,
        "success_interval": success_interval(event),
        "mean_length": event.mean_length,
        "by_start_state": {k: v.model_dump() for k, v in states.items()} or None,
    }


def _checkpoint(saved: CheckpointSaved | None) -> Json | None:
    if saved is None:
        return None
    return {"timesteps": saved.timesteps, "n_bytes": saved.n_bytes, "time": saved.time.isoformat()}


def machine_use(run_dir: RunDir, newest: Mapping[str, float]) -> Json:
    """Return bytes of memory and disk: predicted, in use, available.

    It walks through the run directory, which takes a moment if there is a Lake.

    Args:
        newest: newest value of each training curve, by its name.
    """
    plan = read_forecast(run_dir.preflight) or SavedForecast()
    measured = read_footprint(run_dir.footprint).get("ram_peak_bytes")
    lake, rest = _sizes(run_dir)
    return {
        "ram": {
            "predicted": plan.ram.predicted_peak_bytes,
            "limit": plan.ram.limit_bytes,
            "now": _bytes(newest.get("resources/ram_gib")),
            "free": _bytes(newest.get("resources/ram_free_gib")),
            "peak": None if measured is None else measured.measured,
        },
        "vram": {
            "predicted": plan.vram.predicted_peak_bytes,
            "now": _bytes(newest.get("resources/vram_gib")),
        },
        "disk": {
            "predicted": plan.disk.predicted_total_bytes,
            "now": lake + rest,
            "free": _free(run_dir.root),
        },
        "lake": {"now": lake, "predicted": plan.disk.lake_bytes} if lake else None,
        "cpu_percent": newest.get("resources/cpu_percent"),
    }


def _bytes(gib: float | None) -> int | None:
    return None if gib is None else round(gib * GIB)


def _free(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _sizes(run_dir: RunDir) -> tuple[int, int]:
    """Return the bytes of the run's own Lake, and of all its other files."""
    lake = 0
    rest = 0
    for folder, _, names in os.walk(run_dir.root):
        is_lake = Path(folder).is_relative_to(run_dir.lake)
        for name in names:
            try:
                size = Path(folder, name).stat().st_size
            except OSError:  # it has just been renamed
                continue
            if is_lake:
                lake += size
            else:
                rest += size
    return lake, rest
