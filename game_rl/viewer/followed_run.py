"""A run as its page shows it, kept up to date from the files that the run leaves."""

import importlib
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import yaml

from game_rl.emulator.emulator import FRAMES_PER_SECOND
from game_rl.events import (
    BaselinePlayed,
    Begun,
    CheckpointSaved,
    CurvesRecorded,
    Evaluated,
    Event,
    HintGiven,
    MilestoneReached,
    RolloutEnded,
)
from game_rl.events.event_log import EventFollower
from game_rl.events.run_view import RunView, reward_interval, success_interval
from game_rl.files.pretrained import pretrained_address
from game_rl.files.run_dir import RunDir
from game_rl.files.saved_forecast import SavedForecast, read_footprint, read_forecast
from game_rl.system.units import GIB
from game_rl.viewer.event_words import happening, percents_spaced

Json = dict[str, Any]
MACHINE_EVERY_S = 15.0
MOST_POINTS = 400
"""Points of a curve on the page, which is never wider in pixels."""
MOST_HAPPENINGS = 300
MOST_EVENTS = 6_000
"""Events that are kept; of more, frequent ones are dropped evenly, to keep the server small."""
_UNSHOWN = {"lakes_followed", "rows_drawn"}
_THINNED = {"rollout_ended", "curves_recorded", "evaluated", "evaluating"}
_MOST_OF_A_KIND = 2_000
_LOOPED = "game/looped/"

_Interval = tuple[float, float]
_Point = tuple[int, float, _Interval | None]
_Kind = TypeVar("_Kind")
_CLIPS = (".gif", ".mp4")
_SHOWN_LAST = ("early", "worst")
_CURVED = (RolloutEnded, Evaluated, CurvesRecorded)


def run_summary(run: RunView) -> Json:
    """Return what the events say about the run's progress and results."""
    start = run.start
    rollout = run.rollout
    frames = run.frames
    phase, left = run.time_left()
    regular = [event for event in run.all_of(Evaluated) if not event.is_final]
    best = [event for event in regular if event.is_best]
    saved = run.newest(CheckpointSaved)
    checkpoint: Json | None = None
    if saved is not None:
        checkpoint = {"timesteps": saved.timesteps, "n_bytes": saved.n_bytes}
        checkpoint["time"] = saved.time.isoformat()
    end = run.end
    ended: Json | None = None
    if end is not None:
        text = end.text or (run.ended_by if end.reason == "completed" else "")
        ended = {
            "reason": end.reason,
            "text": percents_spaced(text),
            "time": end.time.isoformat(),
        }
    return {
        "algorithm": next((e.algorithm for e in run.all_of(Begun)), None),
        "device": None if start is None else start.device,
        "version": "" if start is None else start.version,
        "state": run.state,
        "ended": ended,
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
        "checkpoint": checkpoint,
        "pool": None if run.pool is None else run.pool.as_json,
    }


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


def machine_use(run_dir: RunDir, newest: Mapping[str, float]) -> Json:
    """Return bytes of memory and disk: predicted, in use, available.

    It walks through the run directory, which takes a moment if there is a Lake.

    Args:
        newest: newest value of each training curve, by its name.
    """
    plan = read_forecast(run_dir.preflight) or SavedForecast()
    measured = read_footprint(run_dir.footprint).get("ram_peak_bytes")
    lake = 0
    rest = 0
    for folder, _, names in os.walk(run_dir.root):
        is_lake = Path(folder).is_relative_to(run_dir.lake)
        for name in names:
            with suppress(OSError):  # it has just been renamed
                size = Path(folder, name).stat().st_size
                if is_lake:
                    lake += size
                else:
                    rest += size
    free = None
    with suppress(OSError):
        free = shutil.disk_usage(run_dir.root).free
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
            "free": free,
        },
        "lake": {"now": lake, "predicted": plan.disk.lake_bytes} if lake else None,
        "cpu_percent": newest.get("resources/cpu_percent"),
    }


def _bytes(gib: float | None) -> int | None:
    return None if gib is None else round(gib * GIB)


class FollowedRun:
    """A run's events, numbers, curves and clips.

    One thread at a time calls `refresh`; others may read meanwhile.

    Args:
        name: what the page calls it.
        experiment: the experiment that decides how far it trains; None for a run of its own.
        clock: seconds, which only grow.

    Attributes:
        state: what `summary` returned at the last `refresh`.
    """

    def __init__(
        self,
        run_dir: RunDir,
        name: str,
        *,
        experiment: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.run_dir = run_dir
        self.name = name
        self._experiment = None if experiment is None else str(experiment)
        self._clock = clock
        self._follower = EventFollower(run_dir)
        self._machine: Json = {}
        self._circles: Json = {}
        self._machine_due = 0.0
        self.state: Json = {}
        self._replacements = 0
        self._config: Json = {}
        self._config_mtime_ns: int | None = None
        self._read_config_if_new()

    @property
    def cuts(self) -> int:
        """How often events were superseded since the first look."""
        return self._follower.cuts

    def refresh(self) -> None:
        """Read what the run has written since the last call."""
        self._follower.read()
        if self._follower.replacements != self._replacements:  # another run is here now
            self._replacements = self._follower.replacements
            self._machine_due = 0.0
            self._config_mtime_ns = None
        self._read_config_if_new()
        if len(self._follower.events) > MOST_EVENTS:
            self._follower.events = _thinned(self._follower.events)
        self.state = self.summary()

    def _read_config_if_new(self) -> None:
        try:
            mtime_ns = self.run_dir.config.stat().st_mtime_ns
        except OSError:
            mtime_ns = -1
        if mtime_ns != self._config_mtime_ns:
            self._config = _read_config(self.run_dir.config)
            self._config_mtime_ns = mtime_ns

    @property
    def events(self) -> list[Event]:
        return [event for _, event in self._follower.events]

    def happenings(self, after: int = -1) -> list[Json]:
        """Return the newest lines of the list of events, oldest first.

        Args:
            after: offset in the file of the last event that is known already.
        """
        found: list[Json] = []
        for offset, event in reversed(self._follower.events):
            if offset <= after or len(found) == MOST_HAPPENINGS:
                break
            line = happening(event)
            if line is not None:
                place = {"offset": offset, "time": event.time.isoformat()}
                found.append(place | {"timesteps": event.timesteps} | asdict(line))
        return found[::-1]

    @property
    def end(self) -> int:
        """Offset of the newest event, or -1."""
        return self._follower.events[-1][0] if self._follower.events else -1

    def summary(self) -> Json:
        """Return the state of the run as JSON."""
        events = self.events
        view = RunView(events, self.run_dir.is_locked)
        if self._clock() >= self._machine_due:
            newest = newest_values(events)
            self._machine = machine_use(self.run_dir, newest)
            self._circles = going_in_circles(newest)
            self._machine_due = self._clock() + MACHINE_EVERY_S
        hints = {event.name: event for event in _of(events, HintGiven)}  # the newest of each name
        return {
            "name": self.name,
            "path": pretrained_address(self.run_dir.root) or str(self.run_dir.root),
            "experiment": self._experiment,
            "replacements": self._replacements,
            **self._config,
            **run_summary(view),
            "machine": self._machine,
            "circles": self._circles,
            "milestones": [
                event.model_dump(mode="json") for event in _of(events, MilestoneReached)
            ],
            "hints": [
                hint.model_dump(mode="json") | {"text": percents_spaced(hint.text)}
                for hint in hints.values()
            ],
            "clips": [clip.name for clip in self.clips()],
            "n_curve_points": sum(isinstance(event, _CURVED) for event in events),
        }

    def clips(self) -> list[Path]:
        """Return the clips, the one that is shown first."""
        return clips_of(self.run_dir)

    def curves(self) -> Json:
        """Return the curves as JSON: by name, timesteps, values, and intervals if it has any.

        The final evaluation is a curve of one point, `final/`, at the timestep of its policy.
        """
        found: dict[str, list[_Point]] = {}
        for name, timesteps, value, interval in _points(self.events):
            found.setdefault(name, []).append((timesteps, value, interval))
        return {name: _as_lists(points) for name, points in sorted(found.items())}

    def settings(self) -> Json:
        """Return the run's config as its file has it."""
        try:
            return {"text": self.run_dir.config.read_text(encoding="utf-8")}
        except (OSError, ValueError):
            return {"text": ""}

    def places(self) -> Json:
        """Return the map of visited places as JSON, with modules that other runs do not need."""
        if not self.run_dir.places.is_file():
            return {}
        module = importlib.import_module("game_rl.places.place_layers")
        return dict(module.places_json(self.run_dir))


def clips_of(run_dir: RunDir) -> list[Path]:
    """Return the clips of a run, the newest first.

    An agent that comes with game_rl has files whose times say nothing, so its clips are those of
    its best episode, of the policy at play, and the rest. A training's first episode and an
    evaluation's worst one come last of all.
    """
    if not run_dir.videos.is_dir():
        return []
    inside = (path for path in run_dir.videos.iterdir() if not path.is_symlink())
    found = [path for path in inside if path.suffix in _CLIPS and path.is_file()]
    is_dated = pretrained_address(run_dir.root) is None

    def order(path: Path) -> tuple[bool, float, bool, str]:
        newest_first = -path.stat().st_mtime if is_dated else 0.0
        return path.stem in _SHOWN_LAST, newest_first, path.stem != "best", path.name

    return sorted(found, key=order)


def newest_values(events: Sequence[Event]) -> dict[str, float]:
    """Return the newest value of each training curve."""
    newest: dict[str, float] = {}
    for event in _of(events, CurvesRecorded):
        newest |= event.values
    return newest


def going_in_circles(newest: Mapping[str, float]) -> Json:
    """Return the share of the last episodes that are stuck, and what is earned in loops."""
    looped = {
        name.removeprefix(_LOOPED): v for name, v in newest.items() if name.startswith(_LOOPED)
    }
    term = max(looped, key=lambda name: looped[name], default=None)
    return {
        "stuck": newest.get("game/stuck/episodes"),
        "term": term,
        "looped": None if term is None else looped[term],
    }


def _points(
    events: Sequence[Event],
) -> Iterator[tuple[str, int, float, _Interval | None]]:
    is_any_deterministic = any(e.deterministic for e in events if isinstance(e, Evaluated))
    for event in events:
        if isinstance(event, RolloutEnded):
            yield from _shown(event, "training", event.timesteps)
            yield "training/timesteps_per_s", event.timesteps, event.timesteps_per_s, None
        elif isinstance(event, Evaluated):
            if event.is_final:
                yield from _shown(event, "final", event.policy_timesteps)
            elif event.offline_gradient_steps is None:
                way = "" if event.deterministic else "_stochastic"
                yield from _shown(event, f"evaluation{way}", event.policy_timesteps)
                if event.deterministic or not is_any_deterministic:
                    yield from _by_start_state(event)
        elif isinstance(event, BaselinePlayed):
            yield from _shown(event, f"baseline/{event.name}", 0)
        elif isinstance(event, CurvesRecorded):
            for name, value in event.values.items():
                yield name, event.timesteps, value, None


def _shown(
    event: RolloutEnded | Evaluated | BaselinePlayed, group: str, timesteps: int
) -> Iterator[tuple[str, int, float, _Interval | None]]:
    evaluated = event if isinstance(event, Evaluated) else None
    if event.success_rate is not None:
        interval = None if evaluated is None else success_interval(evaluated)
        yield f"{group}/success_rate", timesteps, event.success_rate, interval
    if event.mean_reward is not None:
        interval = None if evaluated is None else reward_interval(evaluated)
        yield f"{group}/mean_reward", timesteps, event.mean_reward, interval


def _by_start_state(event: Evaluated) -> Iterator[tuple[str, int, float, _Interval | None]]:
    """Return the results by start state under their names in TensorBoard."""
    for state, result in (event.by_start_state or {}).items():
        if result.success_rate is None:
            yield f"eval/mean_reward/{state}", event.policy_timesteps, result.mean_reward, None
        else:
            yield f"eval/success_rate/{state}", event.policy_timesteps, result.success_rate, None


def _thinned(events: list[tuple[int, Event]]) -> list[tuple[int, Event]]:
    """Drop what the page does not show, and every other event of a kind with too many of them."""
    kinds = Counter(str(event.event) for _, event in events)
    seen: Counter[str] = Counter()
    kept = []
    for offset, event in events:
        kind = str(event.event)
        seen[kind] += 1
        is_newest = seen[kind] == kinds[kind]
        is_odd = kinds[kind] > _MOST_OF_A_KIND and kind in _THINNED and seen[kind] % 2 == 0
        if is_newest or not (kind in _UNSHOWN or is_odd):
            kept.append((offset, event))
    return kept


def _as_lists(points: list[_Point]) -> Json:
    """Return at most `MOST_POINTS` points, the last one included."""
    if len(points) > MOST_POINTS:
        at = np.linspace(0, len(points) - 1, MOST_POINTS).round().astype(int)
        points = [points[n] for n in at]
    found: Json = {
        "timesteps": [timesteps for timesteps, _, _ in points],
        "values": [float(f"{value:.5g}") for _, value, _ in points],
    }
    if any(interval is not None for _, _, interval in points):
        found["intervals"] = [interval for _, _, interval in points]
    return found


def _of(events: Sequence[Event], kind: type[_Kind]) -> list[_Kind]:
    return [event for event in events if isinstance(event, kind)]


def _read_config(path: Path) -> Json:
    """Return what the page names of the config; it is YAML that game_rl has written itself."""
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        game = str(config["game"])
        env = config["env"]
        n_envs = env["n_envs"]
        states = env.get("start_states")
        memory = memory_words(config.get("algorithm", {}).get("memory"))
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        yaml.YAMLError,
    ):
        return {"game": "", "n_envs": None, "start_states": [], "memory": ""}
    file = Path(game)
    name = file.parent.name if file.name == "game.yaml" else file.stem
    return {
        "game": name,
        "n_envs": n_envs if isinstance(n_envs, int) else None,
        "start_states": [str(state) for state in states] if isinstance(states, list) else [],
        "memory": memory,
    }


def memory_words(section: Json | None) -> str:
    """Return what the agent remembers with; "" if it has no memory."""
    if section is None:
        return ""
    article = "a" if section["kind"] == "gru" else "an"
    layers = f" in {section['layers']} layers" if section["layers"] > 1 else ""
    return f"{article} {section['kind'].upper()} of {section['size']} units{layers}"
