"""The panels of runs: evaluation, reward terms, speed, memory and disk against the forecast."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from game_rl.events import CheckpointSaved, CurvesRecorded, Evaluated
from game_rl.events.run_view import PlotAxis, reward_interval, success_interval
from game_rl.experiments.compare.comparison import arm_names, settings_of
from game_rl.system.units import GIB
from game_rl.viewer.look import BASELINES, EVALUATION, STOCHASTIC_EVALUATION, TRAINING
from game_rl.viewer.panels import Floats, Panel, PlotLine, SeedCurve, Unit, seed_lines, thinned
from game_rl.viewer.shown_run import ShownRun

X_LABELS = {"timesteps": "timesteps", "frames": "emulator frames", "hours": "hours of training"}
REWARD_TERM = "game/reward/"
MOST_TERMS = 8
"""Reward terms in one panel, as many as the palette has colours."""
_MOST_PANELS = 4
_OF_AN_EPISODE = "sum over an episode, while training"


@dataclass(frozen=True)
class RunGroup:
    """Runs of one colour: seeds of one config, or the members of an experiment.

    Attributes:
        of: what the runs are, for the legend.
    """

    name: str
    runs: tuple[ShownRun, ...]
    of: str = "seeds"

    @property
    def label(self) -> str:
        count = len(self.runs)
        return self.name if count == 1 else f"{self.name} ({count} {self.of})"


def grouped_runs(runs: Sequence[ShownRun]) -> list[RunGroup]:
    """Group runs by their configs, in the order in which they are named."""
    groups: dict[str, list[ShownRun]] = {}
    for run in runs:
        settings = json.dumps(settings_of(run.config), sort_keys=True)
        groups.setdefault(settings, []).append(run)
    names = arm_names([[run.name for run in group] for group in groups.values()], taken=set())
    shown = (
        group[0].name if len(group) == 1 else name
        for name, group in zip(names, groups.values(), strict=True)
    )
    return [RunGroup(n, tuple(group)) for n, group in zip(shown, groups.values(), strict=True)]


def run_panels(groups: Sequence[RunGroup], axis: PlotAxis) -> list[Panel]:
    """Return the panels that these runs have something to show in."""
    panels = [
        _evaluation_panel(groups, axis, is_success=True),
        _evaluation_panel(groups, axis, is_success=False),
        *_reward_panels(groups, axis),
        _curve_panel(groups, axis, "rollout/ep_len_mean", "Episode length", "number"),
        _speed_panel(groups, axis),
        _memory_panel(groups, axis),
        _disk_panel(groups, axis),
    ]
    return [panel for panel in panels if panel.lines]


# ---------------------------------------------------------------------- evaluation


def _evaluation_panel(groups: Sequence[RunGroup], axis: PlotAxis, *, is_success: bool) -> Panel:
    lines: list[PlotLine] = []
    for colour, group in enumerate(groups):
        if len(group.runs) == 1:
            lines += _lines_of_one(
                group, colour, axis, is_success=is_success, alone=len(groups) == 1
            )
        else:
            curves = [_evaluation_curve(run, axis, is_success=is_success) for run in group.runs]
            known = [curve for curve in curves if len(curve.x)]
            lines += seed_lines(group.label, colour, known)
        lines += _final_lines(group, colour, axis, is_success=is_success)
    name, title = ("success", "Success rate") if is_success else ("reward", "Mean reward")
    return Panel(
        name,
        title,
        "share" if is_success else "number",
        tuple(lines),
        note=_evaluation_note(groups, is_success=is_success),
        x_label=X_LABELS[axis],
    )


def _evaluation_note(groups: Sequence[RunGroup], *, is_success: bool) -> str:
    if any(len(group.runs) == 1 for group in groups):
        kind = "Wilson's 95 % interval" if is_success else "95 % interval"
        return f"evaluations with {kind}; diamond: final, held-out episodes"
    return "evaluations; diamonds: final, held-out episodes"


def _lines_of_one(
    group: RunGroup, colour: int, axis: PlotAxis, *, is_success: bool, alone: bool
) -> Iterator[PlotLine]:
    """Yield a run's evaluations, for each way to act, and what it reached while training."""
    (run,) = group.runs
    ways = {event.deterministic for event in run.evaluations}
    name = "evaluation" if alone else group.name
    if len(ways) == 2 and alone:
        for way, words in ((True, "deterministic"), (False, "sampled")):
            events = [event for event in run.evaluations if event.deterministic == way]
            yield from _interval_line(
                run, events, axis, is_success=is_success, label=f"evaluation, {words}",
                colour=colour + (EVALUATION if way else STOCHASTIC_EVALUATION),
            )  # fmt: skip
    else:
        yield from _interval_line(
            run, run.better_evaluations, axis, is_success=is_success, label=name, colour=colour
        )
    curve = "rollout/success_rate" if is_success else "rollout/ep_rew_mean"
    if alone and curve in run.curves:
        found = thinned(_curve_of(run, curve, axis))
        yield PlotLine("while training", colour + TRAINING, found.x, found.y, style="second")
    if alone:
        yield from _baseline_lines(run, axis, is_success=is_success)


def _baseline_lines(run: ShownRun, axis: PlotAxis, *, is_success: bool) -> Iterator[PlotLine]:
    """Yield what policies that have learned nothing reached, as lines over the whole run."""
    if not run.evaluations:
        return
    last = max(event.policy_timesteps for event in run.evaluations)
    x = run.clock.at([0, last], axis)
    for number, event in enumerate(run.baselines):
        value = event.success_rate if is_success else event.mean_reward
        if value is not None:
            y = np.full(2, value, dtype=np.float64)
            yield PlotLine(event.name, BASELINES + number, x, y, style="baseline")


def _interval_line(
    run: ShownRun,
    events: Sequence[Evaluated],
    axis: PlotAxis,
    *,
    is_success: bool,
    label: str,
    colour: int,
) -> Iterator[PlotLine]:
    values = [(event, _value(event, is_success=is_success)) for event in events]
    known = [(event, value) for event, value in values if value is not None]
    if not known:
        return
    x = run.clock.at([event.policy_timesteps for event, _ in known], axis)
    y = np.array([value for _, value in known], dtype=np.float64)
    of = success_interval if is_success else reward_interval
    ends = [of(event) or (np.nan, np.nan) for event, _ in known]
    low, high = np.array(ends, dtype=np.float64).T
    yield PlotLine(label, colour, x, y, interval=(low, high))


def _value(event: Evaluated, *, is_success: bool) -> float | None:
    return event.success_rate if is_success else event.mean_reward


def _evaluation_curve(run: ShownRun, axis: PlotAxis, *, is_success: bool) -> SeedCurve:
    points = [
        (e.policy_timesteps, _value(e, is_success=is_success)) for e in run.better_evaluations
    ]
    known = [(timesteps, value) for timesteps, value in points if value is not None]
    x = run.clock.at([timesteps for timesteps, _ in known], axis)
    return SeedCurve(x, np.array([value for _, value in known], dtype=np.float64))


def _final_lines(
    group: RunGroup, colour: int, axis: PlotAxis, *, is_success: bool
) -> Iterator[PlotLine]:
    for run in group.runs:
        event = run.final
        value = None if event is None else _value(event, is_success=is_success)
        if event is None or value is None:
            continue
        ends = (success_interval if is_success else reward_interval)(event)
        interval = None if ends is None else (np.array(ends[:1]), np.array(ends[1:]))
        x = run.clock.at([event.timesteps], axis)
        yield PlotLine("", colour, x, np.array([value]), style="final", interval=interval)


# ---------------------------------------------------------------------- training curves


def _curve_of(run: ShownRun, name: str, axis: PlotAxis) -> SeedCurve:
    curve = run.curves[name]
    return SeedCurve(run.clock.at(curve.timesteps, axis), curve.values)


def _curves_of(group: RunGroup, name: str, axis: PlotAxis) -> list[SeedCurve]:
    return [thinned(_curve_of(run, name, axis)) for run in group.runs if name in run.curves]


def _group_lines(
    groups: Sequence[RunGroup], curves_of: Callable[[RunGroup], list[SeedCurve]]
) -> tuple[PlotLine, ...]:
    lines: list[PlotLine] = []
    for colour, group in enumerate(groups):
        curves = [curve for curve in curves_of(group) if len(curve.x)]
        if curves:
            lines += seed_lines(group.label if len(groups) > 1 else "", colour, curves)
    return tuple(lines)


def _curve_panel(
    groups: Sequence[RunGroup], axis: PlotAxis, name: str, title: str, unit: Unit
) -> Panel:
    lines = _group_lines(groups, lambda group: _curves_of(group, name, axis))
    is_term = name.startswith(REWARD_TERM)
    note = _OF_AN_EPISODE if is_term else "mean of the last episodes, while training"
    panel_name = re.sub(r"\W+", "-", name)
    return Panel(panel_name, title, unit, lines, note, x_label=X_LABELS[axis])


def terms_by_size(runs: Sequence[ShownRun]) -> list[str]:
    """Return the reward terms of the runs, that with the largest mean absolute sum first."""
    sizes: dict[str, float] = {}
    for run in runs:
        for name, curve in run.curves.items():
            if name.startswith(REWARD_TERM):
                size = float(np.abs(curve.values).mean())
                sizes[name] = max(sizes.get(name, 0.0), size)
    return [name.removeprefix(REWARD_TERM) for name in sorted(sizes, key=lambda n: (-sizes[n], n))]


def _reward_panels(groups: Sequence[RunGroup], axis: PlotAxis) -> list[Panel]:
    """Return one panel with all terms of one group; of several groups, one for each large term."""
    terms = terms_by_size([run for group in groups for run in group.runs])
    if len(groups) > 1:
        return [
            _curve_panel(groups, axis, f"{REWARD_TERM}{term}", f"Reward: {term}", "number")
            for term in terms[:_MOST_PANELS]
        ]
    lines: list[PlotLine] = []
    for colour, term in enumerate(terms[:MOST_TERMS]):
        lines += seed_lines(term, colour, _curves_of(groups[0], f"{REWARD_TERM}{term}", axis))
    hidden = len(terms) - MOST_TERMS
    note = _OF_AN_EPISODE
    note += f"; {hidden} smaller terms are not shown" if hidden > 0 else ""
    return [
        Panel("reward-terms", "Reward terms", "number", tuple(lines), note, x_label=X_LABELS[axis])
    ]


# ---------------------------------------------------------------------- speed, memory, disk


def speed_curve(run: ShownRun, axis: PlotAxis) -> SeedCurve:
    """Return timesteps per second of each stretch between two points of the training curves.

    Evaluations and checkpoints within it are left out of its time.
    """
    timesteps = []
    speeds = []
    spared_s = 0.0
    start = None
    for event in run.events:
        if isinstance(event, Evaluated | CheckpointSaved):
            spared_s += event.seconds
        if event.event in ("begun", "resumed", "forked"):
            start = None
        if isinstance(event, CurvesRecorded):
            if start is not None:
                seconds = (event.time - start.time).total_seconds() - spared_s
                if seconds > 0 and event.timesteps > start.timesteps:
                    timesteps.append(event.timesteps)
                    speeds.append((event.timesteps - start.timesteps) / seconds)
            start = event
            spared_s = 0.0
    return SeedCurve(run.clock.at(timesteps, axis), np.array(speeds, dtype=np.float64))


def _speed_panel(groups: Sequence[RunGroup], axis: PlotAxis) -> Panel:
    lines = _group_lines(
        groups, lambda group: [thinned(speed_curve(run, axis)) for run in group.runs]
    )
    note = "timesteps per second without evaluations and checkpoints"
    return Panel("speed", "Speed", "per_second", lines, note, True, X_LABELS[axis])


def _memory_panel(groups: Sequence[RunGroup], axis: PlotAxis) -> Panel:
    lines = list(_group_lines(groups, lambda group: _in_bytes(group, "resources/ram_gib", axis)))
    for colour, group in enumerate(groups):
        run = group.runs[0]
        predicted = None if run.forecast is None else run.forecast.ram.predicted_peak_bytes
        if predicted is not None and lines:
            x = run.clock.at([0, max(each.timesteps for each in group.runs)], axis)
            lines.append(_forecast(groups, colour, x, np.array([predicted] * 2, dtype=np.float64)))
    return Panel(
        "memory", "Memory", "bytes", tuple(lines), "dashed: the predicted peak", True,
        X_LABELS[axis],
    )  # fmt: skip


def _in_bytes(group: RunGroup, name: str, axis: PlotAxis) -> list[SeedCurve]:
    return [SeedCurve(curve.x, curve.y * GIB) for curve in _curves_of(group, name, axis)]


def _disk_panel(groups: Sequence[RunGroup], axis: PlotAxis) -> Panel:
    lines = list(_group_lines(groups, lambda group: [_disk_curve(run, axis) for run in group.runs]))
    for colour, group in enumerate(groups):
        run = group.runs[0]
        rows = () if run.forecast is None else run.forecast.disk.plan.rows
        if axis != "timesteps":  # the clock knows no timestep that was not reached
            rows = tuple(row for row in rows if row.at <= run.timesteps)
        if rows and lines:
            x = run.clock.at([row.at for row in rows], axis)
            y = np.array([row.bytes for row in rows], dtype=np.float64)
            lines.append(_forecast(groups, colour, x, y))
    return Panel(
        "disk", "Disk", "bytes", tuple(lines),
        "run directory at each checkpoint, without a Lake; dashed: predicted", True, X_LABELS[axis],
    )  # fmt: skip


def _disk_curve(run: ShownRun, axis: PlotAxis) -> SeedCurve:
    saved = [e for e in run.events if isinstance(e, CheckpointSaved) and e.run_bytes is not None]
    x = run.clock.at([event.timesteps for event in saved], axis)
    return SeedCurve(x, np.array([event.run_bytes for event in saved], dtype=np.float64))


def _forecast(groups: Sequence[RunGroup], colour: int, x: Floats, y: Floats) -> PlotLine:
    label = "forecast" if len(groups) == 1 else ""
    return PlotLine(label, colour, x, y, style="forecast")
