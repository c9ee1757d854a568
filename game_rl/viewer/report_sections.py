"""Sections of a run's report."""

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from game_rl.config.loader import dump_config
from game_rl.config.output_config import without_secrets
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import changed_keys
from game_rl.events import Evaluated, Event, HintGiven, MilestoneReached
from game_rl.events.run_view import success_interval
from game_rl.files.saved_forecast import MeasuredResource, SavedForecast
from game_rl.statistics import wilson_interval
from game_rl.system.units import format_bytes, format_deviation, format_duration
from game_rl.viewer.event_words import Happening, happening
from game_rl.viewer.panel_figure import panel_svg
from game_rl.viewer.panels import Panel
from game_rl.viewer.report_style import Html, element, folded, joined, note, section, table
from game_rl.viewer.shown_run import ShownRun

_VERDICTS = {
    "fits": "the run fits the machine",
    "tight": "the run fits the machine, but only just",
    "does_not_fit": "the run does not fit the machine",
}
MEASURED = {
    "ram_peak_bytes": "memory, peak",
    "vram_reserved_bytes": "GPU memory",
    "disk_total_bytes": "disk",
}
"""Keys of `footprint.json` that a report shows, with their names."""


def footprint_section(run: ShownRun) -> Html:
    """Return the section; both files may be missing, or be of a version that wrote other keys."""
    title = "Forecast and footprint"
    forecast = run.forecast
    if forecast is None:
        text = "There is no preflight.json in the run directory, so nothing can be compared."
        return section(title, "footprint", note(text))
    words = element("b", _VERDICTS.get(forecast.verdict, forecast.verdict))
    parts: list[str] = [element("p", "The preflight's verdict: ", words, ".")]
    if forecast.findings:
        found = [joined(element("code", f.key), f": {f.message}") for f in forecast.findings]
        parts.append(element("ul", *(element("li", each) for each in found)))
    if rows := _measured_rows(run.footprint):
        parts.append(
            table(("", "predicted", "measured", "the prediction is"), rows, numbers=(1, 2))
        )
    else:
        parts.append(note("What it takes is measured when the training ends."))
    return section(title, "footprint", *parts, *_predicted_parts(forecast))


def _measured_rows(footprint: Mapping[str, MeasuredResource]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for key, name in MEASURED.items():
        found = footprint.get(key)
        if found is None or found.predicted is None or found.measured is None:
            continue
        if found.error is not None:
            sizes = format_bytes(found.predicted), format_bytes(found.measured)
            rows.append((name, *sizes, format_deviation(found.error)))
    return rows


def _predicted_parts(forecast: SavedForecast) -> list[Html]:
    predicted = (
        ("Memory", forecast.ram.parts, forecast.ram.predicted_peak_bytes),
        ("Disk", forecast.disk.parts, forecast.disk.predicted_total_bytes),
    )
    folds = []
    for title, parts, total in predicted:
        if parts:
            rows = [(part.name, format_bytes(part.bytes)) for part in parts]
            rows += [] if total is None else [("together", format_bytes(total))]
            folds.append(
                folded(f"{title} by parts, predicted", table(("part", "size"), rows, numbers=(1,)))
            )
    return folds


_SHOWN_EVALUATIONS = 12
_SHOWN_EVENTS = 40
_SHOWN_ELSEWHERE = (Evaluated, HintGiven, MilestoneReached)  # in sections of their own


def percent(share: float) -> str:
    """Return a share as a percentage, with a digit behind the point only where it tells."""
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


def percent_interval(ends: tuple[float, float]) -> str:
    return f"{100 * ends[0]:.0f}–{100 * ends[1]:.0f}"


def command(*words: str) -> Html:
    """Return a command line for a person to copy."""
    return element("code", " ".join(words))


def plots_section(panels: list[Panel], *, has_curves: bool = True) -> Html:
    """Return the section with a figure for each panel.

    Args:
        has_curves: whether training curves were recorded; if not, the section says so.
    """
    if not panels:
        text = "Nothing is recorded yet: the first point comes with the first update."
        return section("Curves", "curves", note(text))
    parts = [element("div", *map(_figure, panels), class_="figures")]
    if not has_curves:
        text = "The events have no training curves: the run is not so far yet, or it was trained "
        parts.append(note(f"{text}by an older version, whose curves TensorBoard shows."))
    return section("Curves", "curves", *parts)


def _figure(panel: Panel) -> Html:
    caption = element("figcaption", panel.title, element("span", panel.note))
    return element("figure", caption, Html(panel_svg(panel)))


# ---------------------------------------------------------------------- evaluations


def evaluations_section(run: ShownRun) -> Html:
    events = [*run.evaluations, *([] if run.final is None else [run.final])]
    if not events:
        every = run.config.evaluation.every_timesteps
        text = f"No evaluation yet: the first one is due at timestep {every:,}."
        return section("Evaluations", "evaluations", note(text))
    has_ways = len({event.deterministic for event in events}) > 1
    shown = _shown_evaluations(events)
    parts = [_evaluation_table(shown, has_ways=has_ways)]
    if len(shown) < len(events):
        parts.append(
            folded(
                f"All {len(events)} evaluations",
                _evaluation_table(events, has_ways=has_ways),
                has_extract=True,
            )
        )
    why = (
        "The interval is Wilson's of 95 %: it holds the success rate of this policy, not of "
        "another seed. The final evaluation plays the best policy on episodes that chose nothing."
    )
    return section("Evaluations", "evaluations", *parts, element("p", why, class_="muted"))


def _shown_evaluations(events: list[Evaluated]) -> list[Evaluated]:
    """Return the newest evaluations, and the best and the final one."""
    if len(events) <= _SHOWN_EVALUATIONS + 2:
        return events
    best = [event for event in events if event.is_best][-1:]
    kept = [*best, *events[-_SHOWN_EVALUATIONS:]]
    return [event for event in events if event in kept]


def _evaluation_table(events: list[Evaluated], *, has_ways: bool) -> Html:
    head = ("timestep", "success", "95 %", "mean reward", "length", "episodes", "took", "")
    newest_best = next((event for event in events[::-1] if event.is_best), None)
    rows = []
    for event in events:
        ends = success_interval(event)
        marks = ["final, of the best policy" if event.is_final else ""]
        marks.append("best" if event is newest_best else "")
        marks.append(("deterministic" if event.deterministic else "sampled") * has_ways)
        rows.append(
            (
                f"{event.policy_timesteps:,}",
                "" if event.success_rate is None else percent(event.success_rate),
                "" if ends is None else percent_interval(ends),
                f"{event.mean_reward:.2f} ± {event.std_reward:.2f}",
                f"{event.mean_length:.0f}",
                f"{event.episodes}",
                format_duration(event.seconds),
                ", ".join(filter(None, marks)),
            )
        )
    return table(*_without_empty(head, rows), numbers=tuple(range(7)))


def _without_empty(
    head: tuple[str, ...], rows: Sequence[tuple[str, ...]]
) -> tuple[tuple[str, ...], Sequence[tuple[str, ...]]]:
    """Leave the cells of columns empty that are so in all rows; a game may define no success."""
    used = [
        any(cells) or not name for name, cells in zip(head, zip(*rows, strict=True), strict=True)
    ]
    return tuple(name if use else "" for name, use in zip(head, used, strict=True)), rows


def start_states_section(run: ShownRun) -> list[Html]:
    """Return the results of the newest evaluation apart by start state, if there are several."""
    events = [*run.better_evaluations, *([] if run.final is None else [run.final])]
    event = next((event for event in reversed(events) if event.by_start_state), None)
    if event is None or event.by_start_state is None:
        return []
    rows = []
    for name, result in event.by_start_state.items():
        share = ""
        interval = ""
        if result.successes is not None and result.episodes:
            share = percent(result.successes / result.episodes)
            interval = percent_interval(wilson_interval(result.successes, result.episodes))
        rows.append((name, share, interval, f"{result.mean_reward:.2f}", f"{result.episodes}"))
    which = "the final evaluation" if event.is_final else f"timestep {event.timesteps:,}"
    head = ("start state", "success", "95 %", "mean reward", "episodes")
    about = element("p", f"Of {which}.", class_="muted")
    found_table = table(head, rows, numbers=(1, 2, 3, 4))
    return [section("By start state", "start-states", about, found_table)]


def milestones_section(run: ShownRun) -> list[Html]:
    """Return what was reached for the first time, and when, if the run records it."""
    rows = [
        (event.text, f"{event.timesteps:,}", format_duration(event.hours * 3600))
        for event in run.events
        if isinstance(event, MilestoneReached)
    ]
    if not rows:
        return []
    head = ("first time", "timestep", "after")
    return [section("Milestones", "milestones", table(head, rows, numbers=(1, 2), texts=(0,)))]


def hints_section(run: ShownRun) -> list[Html]:
    """Return the hints that the training gave, if it gave any."""
    rows = [
        (f"{event.timesteps:,}", event.text, element("code", event.key))
        for event in run.events
        if isinstance(event, HintGiven)
    ]
    if not rows:
        return []
    head = ("timestep", "hint", "key to change")
    return [section("Hints", "hints", table(head, rows, numbers=(0,), texts=(1,)))]


# ---------------------------------------------------------------------- config, events


def changed_keys_table(config: RunConfig) -> Html:
    """Return a table of the keys that differ from their defaults."""
    rows = [
        (
            element("code", key),
            without_secrets(_value(value)),
            "" if default is None else _value(default),
        )
        for key, (default, value) in changed_keys(config).items()
    ]
    return table(("key", "this run", "default"), rows, texts=(1,))


def config_section(run: ShownRun) -> Html:
    text = without_secrets(dump_config(run.config))
    return section(
        "Config",
        "config",
        element("p", "Keys that differ from their defaults:", class_="muted"),
        changed_keys_table(run.config),
        folded("The whole config", element("pre", element("code", text))),
    )


def _value(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:_}" if abs(value) >= 10_000 else f"{value}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        given = {key: each for key, each in value.items() if each is not None}
        return f"{{{', '.join(f'{key}: {_value(each)}' for key, each in given.items())}}}"
    return str(value)


def events_section(run: ShownRun) -> Html:
    told = [
        (event, found)
        for event in run.events
        if not isinstance(event, _SHOWN_ELSEWHERE) and (found := happening(event)) is not None
    ]
    if not told:
        return section("What happened", "events", note("There is no events.jsonl yet."))
    important = [pair for pair in told if pair[0].event != "checkpoint_saved"]
    shown = important[-_SHOWN_EVENTS:]
    folded_parts = []
    if len(shown) < len(told):
        folded_parts.append(folded(f"All {len(told)} events", _event_table(told), has_extract=True))
    return section("What happened", "events", _event_table(shown), *folded_parts)


def _event_table(told: Sequence[tuple[Event, Happening]]) -> Html:
    rows = [
        (
            f"{event.time:%Y-%m-%d %H:%M:%S}",
            f"{event.timesteps:,}",
            joined(element("b", found.title), f" {found.text}"),
        )
        for event, found in told
    ]
    return table(("time (UTC)", "timestep", "event"), rows, numbers=(1,), texts=(0, 2))


# ---------------------------------------------------------------------- reproduce


def versions_section(run: ShownRun) -> Html:
    state = run.checkpoint_state
    if state is None:
        return section(
            "Versions", "versions", note("They are in the checkpoints; there is none yet.")
        )
    facts = {
        **state.versions,
        **state.computing,
        "source of game_rl (sha256)": state.source_sha256 or "not recorded",
        "ROM (sha256)": state.rom_sha256,
    }
    rows = [(name, element("code", value)) for name, value in facts.items()]
    return section("Versions", "versions", table(("", ""), rows, texts=(1,)))


def reproduce_section(run: ShownRun) -> Html:
    root = quote(str(run.run_dir.root))
    final = run.final
    again = [
        "# the whole config is in this report; save it as again.yaml",
        "game-rl train again.yaml run_dir=runs/again",
    ]
    episodes = run.config.evaluation.final_episodes if final is None else final.episodes
    here = [
        f"game-rl evaluate {root} --episodes {episodes}",
        f"game-rl record {root} --output clip.gif",
        f"game-rl plot {root} --output curves.png",
    ]
    lines = "\n".join([*again, "", "# of this run", *here])
    same = (
        "With the same config, seed, versions, ROM and kind of processor, training on the CPU "
        "gives the same weights, bit for bit."
    )
    more = list(_needs(run))
    return section(
        "How to reproduce it",
        "reproduce",
        element("pre", element("code", lines)),
        element("p", same, class_="muted"),
        *(element("p", text, class_="muted") for text in more),
    )


def _needs(run: ShownRun) -> Iterator[str]:
    config = run.config
    if config.fork is not None:
        yield f"The run is a fork: it needs the run {config.fork.run} as well."
    if config.custom_parts:
        names = ", ".join(part.reference for part in config.custom_parts)
        yield f"It uses code of your own, which must be in the current folder: {names}."
    if "/" in config.game:
        yield f"The game's file is {config.game}."


def all_curves_section(run: ShownRun) -> Html:
    """Return a table of all training curves, each with a small picture of it."""
    if not run.curves:
        return Html("")
    rows = []
    for name, curve in run.curves.items():
        values = curve.values
        numbers = (values[0], values[-1], values.min(), values.max())
        rows.append((element("code", name), _sparkline(values.tolist()), *map(_number, numbers)))
    head = ("curve", "", "first", "last", "least", "most")
    return section(
        "All training curves",
        "all-curves",
        folded(f"{len(rows)} curves, as in TensorBoard", table(head, rows, numbers=(2, 3, 4, 5))),
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"


_SPARK = (120, 26)


def _sparkline(values: list[float]) -> Html:
    width, height = _SPARK
    step = max(1, len(values) // width)
    means = [
        sum(values[n : n + step]) / len(values[n : n + step]) for n in range(0, len(values), step)
    ]
    low = min(means)
    high = max(means)
    span = (high - low) or 1.0
    last = max(1, len(means) - 1)
    points = " ".join(
        f"{width * n / last:.1f},{height - height * (value - low) / span:.1f}"
        for n, value in enumerate(means)
    )
    return joined(
        Html(f'<svg class="spark" viewBox="0 0 {width} {height}" aria-hidden="true">'),
        Html(f'<polyline points="{points}"/></svg>'),
    )
