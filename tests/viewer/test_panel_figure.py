"""What is drawn of a panel, read back from axes and files."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_hex

from game_rl.look import DARK, LIGHT, Look
from game_rl.system.units import MIB
from game_rl.viewer.panel_figure import draw_panels, in_look, panel_svg, panels_png, panels_svg
from game_rl.viewer.panels import Panel, PlotLine

X = np.array([0.0, 50.0, 100.0])


def a_panel(name: str, *lines: PlotLine, unit: str = "share") -> Panel:
    return Panel(name, name.title(), unit, lines or (a_line("a"),), "a note")  # type: ignore[arg-type]


def a_line(label: str, *, colour: int = 0, style: str = "main") -> PlotLine:
    y = np.array([0.1, 0.5, 0.9])
    return PlotLine(label, colour, X, y, style, (y - 0.1, y + 0.1))  # type: ignore[arg-type]


@pytest.mark.parametrize("look", [LIGHT, DARK], ids=["light", "dark"])
def test_lines_have_their_values_and_the_colours_of_the_look(look: Look) -> None:
    panel = a_panel("success", a_line("a"), a_line("b", colour=3))
    with in_look(look):
        (axes,) = draw_panels([panel], look).axes
    for drawn, line in zip(axes.lines, panel.lines, strict=True):
        assert drawn.get_xdata().tolist() == line.x.tolist()
        assert drawn.get_ydata().tolist() == line.y.tolist()
        assert to_hex(drawn.get_color()) == look.series[line.colour]
    assert to_hex(axes.get_facecolor()) == look.surface
    assert len(axes.collections) == 2  # the bands


def test_bytes_are_drawn_in_a_unit_that_the_axis_names() -> None:
    line = PlotLine("", 0, X, np.array([1.0, 2.0, 4.0]) * MIB)
    with in_look(LIGHT):
        (axes,) = draw_panels([a_panel("disk", line, unit="bytes")], LIGHT).axes
    assert axes.lines[0].get_ydata().tolist() == [1, 2, 4]
    assert axes.get_ylabel() == "MiB"


def test_runs_that_every_panel_shows_are_named_once() -> None:
    several = [a_panel(name, a_line("a"), a_line("b", colour=1)) for name in ("one", "two")]
    with in_look(LIGHT):
        figure = draw_panels(several, LIGHT)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    assert [axes.get_legend() for axes in figure.axes] == [None, None]
    apart = [a_panel("one", a_line("a"), a_line("b")), a_panel("two", a_line("c"), a_line("d"))]
    with in_look(LIGHT):
        figure = draw_panels(apart, LIGHT)
    assert not figure.legends
    assert all(axes.get_legend() is not None for axes in figure.axes)


def test_a_title_stands_above_everything_and_takes_no_room_from_the_panels() -> None:
    panels = [a_panel("one"), a_panel("two")]
    with in_look(LIGHT):
        figures = draw_panels(panels, LIGHT, "ppo and pqn"), draw_panels(panels, LIGHT)
        for figure in figures:
            figure.draw_without_rendering()
    assert [figure.get_suptitle() for figure in figures] == ["ppo and pqn", ""]
    titled, plain = (
        figure.axes[0].get_position().height * figure.get_size_inches()[1] for figure in figures
    )
    assert titled == pytest.approx(plain, abs=0.1)


@pytest.mark.slow
def test_files_are_what_their_names_say_and_the_same_each_time() -> None:
    panels = [a_panel("one"), a_panel("two"), a_panel("three")]
    assert panels_png(panels).startswith(b"\x89PNG")
    assert panels_png(panels) == panels_png(panels)
    assert ElementTree.fromstring(panels_svg(panels)).tag.endswith("svg")  # noqa: S314 - our own
    assert panels_svg(panels) == panels_svg(panels)


@pytest.mark.parametrize("style", ["main", "seed", "second", "forecast", "final", "dots"])
def test_an_svg_for_a_page_has_the_colours_and_the_font_of_the_page(style: str) -> None:
    text = panel_svg(a_panel("success", a_line("a", colour=2, style=style), a_line("b")))
    root = ElementTree.fromstring(text)  # noqa: S314 - our own
    assert not re.findall(r"#[0-9a-f]{6}\b", text)
    assert "font-family" not in text
    assert "<style" not in text
    known = {f"--{name}" for name in ("surface", "text", "muted", "grid", "series-1", "series-3")}
    assert set(re.findall(r"var\((--[\w-]+)\)", text)) <= known
    assert "var(--series-3)" in text or style == "forecast"
    ids = [each.get("id") for each in root.iter() if each.get("id")]
    assert all(name is not None and name.startswith("success-") for name in ids)
    targets = re.findall(r'href="#([^"]+)"', text) + re.findall(r"url\(#([^)]+)\)", text)
    assert targets
    assert set(targets) <= set(ids)
