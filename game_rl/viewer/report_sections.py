"""Sections of a run's report."""

import base64
import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote

from game_rl.checkpoints.run_game import open_game
from game_rl.config.output_config import without_secrets
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import changed_keys
from game_rl.errors import GameRLError, UsageError
from game_rl.events import Evaluated, Event, HintGiven, MilestoneReached
from game_rl.events.run_view import success_interval
from game_rl.places.joined_maps import joined_maps
from game_rl.places.place_counts import parse_place_counts
from game_rl.places.place_flags import place_flags
from game_rl.places.places_picture import drawn_blocks, places_picture
from game_rl.places.screen_map import read_screen_map
from game_rl.statistics import wilson_interval
from game_rl.system.units import MIB, format_bytes, format_deviation, format_duration
from game_rl.viewer.event_words import Happening, happening, percents_spaced
from game_rl.viewer.panel_figure import panel_svg
from game_rl.viewer.panels import Panel
from game_rl.viewer.report_clips import ReportClip, still_of
from game_rl.viewer.report_style import Html, element, folded, joined, note, section, table
from game_rl.viewer.run_story import in_percent, percent_interval
from game_rl.viewer.shown_runs import ShownRun

_LARGEST_CLIP_BYTES = 24 * MIB
_TYPES = {".gif": "image/gif", ".mp4": "video/mp4"}  # of clips
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


def clips_section(clips: Sequence[ReportClip], folder: Path, run: str) -> Html:
    """Return the section with clips beside each other.

    Args:
        folder: has the best policy's clip, which is shown if none of `clips` can be seen.
        run: how a command names the run.
    """
    cards = [_played_card(clip) for clip in clips if clip.gif]
    if not cards:
        cards = [_clip_card(folder, run)]
    reasons = [
        note(joined(element("b", clip.title), f": {clip.why_not}"))
        for clip in clips
        if not clip.gif
    ]
    return section("At play", "clips", element("div", *cards, class_="columns"), *reasons)


def _played_card(clip: ReportClip) -> Html:
    return element(
        "div",
        element("h3", clip.title),
        _moving(clip.gif, ".gif", f"{clip.title}: the agent at play"),
        element("p", clip.about, class_="muted"),
        class_="card",
    )


def _moving(clip: bytes, suffix: str, what: str) -> Html:
    """Return a GIF or an MP4, and its last picture for paper.

    The picture also stands for an MP4 before it plays, and for a GIF where readers want no motion.
    """
    still: str | None = None
    missing = Html("")
    try:
        still = _data("image/png", still_of(clip, suffix))
    except OSError:
        pass  # the browser shows what it can
    except UsageError as error:
        missing = note(f"On paper it may be empty: {error}")
    data = _data(_TYPES[suffix], clip)
    if suffix == ".gif":
        moving = element("img", src=data, alt=what, class_="moving")
    else:
        moving = element(
            "video",
            src=data,
            poster=still or False,
            controls=True,
            muted=True,
            loop=True,
            aria_label=what,
            class_="moving",
        )
    if still is None:
        return joined(moving, missing)
    return joined(moving, element("img", src=still, alt=what, class_="still"))


def _data(mime: str, content: bytes) -> str:
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"


def shown_clip(clip: Path, what: str) -> Html:
    """Return a clip that is a file, unless it is too large for a page."""
    if (size := clip.stat().st_size) > _LARGEST_CLIP_BYTES:
        return note(f"{clip} has {format_bytes(size)}, which is too large for this page.")
    return _moving(clip.read_bytes(), clip.suffix, what)


def _clip_card(folder: Path, run: str) -> Html:
    """Return a card with the best policy's clip or, without one, the newest of a folder."""
    found = [path for path in folder.glob("*.*") if path.suffix in _TYPES]
    clip = min(found, key=lambda path: (path.stem != "best", -path.stat().st_mtime), default=None)
    if clip is None:
        how = element("code", "game-rl record ", run)
        content = note("No clip was recorded. ", how, " makes one for the next report.")
    else:
        content = shown_clip(clip, f"The agent at play, from {clip.name}")
    return element("div", element("h3", "Clip"), content, class_="card")


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
    rows: list[tuple[str, ...]] = []
    for key, name in MEASURED.items():
        of = run.footprint.get(key)
        if of is None or of.predicted is None or of.measured is None or of.error is None:
            continue
        sizes = format_bytes(of.predicted), format_bytes(of.measured)
        rows.append((name, *sizes, format_deviation(of.error)))
    if rows:
        head = ("", "predicted", "measured", "the prediction is")
        parts.append(table(head, rows, numbers=(1, 2)))
    else:
        parts.append(note("The footprint is measured when the training ends."))
    for name, kinds, total in (
        ("Memory", forecast.ram.parts, forecast.ram.predicted_peak_bytes),
        ("Disk", forecast.disk.parts, forecast.disk.predicted_total_bytes),
    ):
        rows = [(part.name, format_bytes(part.bytes)) for part in kinds]
        if rows and total is not None:
            rows.append(("together", format_bytes(total)))
        if rows:
            by_part = table(("part", "size"), rows, numbers=(1,))
            parts.append(folded(f"{name} by parts, predicted", by_part))
    return section(title, "footprint", *parts)


_SHOWN_EVALUATIONS = 12
_SHOWN_EVENTS = 40
_SHOWN_ELSEWHERE = (Evaluated, HintGiven, MilestoneReached)  # in sections of their own


def plots_section(panels: list[Panel], *, has_curves: bool = True) -> Html:
    """Return the section with a figure for each panel.

    Args:
        has_curves: whether training curves were recorded; if not, the section says so.
    """
    if not panels:
        text = "Nothing is recorded yet: the first point comes with the first update."
        return section("Curves", "curves", note(text))
    figures = (
        element(
            "figure",
            element("figcaption", panel.title, element("span", panel.note)),
            Html(panel_svg(panel)),
        )
        for panel in panels
    )
    parts = [element("div", *figures, class_="figures")]
    if not has_curves:
        text = (
            "The events have no training curves: it has not had an update yet, or it was trained "
        )
        parts.append(note(f"{text}by an older version, whose curves TensorBoard shows."))
    return section("Curves", "curves", *parts)


# ---------------------------------------------------------------------- evaluations


def evaluations_section(run: ShownRun) -> Html:
    events = [*run.evaluations, *filter(None, [run.final])]
    if not events:
        every = run.config.evaluation.every_timesteps
        text = f"No evaluation yet: the first one is due at timestep {every:,}."
        return section("Evaluations", "evaluations", note(text))
    has_ways = len({event.deterministic for event in events}) > 1
    whole = _evaluation_table(events, has_ways=has_ways)
    parts = [whole]
    if len(events) > _SHOWN_EVALUATIONS + 2:
        # the newest, and the best one
        kept = [*[event for event in events if event.is_best][-1:], *events[-_SHOWN_EVALUATIONS:]]
        shown = [event for event in events if event in kept]
        extract = _evaluation_table(shown, has_ways=has_ways)
        parts = [extract, folded(f"All {len(events)} evaluations", whole, has_extract=True)]
    why = (
        "The interval is Wilson's 95 % interval for the success rate of this policy; it says "
        "nothing about other seeds. The final evaluation plays the best policy on held-out "
        "episodes."
    )
    return section("Evaluations", "evaluations", *parts, element("p", why, class_="muted"))


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
                "" if event.success_rate is None else in_percent(event.success_rate),
                "" if ends is None else percent_interval(ends),
                f"{event.mean_reward:.2f} ± {event.std_reward:.2f}",
                f"{event.mean_length:.0f}",
                f"{event.episodes}",
                format_duration(event.seconds),
                ", ".join(filter(None, marks)),
            )
        )
    # a column that is empty in all rows has no heading: a game may define no success
    columns = zip(head, zip(*rows, strict=True), strict=True)
    names = tuple(name if any(cells) else "" for name, cells in columns)
    return table(names, rows, numbers=range(7))


def start_states_section(run: ShownRun) -> list[Html]:
    """Return the results of the newest evaluation apart by start state, if there are several."""
    event = next((each for each in reversed(run.shown_evaluations) if each.by_start_state), None)
    if event is None or event.by_start_state is None:
        return []
    rows = []
    for name, result in event.by_start_state.items():
        share = ""
        interval = ""
        if result.successes is not None and result.episodes:
            share = in_percent(result.successes / result.episodes)
            interval = percent_interval(wilson_interval(result.successes, result.episodes))
        rows.append((name, share, interval, f"{result.mean_reward:.2f}", f"{result.episodes}"))
    which = "the final evaluation" if event.is_final else f"timestep {event.timesteps:,}"
    head = ("start state", "success", "95 %", "mean reward", "episodes")
    about = element("p", f"Of {which}.", class_="muted")
    found_table = table(head, rows, numbers=(1, 2, 3, 4))
    return [section("By start state", "start-states", about, found_table)]


def pool_section(run: ShownRun) -> list[Html]:
    """Return what came of the episodes that began in the pool, by the reward of its states."""
    if run.pool is None or not run.pool.levels:
        return []
    rows = []
    for level in run.pool.levels:
        rate = level.success_rate
        mean = level.mean_reward
        rows.append(
            (
                level.rewards,
                f"{level.states:,}",
                f"{level.episodes:,}",
                "" if rate is None else in_percent(rate),
                "" if mean is None else f"{mean:.2f}",
            )
        )
    words = (
        "Training episodes from the states that the pool has now, by the reward of the way to a "
        "state."
    )
    head = ("reward at the state", "states", "episodes", "goal met", "mean reward")
    about = element("p", words, class_="muted")
    return [section("Pool by reward", "pool", about, table(head, rows, numbers=range(5)))]


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


def places_section(run: ShownRun) -> list[Html]:
    """Return the map of visited places, on the screens that `game-rl places` has joined, if any."""
    try:
        counts = parse_place_counts(run.run_dir.places.read_bytes())
    except (OSError, ValueError):
        return []
    screens = read_screen_map(run.run_dir.place_screens, most_blocks=drawn_blocks())
    names = screens.names
    with suppress(GameRLError):
        names = open_game(run.run_dir, run.config).map_names()
    maps = joined_maps(counts, screens, pixels=screens.pixels, names=names)
    flags = place_flags(run.events, counts.names, counts.offsets)
    picture = places_picture(counts, title=run.name, joined=maps, flags=flags)
    png = io.BytesIO()
    picture.save(png, "PNG")
    data = f"data:image/png;base64,{base64.b64encode(png.getvalue()).decode()}"
    shown = element("img", src=data, alt="Map of the visited places")
    image = element("div", shown, class_="wide picture map", tabindex="0")
    if screens.maps():
        return [section("Where the agents have been", "places", image)]
    how = element("code", f"game-rl places {quote(str(run.run_dir.root))}")
    tip = note(how, " draws the visits on the game's own screens, for the next report.")
    return [section("Where the agents have been", "places", image, tip)]


def hints_section(run: ShownRun) -> list[Html]:
    """Return the hints that the training gave, if it gave any."""
    rows = [
        (f"{event.timesteps:,}", percents_spaced(event.text), element("code", event.key))
        for event in run.events
        if isinstance(event, HintGiven)
    ]
    if not rows:
        return []
    head = ("timestep", "hint", "key to change")
    return [section("Hints", "hints", table(head, rows, numbers=(0,), texts=(1,)))]


# ---------------------------------------------------------------------- config, events


def config_section(about: str, config: RunConfig, text: str) -> Html:
    """Return the section with the keys that differ from their defaults, and the whole config.

    Args:
        about: what the keys are.
        text: the config as YAML, whose secrets are left out.
    """
    rows = [
        (
            element("code", key),
            without_secrets(_value(value)),
            "" if default is None else _value(default),
        )
        for key, (default, value) in changed_keys(config).items()
    ]
    return section(
        "Config",
        "config",
        element("p", about, class_="muted"),
        table(("key", "this run", "default"), rows, texts=(1,)),
        folded("The whole config", _code([without_secrets(text)])),
    )


def _code(lines: Sequence[str]) -> Html:
    return element("pre", element("code", "\n".join(lines)))


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
    parts = [_event_table(shown)]
    if len(shown) < len(told):
        parts.append(folded(f"All {len(told)} events", _event_table(told), has_extract=True))
    return section("What happened", "events", *parts)


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


def reproduce_section(of: str, commands: Sequence[str], *notes: str) -> Html:
    """Return the section with the commands that train again, and others.

    Args:
        of: what the other commands are for.
    """
    again = [
        "# the whole config is in this report; save it as again.yaml",
        "game-rl train again.yaml run_dir=runs/again",
        "",
        f"# of this {of}",
    ]
    shown = (element("p", text, class_="muted") for text in notes)
    return section("How to reproduce it", "reproduce", _code([*again, *commands]), *shown)


def all_curves_section(run: ShownRun) -> Html:
    """Return a table of all training curves, each with a small picture of it."""
    if not run.curves:
        return Html("")
    rows = []
    for name, curve in run.curves.items():
        values = curve.values
        numbers = [
            f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"
            for value in (values[0], values[-1], values.min(), values.max())
        ]
        rows.append((element("code", name), _sparkline(values.tolist()), *numbers))
    head = ("curve", "", "first", "last", "least", "most")
    return section(
        "All training curves",
        "all-curves",
        folded(f"{len(rows)} curves, as in TensorBoard", table(head, rows, numbers=(2, 3, 4, 5))),
    )


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
