"""What the preflight predicted of a run, and what was measured at its end."""

from collections.abc import Mapping

from game_rl.files.saved_forecast import MeasuredResource, SavedForecast
from game_rl.system.units import format_bytes, format_deviation
from game_rl.viewer.html_text import Html, element, joined, table
from game_rl.viewer.report_style import folded, note, section
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
