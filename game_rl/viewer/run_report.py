"""The report of a run: one file for people who have nothing but a browser."""

from datetime import UTC, datetime

from game_rl.events.run_view import STATE_WORDS, PlotAxis, success_interval
from game_rl.system.units import format_bytes, format_duration
from game_rl.viewer.behaviour_section import behaviour_section
from game_rl.viewer.report_sections import (
    MEASURED,
    all_curves_section,
    config_section,
    evaluations_section,
    events_section,
    footprint_section,
    hints_section,
    milestones_section,
    percent,
    percent_interval,
    plots_section,
    reproduce_section,
    start_states_section,
    versions_section,
)
from game_rl.viewer.report_style import Html, element, page, pair, tile
from game_rl.viewer.run_panels import grouped_runs, run_panels
from game_rl.viewer.shown_run import ShownRun

_S_IN_HOUR = 3600
_KINDS = {"completed": "good", "failed": "bad", "killed": "bad"}


def run_report(run: ShownRun, axis: PlotAxis = "timesteps") -> str:
    """Return a run's report as HTML, with everything in it.

    What the run does not have yet is said in its place.
    """
    sections = [
        behaviour_section(run),
        plots_section(run_panels(grouped_runs([run]), axis), has_curves=bool(run.curves)),
        *hints_section(run),
        evaluations_section(run),
        pair(start_states_section(run), milestones_section(run)),
        pair([config_section(run)], [footprint_section(run), events_section(run)]),
        all_curves_section(run),
        pair([reproduce_section(run)], [versions_section(run)]),
    ]
    written = f"Written by game-rl report at {datetime.now(UTC):%Y-%m-%d %H:%M} UTC."
    return page(
        f"{run.name} – report",
        *_header(run),
        _tiles(run),
        *sections,
        element("footer", written),
    )


def _header(run: ShownRun) -> list[Html]:
    config = run.config
    (words, kind) = state_of(run)
    about = f"{config.algorithm.name.upper()} on {config.game}, seed {config.seed}"
    links = (
        ("behaviour", "What the policy does"),
        ("curves", "Curves"),
        ("evaluations", "Evaluations"),
        ("config", "Config"),
        ("footprint", "Footprint"),
        ("events", "What happened"),
        ("reproduce", "Reproduce"),
    )
    return [
        element("h1", run.name),
        element("p", f"{about} ", element("span", words, class_=f"state {kind}")),
        element("nav", *(element("a", text, href=f"#{name}") for name, text in links)),
    ]


def state_of(run: ShownRun) -> tuple[str, str]:
    """Return the state of the run in words, and whether that is good, bad or neither."""
    return STATE_WORDS[run.state], _KINDS.get(run.state, "")


def _tiles(run: ShownRun) -> Html:
    total = run.config.total_timesteps
    frames = f"{run.clock.at(run.timesteps, 'frames'):,.0f} emulator frames"
    of_total = "" if run.timesteps >= total else f" of {total:,}"
    found = [
        *_score_tiles(run),
        tile("timesteps", f"{run.timesteps:,}", f"{of_total} {frames}".strip()),
        _time_tile(run),
        *_footprint_tiles(run),
    ]
    return element("div", *found, class_="tiles")


def _score_tiles(run: ShownRun) -> list[Html]:
    events = [event for event in run.better_evaluations if event.is_best]
    event = run.final or (events[-1] if events else None)
    if event is None:
        return [tile("evaluation", "none yet")]
    which = "final" if event.is_final else "best so far"
    played = f"{event.episodes} episodes"
    tiles = []
    ends = success_interval(event)
    if event.success_rate is not None and ends is not None:
        note = f"95 %: {percent_interval(ends)}; {played}"
        tiles.append(tile(f"success, {which}", percent(event.success_rate), note))
    note = f"± {event.std_reward:.2f} over {played}"
    return [*tiles, tile(f"mean reward, {which}", f"{event.mean_reward:.2f}", note)]


def _time_tile(run: ShownRun) -> Html:
    seconds = float(run.clock.hours[-1]) * _S_IN_HOUR
    if not seconds:
        return tile("time", "none yet")
    speed = f"{run.timesteps / seconds:,.0f} timesteps/s, evaluations included"
    return tile("time", format_duration(seconds), speed)


def _footprint_tiles(run: ShownRun) -> list[Html]:
    tiles = []
    for key, label in MEASURED.items():
        found = run.footprint.get(key)
        if found is not None and found.predicted is not None and found.measured is not None:
            words = f"{format_bytes(found.predicted)} predicted"
            tiles.append(tile(label, format_bytes(found.measured), words))
    return tiles
