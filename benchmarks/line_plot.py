"""Curves of several arms as a PNG: each seed thin, the mean of the seeds thick."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

_WIDTH, _HEIGHT = 900, 520
_LEFT, _TOP, _RIGHT, _BOTTOM = 80, 30, 200, 60
_COLOURS = ("#777777", "#1f77b4", "#d95f02", "#1b9e77", "#7b3294", "#b8860b", "#c51b7d")
_PALER = 0.65
_TICKS = 5

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Line:
    """An arm: one curve a seed, x ascending."""

    name: str
    curves: tuple[Points, ...]

    @property
    def mean(self) -> Points:
        """Where all seeds have a point at the same place in their curve."""
        columns = zip(*self.curves, strict=False)
        n = len(self.curves)
        return tuple((sum(x for x, _ in c) / n, sum(y for _, y in c) / n) for c in columns)


def draw_lines(
    lines: Sequence[Line], path: Path, *, x: str, y: str, y_range: tuple[float, float]
) -> None:
    """Write the plot; nothing where there is nothing to draw."""
    points = [point for line in lines for curve in line.curves for point in curve]
    if not points:
        return
    image = Image.new("RGB", (_WIDTH, _HEIGHT), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(14)
    scale = _Scale(min(p[0] for p in points), max(p[0] for p in points), *y_range)
    _draw_axes(draw, font, scale, x=x, y=y)
    for number, line in enumerate(lines):
        colour = _COLOURS[number % len(_COLOURS)]
        for curve in line.curves:
            draw.line([scale.place(point) for point in curve], fill=_paler(colour), width=1)
        draw.line([scale.place(point) for point in line.mean], fill=colour, width=3)
        height = _TOP + 22 * number
        draw.line([(_WIDTH - 185, height + 8), (_WIDTH - 160, height + 8)], fill=colour, width=3)
        draw.text((_WIDTH - 152, height), line.name, fill="black", font=font)
    image.save(path)


@dataclass(frozen=True)
class _Scale:
    x_least: float
    x_most: float
    y_least: float
    y_most: float

    def place(self, point: tuple[float, float]) -> tuple[float, float]:
        """Pixels from the upper left corner."""
        across = (point[0] - self.x_least) / max(self.x_most - self.x_least, 1e-9)
        up = (point[1] - self.y_least) / max(self.y_most - self.y_least, 1e-9)
        width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        return _LEFT + across * width, _TOP + (1 - up) * height


def _draw_axes(
    draw: ImageDraw.ImageDraw,
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont,
    scale: _Scale,
    *,
    x: str,
    y: str,
) -> None:
    for tick in range(_TICKS + 1):
        share = tick / _TICKS
        at_x = scale.x_least + share * (scale.x_most - scale.x_least)
        at_y = scale.y_least + share * (scale.y_most - scale.y_least)
        left, height = scale.place((scale.x_least, at_y))
        draw.line([(left, height), (_WIDTH - _RIGHT, height)], fill="#dddddd")
        draw.text((left - 8, height), f"{at_y:g}", fill="black", font=font, anchor="rm")
        across, bottom = scale.place((at_x, scale.y_least))
        draw.text((across, bottom + 8), f"{at_x:,.0f}", fill="black", font=font, anchor="mt")
    draw.text((_LEFT, 6), y, fill="black", font=font)
    draw.text((_WIDTH - _RIGHT, _HEIGHT - 20), x, fill="black", font=font, anchor="rt")


def _paler(colour: str) -> tuple[int, int, int]:
    parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    red, green, blue = (round(part + (255 - part) * _PALER) for part in parts)
    return red, green, blue
