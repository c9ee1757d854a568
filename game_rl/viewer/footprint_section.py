"""What the preflight predicted of a run, and what was measured at its end."""

from collections.abc import Mapping
from typing import Any

from game_rl.system.units import format_bytes, format_deviation
from game_rl.viewer.html_text import Html, element, joined, table
from game_rl.viewer.report_style import folded, note, section
from game_rl.viewer.shown_run import ShownRun, number_at, objects_at

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
_PARTS = (("Memory", "ram", "predicted_peak_bytes"), ("Disk", "disk", "predicted_total_bytes"))


def footprint_section(run: ShownRun) -> Html:
    """Return the section; both files may be missing, or be of a version that wrote other keys."""
    title = "Forecast and footprint"
    if not run.preflight:
        text = "There is no preflight.json in the run directory, so nothing can be compared."
        return section(title, "footprint", note(text))
    verdict = str(run.preflight.get("verdict", "not recorded"))
    words = element("b", _VERDICTS.get(verdict, verdict))
    parts: list[str] = [element("p", "The preflight's verdict: ", words, ".")]
    if findings := objects_at(run.preflight, "findings"):
        parts.append(element("ul", *map(_finding, findings)))
    if rows := _measured_rows(run.footprint):
        parts.append(
            table(("", "predicted", "measured", "the prediction is"), rows, numbers=(1, 2))
        )
    else:
        parts.append(note("What it takes is measured when the training ends."))
    return section(title, "footprint", *parts, *_predicted_parts(run.preflight))


def _finding(finding: Mapping[str, Any]) -> Html:
    key = element("code", str(finding.get("key", "")))
    return element("li", joined(key, f": {finding.get('message', '')}"))


def _measured_rows(footprint: Mapping[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for key, name in MEASURED.items():
        found = [number_at(footprint, key, of) for of in ("predicted", "measured", "error")]
        if None not in found:
            predicted, measured, error = (each or 0.0 for each in found)
            sizes = format_bytes(round(predicted)), format_bytes(round(measured))
            rows.append((name, *sizes, format_deviation(error)))
    return rows


def _predicted_parts(preflight: Mapping[str, Any]) -> list[Html]:
    folds = []
    for title, key, total in _PARTS:
        parts = objects_at(preflight, key, "parts")
        sizes = [(str(part.get("name")), number_at(part, "bytes")) for part in parts]
        rows = [(name, format_bytes(round(size))) for name, size in sizes if size is not None]
        if rows:
            together = number_at(preflight, key, total)
            rows += [] if together is None else [("together", format_bytes(round(together)))]
            folds.append(
                folded(f"{title} by parts, predicted", table(("part", "size"), rows, numbers=(1,)))
            )
    return folds
