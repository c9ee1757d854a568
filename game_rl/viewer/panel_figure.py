"""Drawing panels: a picture of them all, or each as an SVG for a page that is light or dark."""

import io
import math
import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import EngFormatter, MaxNLocator, PercentFormatter

from game_rl.look import LIGHT, Look
from game_rl.system.units import GIB, MIB
from game_rl.viewer.panels import LineStyle, Panel, PlotLine

_PANEL_INCHES = (5.6, 3.3)
_PAGE_INCHES = (4.8, 2.55)  # of a panel on a page, where it is about as wide in CSS pixels x 72
_LEGEND_ROW_INCHES = 0.24
_LEGEND_WIDTH = 58  # letters below a panel, and in place of a line
_LEGEND_HANDLE = 6
_NOTE_WIDTH = 78  # letters in a line
_MOST_MARKERS = 40
_DPI = 130
_PADDING_INCHES = 0.14  # around each panel, and so around the picture
_TITLE_LETTERS = 9  # of an inch
_TITLE_LINE_INCHES = 0.22
_LEGEND_INCHES = 0.35
_STYLES: dict[LineStyle, dict[str, Any]] = {
    "main": {"linewidth": 2.0},
    "seed": {"linewidth": 0.9, "alpha": 0.45},
    "second": {"linewidth": 1.4, "linestyle": (0, (1, 1.1))},
    # the plan has a few rows, and what is written comes in steps: a row holds for all before it
    "forecast": {"linewidth": 1.4, "linestyle": (0, (5, 3)), "drawstyle": "steps-pre"},
    "baseline": {"linewidth": 1.2, "linestyle": (0, (6, 4))},
    "dots": {"marker": "o", "markersize": 4, "linestyle": "none", "alpha": 0.6},
    "final": {"linewidth": 1.4, "marker": "D", "markersize": 5, "linestyle": "none"},
}


def panels_png(panels: Sequence[Panel], title: str = "") -> bytes:
    """Return one PNG of all panels, in two columns."""
    return _saved(panels, title, "png")


def panels_svg(panels: Sequence[Panel], title: str = "") -> bytes:
    """Return one SVG of all panels, in two columns."""
    return _saved(panels, title, "svg")


def _saved(panels: Sequence[Panel], title: str, kind: str) -> bytes:
    file = io.BytesIO()
    with in_look(LIGHT):
        figure = draw_panels(panels, LIGHT, title)
        metadata = {"Software": None} if kind == "png" else {"Date": None, "Creator": None}
        figure.savefig(file, format=kind, metadata=metadata)
    return file.getvalue()


def titled_figure(title: str, width: float, height: float) -> Figure:
    """Return an empty figure with room around it.

    Args:
        title: above everything, in lines as wide as the figure; empty for none.
        width, height: in inches, without the title.
    """
    text = textwrap.fill(title, round(width * _TITLE_LETTERS))
    if text:
        height += 2 * _PADDING_INCHES + _TITLE_LINE_INCHES * (text.count("\n") + 1)
    figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(w_pad=_PADDING_INCHES, h_pad=_PADDING_INCHES)
    if text:
        figure.suptitle(text, x=_PADDING_INCHES / width, ha="left", fontsize=14, fontweight="bold")
    return figure


def draw_panels(panels: Sequence[Panel], look: Look, title: str = "") -> Figure:
    """Return a figure with an axes for each panel; call it inside `in_look`.

    If all panels show the same runs, there is one legend for all.
    """
    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    width, height = _PANEL_INCHES
    shared = _shared_labels(panels)
    height_of_all = height * rows + (_LEGEND_INCHES if shared else 0)
    figure = titled_figure(title, width * columns, height_of_all)
    grid = figure.add_gridspec(rows, columns)
    every_axes: list[Axes] = []
    for number, panel in enumerate(panels):
        axes = figure.add_subplot(grid[number // columns, number % columns])
        draw_panel(axes, panel, look, has_title=True, has_legend=not shared)
        every_axes.append(axes)
    if shared:
        handles: dict[str, Artist] = {}
        for axes in every_axes:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        figure.legend(
            [handles[label] for label in shared],
            shared,
            loc="outside lower left",
            ncols=min(4, len(shared)),
            fontsize=10,
        )
    return figure


def _shared_labels(panels: Sequence[Panel]) -> list[str]:
    """Return the labels of a legend for all panels; none if panels name other things than runs."""
    by_panel = [list(dict.fromkeys(line.label for line in p.lines if line.label)) for p in panels]
    most = max(by_panel, key=len)
    if len(panels) == 1 or len(most) == 1 or any(set(each) - set(most) for each in by_panel):
        return []
    return most


def panel_svg(panel: Panel) -> str:
    """Return a panel as an `<svg>` element whose colours are those of the page's stylesheet.

    It has no title, and its ids begin with the panel's name, so that a page can have many.
    """
    file = io.StringIO()
    with in_look(_PAGE, font_size=11):
        width, height = _PAGE_INCHES
        labels = {line.label for line in panel.lines if line.label}
        rows = math.ceil(len(labels) / _legend_columns(labels)) if len(labels) > 1 else 0
        figure = Figure(figsize=(width, height + rows * _LEGEND_ROW_INCHES), layout="constrained")
        axes = figure.add_subplot()
        draw_panel(axes, panel, _PAGE, has_title=False, has_legend=True)
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return _for_a_page(file.getvalue(), panel.name)


@contextmanager
def in_look(look: Look, *, font_size: int = 9) -> Iterator[None]:
    """Draw in these colours inside, with labels of so many points."""
    settings: dict[Any, Any] = {  # its keys have a type that only some versions have
        "font.size": font_size,
        "xtick.labelsize": font_size - 1,
        "ytick.labelsize": font_size - 1,
        "axes.labelsize": font_size - 1,
        "legend.fontsize": font_size - 1,
        "font.family": "sans-serif",
        "text.color": look.text,
        "axes.facecolor": look.surface,
        "axes.edgecolor": look.grid,
        "axes.labelcolor": look.muted,
        "axes.formatter.useoffset": False,  # it would stand on the panel's note
        "axes.titlesize": 11,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.spines.left": False,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.axisbelow": True,
        "grid.color": look.grid,
        "grid.linewidth": 0.8,
        "xtick.color": look.grid,
        "xtick.labelcolor": look.muted,
        "ytick.color": look.grid,
        "ytick.labelcolor": look.muted,
        "ytick.major.size": 0,
        "legend.frameon": False,
        "legend.labelcolor": look.text,
        "figure.facecolor": look.surface,
        "savefig.facecolor": look.surface,
        "svg.fonttype": "none",
        "svg.hashsalt": "game_rl",
    }
    with mpl.rc_context(settings):
        yield


def draw_panel(axes: Axes, panel: Panel, look: Look, *, has_title: bool, has_legend: bool) -> None:
    scale = _scale(panel)
    for line in panel.lines:
        _draw_line(axes, line, look, scale)
    if has_title:
        note = textwrap.fill(panel.note, _NOTE_WIDTH)
        axes.set_title(panel.title, pad=8 + 11 * (note.count("\n") + 1 if note else 0))
        axes.annotate(
            note, (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points",
            fontsize=8, color=look.muted, va="bottom",
        )  # fmt: skip
    axes.set_xlabel(panel.x_label, loc="right")
    _format_axes(axes, panel)
    handles, labels = axes.get_legend_handles_labels()
    if has_legend and len(labels) > 1:
        axes.legend(
            handles, labels, loc="upper left", bbox_to_anchor=(-0.02, -0.17),
            ncols=_legend_columns(labels), columnspacing=1.4, handlelength=1.8,
        )  # fmt: skip


def _legend_columns(labels: Collection[str]) -> int:
    """Return how many labels of a legend stand side by side."""
    return max(1, min(3, _LEGEND_WIDTH // (max(map(len, labels)) + _LEGEND_HANDLE)))


def _scale(panel: Panel) -> float:
    """Return what one unit on the y axis stands for."""
    if panel.unit != "bytes":
        return 1.0
    largest = max((float(line.y.max()) for line in panel.lines if len(line.y)), default=0.0)
    return GIB if largest >= GIB else MIB


def _draw_line(axes: Axes, line: PlotLine, look: Look, scale: float) -> None:
    is_muted = line.style == "forecast" and bool(line.label)
    colour = look.muted if is_muted else look.series[line.colour % len(look.series)]
    y = line.y / scale
    style = dict(_STYLES[line.style])
    if line.style == "main" and len(y) <= _MOST_MARKERS and line.interval is not None:
        style |= {"marker": "o", "markersize": 3.5}
    if len(y) == 1 and line.style in ("main", "seed", "second"):
        style |= {"marker": "o", "markersize": 3.5}  # a line of one point shows nothing
    axes.plot(line.x, y, color=colour, label=line.label or None, **style)
    if line.interval is None:
        return
    low, high = (end / scale for end in line.interval)
    if line.style == "final" or len(y) == 1:
        axes.vlines(line.x, low, high, color=colour, linewidth=1.2)
    else:
        axes.fill_between(line.x, low, high, color=colour, alpha=0.16, linewidth=0)


def _format_axes(axes: Axes, panel: Panel) -> None:
    x_format = EngFormatter(sep="")
    if panel.x_label.startswith("hours"):
        axes.xaxis.set_major_locator(MaxNLocator(6))
    else:
        axes.xaxis.set_major_formatter(x_format)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlim(left=0)
    if panel.unit == "share":
        axes.set_ylim(-0.03, 1.03)
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
        return
    if panel.unit == "difference":
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    if panel.unit == "bytes":
        axes.set_ylabel("GiB" if _scale(panel) == GIB else "MiB")
    if panel.unit == "per_second":
        axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    if panel.from_zero:
        axes.set_ylim(bottom=0, top=axes.get_ylim()[1] * 1.05)


# ---------------------------------------------------------------------- SVG for a page


_NAMES = [field.name for field in fields(Look) if field.name != "series"]
_PAGE = Look(
    **{name: f"#fe{number:02x}01" for number, name in enumerate(_NAMES)},
    series=tuple(f"#fe{number:02x}02" for number in range(len(LIGHT.series))),
)
"""A look of colours that occur nowhere else, to be replaced in the SVG."""
_IN_THE_PAGE = {getattr(_PAGE, name): f"var(--{name})" for name in _NAMES} | {
    colour: f"var(--series-{number})" for number, colour in enumerate(_PAGE.series, start=1)
}


def _for_a_page(text: str, name: str) -> str:
    """Return the `<svg>` element of a file, with the page's colours and font and ids of its own."""
    svg = text[text.index("<svg") :].strip()
    for colour, variable in _IN_THE_PAGE.items():
        svg = svg.replace(colour, variable)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"<style.*?</style>|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = svg.replace("xlink:href", "href")
    width, height = re.search(r'viewBox="0 0 (\S+) (\S+)"', svg).groups()  # type: ignore[union-attr]
    svg = re.sub(
        r"<svg[^>]*?>", f'<svg viewBox="0 0 {width} {height}" aria-hidden="true">', svg, count=1
    )
    return re.sub(r" font-family: [^;\"]*;?", "", svg)
