"""The panels of runs: evaluation, reward terms, speed, memory and disk against the forecast."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from game_rl.events import CheckpointSaved, CurvesRecorded, Evaluated, GenerationEnded
from game_rl.events.run_view import PlotAxis, reward_interval, success_interval
from game_rl.experiments.records import GenerationRecord, TrainedMember
from game_rl.look import BASELINES, BEST, EVALUATION, MEMBERS, STOCHASTIC_EVALUATION, TRAINING
from game_rl.statistics import Floats
from game_rl.system.units import GIB
from game_rl.viewer.panels import (
    MEAN_INTERVAL_WORDS,
    LineStyle,
    Panel,
    PlotLine,
    SeedCurve,
    Unit,
    has_mean_interval,
    seed_lines,
    thinned,
)
from game_rl.viewer.shown_runs import RunGroup, ShownExperiment, ShownRun

X_LABELS = {"timesteps": "timesteps", "frames": "emulator frames", "hours": "hours of training"}
_FROM_POOL = "pool/success_rate"
_FROM_START = "pool/success_rate_from_start"
REWARD_TERM = "game/reward/"
MOST_TERMS = 8
"""Reward terms in one panel, as many as the palette has colours."""
_MOST_PANELS = 4
_S_IN_HOUR = 3600.0
_Member = tuple[GenerationRecord, TrainedMember]
_OF_AN_EPISODE = "sum over an episode, while training"


def run_panels(groups: Sequence[RunGroup], axis: PlotAxis) -> list[Panel]:
    """Return the panels that these runs have something to show in."""
    panels = [
        _evaluation_panel(groups, axis, _SUCCESS),
        _evaluation_panel(groups, axis, _REWARD),
        *_reward_panels(groups, axis),
        _pool_panel(groups, axis),
        _curve_panel(groups, axis, "length", "rollout/ep_len_mean", "Episode length"),
        _speed_panel(groups, axis),
        _memory_panel(groups, axis),
        _disk_panel(groups, axis),
    ]
    return [panel for panel in panels if panel.lines]


# ---------------------------------------------------------------------- evaluation


@dataclass(frozen=True)
class _Score:
    """What evaluations measure.

    Attributes:
        key: its name in the events.
        curve: the same while training.
        interval_words: what `interval` returns the ends of.
    """

    name: str
    title: str
    unit: Unit
    key: Literal["success_rate", "mean_reward"]
    curve: str
    interval: Callable[[Evaluated], tuple[float, float] | None]
    interval_words: str

    def values(self, events: Iterable[Evaluated]) -> list[tuple[Evaluated, float]]:
        """Return the evaluations that have a value, each with it."""
        values = ((event, getattr(event, self.key)) for event in events)
        return [(event, value) for event, value in values if value is not None]

    def curve_of(self, run: ShownRun, events: Iterable[Evaluated], axis: PlotAxis) -> SeedCurve:
        known = self.values(events)
        x = run.clock.at([event.policy_timesteps for event, _ in known], axis)
        return SeedCurve(x, np.array([value for _, value in known], dtype=np.float64))


_SUCCESS = _Score(
    name="success",
    title="Success rate",
    unit="share",
    key="success_rate",
    curve="rollout/success_rate",
    interval=success_interval,
    interval_words="Wilson's 95 % interval",
)
_REWARD = _Score(
    name="reward",
    title="Mean reward",
    unit="number",
    key="mean_reward",
    curve="rollout/ep_rew_mean",
    interval=reward_interval,
    interval_words="95 % interval",
)


def _evaluation_panel(groups: Sequence[RunGroup], axis: PlotAxis, score: _Score) -> Panel:
    lines: list[PlotLine] = []
    for colour, group in enumerate(groups):
        if len(group.runs) == 1:
            lines += _lines_of_one(group, colour, axis, score, alone=len(groups) == 1)
        else:
            found = (score.curve_of(run, run.better_evaluations, axis) for run in group.runs)
            lines += seed_lines(group.label, colour, [curve for curve in found if len(curve.x)])
        for run in group.runs:
            for event, value in score.values(filter(None, [run.final])):
                ends = score.interval(event)
                interval = None if ends is None else (np.array(ends[:1]), np.array(ends[1:]))
                x = run.clock.at([event.timesteps], axis)
                y = np.array([value])
                lines.append(PlotLine("", colour, x, y, style="final", interval=interval))
    note = "evaluations; diamonds: final, held-out episodes"
    if any(len(group.runs) == 1 for group in groups):
        note = f"evaluations with {score.interval_words}; diamond: final, held-out episodes"
    if has_mean_interval(lines):
        note += f"; {MEAN_INTERVAL_WORDS}"
    return Panel(score.name, score.title, score.unit, tuple(lines), note, x_label=X_LABELS[axis])


def _lines_of_one(
    group: RunGroup, colour: int, axis: PlotAxis, score: _Score, *, alone: bool
) -> Iterator[PlotLine]:
    """Yield a run's evaluations; of a run alone, those of each way to act, and what else there is.

    That is what it reached while training, and what policies that have learned nothing reached.
    """
    (run,) = group.runs
    every = run.evaluations
    shown = [(group.name, colour, run.better_evaluations)]
    if alone:
        drawn = [event for event in every if not event.deterministic]
        likeliest = [event for event in every if event.deterministic]
        shown = [
            ("evaluation, deterministic", EVALUATION, likeliest),
            ("evaluation, stochastic", STOCHASTIC_EVALUATION, drawn),
        ]
    for label, its_colour, events in shown:
        if known := score.values(events):
            found = score.curve_of(run, events, axis)
            ends = [score.interval(event) or (np.nan, np.nan) for event, _ in known]
            low, high = np.array(ends, dtype=np.float64).T
            yield PlotLine(label, its_colour, found.x, found.y, interval=(low, high))
    if alone and score.curve in run.curves:
        found = thinned(_curve_of(run, score.curve, axis))
        yield PlotLine("while training", TRAINING, found.x, found.y, style="second")
    if alone and every:
        x = run.clock.at([0, max(event.policy_timesteps for event in every)], axis)
        for number, baseline in enumerate(run.baselines):
            if (value := getattr(baseline, score.key)) is not None:
                y = np.full(2, value, dtype=np.float64)
                yield PlotLine(baseline.name, BASELINES + number, x, y, style="baseline")


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
        if not curves:
            continue
        if len(groups) == 1:
            lines += seed_lines("", TRAINING, curves)
        else:
            lines += seed_lines(group.label, colour, curves)
    return tuple(lines)


def _curve_panel(
    groups: Sequence[RunGroup], axis: PlotAxis, name: str, curve: str, title: str
) -> Panel:
    lines = _group_lines(groups, lambda group: _curves_of(group, curve, axis))
    note = "mean of the last episodes, while training"
    if curve.startswith(REWARD_TERM):
        note = _OF_AN_EPISODE
    if has_mean_interval(lines):
        note += f"; {MEAN_INTERVAL_WORDS}"
    return Panel(name, title, "number", lines, note, x_label=X_LABELS[axis])


def _pool_panel(groups: Sequence[RunGroup], axis: PlotAxis) -> Panel:
    """Return the success rate by beginning; of several groups, that from the pool."""
    lines: list[PlotLine] = []
    if len(groups) > 1:
        lines += _group_lines(groups, lambda group: _curves_of(group, _FROM_POOL, axis))
    else:
        for colour, (name, label) in enumerate(
            ((_FROM_POOL, "from the pool"), (_FROM_START, "from the start states"))
        ):
            for group in groups:
                lines += seed_lines(label, colour, _curves_of(group, name, axis))
    title = "Success rate by start" if len(groups) == 1 else "Success rate from the pool"
    note = "of the training's episodes, by env.pool.goal"
    return Panel("success-by-beginning", title, "share", tuple(lines), note, x_label=X_LABELS[axis])


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
            _curve_panel(
                groups,
                axis,
                "reward-" + re.sub(r"\W+", "-", term),
                f"{REWARD_TERM}{term}",
                f"Reward: {term}",
            )
            for term in terms[:_MOST_PANELS]
        ]
    lines: list[PlotLine] = []
    for colour, term in enumerate(terms[:MOST_TERMS]):
        lines += seed_lines(term, colour, _curves_of(groups[0], f"{REWARD_TERM}{term}", axis))
    note = _OF_AN_EPISODE
    if len(terms) > MOST_TERMS:
        note += f"; {len(terms) - MOST_TERMS} smaller terms are not shown"
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
    def in_bytes(group: RunGroup) -> list[SeedCurve]:
        curves = _curves_of(group, "resources/ram_gib", axis)
        return [SeedCurve(curve.x, curve.y * GIB) for curve in curves]

    lines = list(_group_lines(groups, in_bytes))
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


def _disk_panel(groups: Sequence[RunGroup], axis: PlotAxis) -> Panel:
    def curve_of(run: ShownRun) -> SeedCurve:
        events = [event for event in run.events if isinstance(event, CheckpointSaved)]
        saved = [
            (event.timesteps, event.run_bytes) for event in events if event.run_bytes is not None
        ]
        x = run.clock.at([timesteps for timesteps, _ in saved], axis)
        return SeedCurve(x, np.array([n_bytes for _, n_bytes in saved], dtype=np.float64))

    lines = list(_group_lines(groups, lambda group: [curve_of(run) for run in group.runs]))
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


def _forecast(groups: Sequence[RunGroup], colour: int, x: Floats, y: Floats) -> PlotLine:
    label = "forecast" if len(groups) == 1 else ""
    return PlotLine(label, colour, x, y, style="forecast")


# ---------------------------------------------------------------------- experiments


def fitness_panel(shown: ShownExperiment, axis: PlotAxis) -> Panel | None:
    """Return the fitness of all members by generation; None before the first one is complete."""
    x_of: dict[int, float] = {}
    if axis == "hours":
        hours = 0.0
        for event in shown.events:
            if isinstance(event, GenerationEnded):
                hours += event.seconds / _S_IN_HOUR
                x_of[event.generation] = hours
    else:
        factor = shown.experiment.run.env.frame_skip if axis == "frames" else 1
        x_of = {record.generation: float(record.timesteps * factor) for record in shown.records}
    records = [record for record in shown.records if record.generation in x_of]
    if not records:
        return None

    def line(label: str, colour: int, of: Iterable[_Member], style: LineStyle) -> PlotLine:
        known = [(record, member.fitness) for record, member in of if record.generation in x_of]
        scores = [(x_of[record.generation], each) for record, each in known if each is not None]
        x = np.array([place for place, _ in scores], dtype=np.float64)
        y = np.array([fitness.value for _, fitness in scores], dtype=np.float64)
        ends = [fitness.success_interval for _, fitness in scores]
        if style == "dots" or score is _REWARD or not ends or None in ends:
            return PlotLine(label, colour, x, y, style)
        low, high = np.array(ends, dtype=np.float64).T
        return PlotLine(label, colour, x, y, style, interval=(low, high))

    score = _REWARD
    note = f"played at the end of each {shown.stage}"
    if shown.experiment.config.fitness.metric == "success_rate":
        score = _SUCCESS
        note += "; with Wilson's 95 % interval"
    whose = "the champion" if shown.champion is not None else "the best member"
    every = ((record, member) for record in records for member in record.members)
    return Panel(
        "fitness",
        f"Fitness ({score.title.lower()})",
        score.unit,
        (
            line(f"{whose} and its ancestors", BEST, shown.lineage, "main"),
            line("each member", MEMBERS, every, "dots"),
        ),
        note,
        x_label=X_LABELS[axis] if axis == "hours" else f"{X_LABELS[axis]} of a member",
    )
