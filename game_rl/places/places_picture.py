"""The picture of the visited places: every map in the colours of a logarithmic scale."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from shlex import quote
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from game_rl.errors import UsageError
from game_rl.files.pretrained import is_packed_agent, run_name
from game_rl.files.run_dir import RunDir
from game_rl.game_check.sheets import BACKGROUND, INK
from game_rl.look import SHOWN_AGENT, VISITS, rgb
from game_rl.places.joined_maps import Colours, JoinedMap
from game_rl.places.place_counts import MapId, MapPoint, PlaceCounts, parse_place_counts
from game_rl.places.place_flags import PlaceFlag, draw_flags
from game_rl.places.place_layers import FADING, PlaceLayer, layers, readable
from game_rl.places.screen_map import BLOCK_SIDE

SIDE = 1_000
"""Of all maps together, in pixels."""
MOST_LAYERS = 64
"""Maps in a picture, at most."""
_GAP = 12
_MARGIN = 16
_TEXT_HEIGHT = 14
_ZOOMS = (12, 10, 8, 6, 5, 4, 3, 2, 1)
_SHRINKS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 1_024, 2_048)
_SCALE_WIDTH = 240
_SCALE_HEIGHT = 12
_MUTED = (158, 158, 166)
_FAINT = (84, 84, 90)
_UNSEEN = (46, 46, 50)
_WALK = rgb(SHOWN_AGENT)
_RAMP = np.array([rgb(colour) for colour in VISITS], np.float64)
# of a clip: a pixel that seldom changes takes few bytes
_LEVELS = 8
_FADES = 4


class _Panel(NamedTuple):
    """Where a map is in the picture, with its label above it."""

    left: int
    top: int
    right: int
    bottom: int


class _Map(Protocol):
    """A map that is drawn; a unit of it is a cell, or a pixel of a screen."""

    @property
    def label(self) -> str: ...

    @property
    def map_id(self) -> MapId | None: ...

    @property
    def visits(self) -> int: ...

    def size(self, shrink: int) -> tuple[int, int]:
        """Return width and height with `shrink` x `shrink` units in one."""

    def most(self, shrink: int) -> int:
        """Return the most visits of a cell."""

    def drawn(self, zoom: int, shrink: int, colours: Colours) -> Image.Image:
        """Return the picture, with `zoom` x `zoom` pixels for each unit."""

    def pixel(self, x: int, y: int, zoom: int, shrink: int) -> tuple[int, int]:
        """Return which pixel of the picture the middle of a place is."""


class _Plain:
    """A layer by itself."""

    def __init__(self, layer: PlaceLayer) -> None:
        self._layer = layer

    @property
    def label(self) -> str:
        return _label(self._layer)

    @property
    def map_id(self) -> MapId | None:
        return self._layer.map_id

    @property
    def visits(self) -> int:
        return int(self._layer.counts.sum())

    def size(self, shrink: int) -> tuple[int, int]:
        height, width = self._layer.coarser(shrink).counts.shape
        return width, height

    def most(self, shrink: int) -> int:
        return int(self._layer.coarser(shrink).counts.max())

    def drawn(self, zoom: int, shrink: int, colours: Colours) -> Image.Image:
        cells = colours(self._layer.coarser(shrink))
        visits = Image.fromarray(cells.repeat(zoom, axis=0).repeat(zoom, axis=1))
        found = Image.new("RGB", visits.size, _UNSEEN)
        found.paste(visits, mask=visits)
        return found

    def pixel(self, x: int, y: int, zoom: int, shrink: int) -> tuple[int, int]:
        cell = self._layer.cell_side * shrink
        left = (x - self._layer.x0) // cell
        top = (y - self._layer.y0) // cell
        return left * zoom + zoom // 2, top * zoom + zoom // 2


class _OnScreens:
    """A map with visits on its screens."""

    def __init__(self, joined: JoinedMap) -> None:
        self._joined = joined

    @property
    def label(self) -> str:
        layer = self._joined.layer
        label = self._joined.name
        if layer is not None and layer.cell_side > 1:
            label += f" (a cell is {layer.cell_side} x {layer.cell_side})"
        return label

    @property
    def map_id(self) -> MapId | None:
        return self._joined.map_id

    @property
    def visits(self) -> int:
        layer = self._joined.layer
        return 0 if layer is None else int(layer.counts.sum())

    def size(self, shrink: int) -> tuple[int, int]:
        return self._joined.size(shrink)

    def most(self, shrink: int) -> int:  # noqa: ARG002
        layer = self._joined.layer
        return 0 if layer is None else int(layer.counts.max())

    def drawn(self, zoom: int, shrink: int, colours: Colours) -> Image.Image:
        return self._joined.drawn(zoom, shrink, colours)

    def pixel(self, x: int, y: int, zoom: int, shrink: int) -> tuple[int, int]:
        return self._joined.pixel(x, y, zoom, shrink)


def places_picture(
    counts: PlaceCounts,
    *,
    title: str,
    side: int = SIDE,
    counted: str = "timesteps",
    facts: Sequence[str] | None = None,
    joined: Sequence[JoinedMap] = (),
    flags: Sequence[PlaceFlag] = (),
    walks: Sequence[Sequence[MapPoint]] = (),
    most: int | None = None,
    at: int | None = None,
    in_steps: bool = False,
) -> Image.Image:
    """Return all maps below a title, at most about `side` pixels on a side, and the scale.

    Args:
        counted: what was counted at the places.
        facts: lines below the scale; None for those on the timesteps of a run.
        joined: the maps with their screens; without any, the visits are drawn alone.
        flags: milestones that are drawn on the maps and listed below them.
        walks: ways of agents.
        most: visits of the last colour; None: of the place that was visited most often.
        at: timestep of the run that is shown, whose later milestones are faint in the list and not
            on the maps; None: its end.
        in_steps: few colours that change seldom, for a clip.
    """
    found: list[_Map] = [_OnScreens(each) for each in joined]
    if not found:
        found = [_Plain(layer) for layer in readable(layers(counts))]
    by_visits = sorted(found, key=lambda each: -each.visits)
    kept = {id(each) for each in by_visits[:MOST_LAYERS]}
    shown = [each for each in found if id(each) in kept]
    panels, zoom, shrink = _arranged(shown, side)
    most = most or max((each.most(shrink) for each in shown), default=1)
    width = max(_text_width(title), _SCALE_WIDTH, *(panel.right for panel in panels), 0)
    height = max((panel.bottom for panel in panels), default=0)
    top = _MARGIN + _TEXT_HEIGHT + _GAP
    under = top + height + _GAP
    lines = list(_facts(counts) if facts is None else facts)
    lines += _further(counts, counted, n_hidden=len(found) - len(shown))
    if counts.until:
        lines.append("the fainter a place, the longer ago the last visit")
    width = max(width, *map(_text_width, lines))
    legend = [f"{flag.number}  {flag.text}, timestep {flag.timesteps:,}" for flag in flags]
    column = max(map(_text_width, legend), default=0) + _GAP
    width = max(width, column)
    n_columns = max(1, width // max(column, 1))
    n_rows = -(-len(legend) // n_columns)
    listed = under + _SCALE_HEIGHT + (len(lines) + 2) * _TEXT_HEIGHT + _GAP
    whole = listed + n_rows * _TEXT_HEIGHT + _MARGIN
    picture = Image.new("RGB", (width + 2 * _MARGIN, whole), BACKGROUND)
    draw = ImageDraw.Draw(picture)
    draw.text((_MARGIN, _MARGIN), title, fill=INK)
    colours = partial(visit_colours, most=most, in_steps=in_steps)
    reached = [flag for flag in flags if at is None or flag.timesteps <= at]
    for each, panel in zip(shown, panels, strict=True):
        corner = (_MARGIN + panel.left, top + panel.top)
        draw.text(corner, each.label, fill=_MUTED)
        drawn = each.drawn(zoom, shrink, colours)
        picture.paste(drawn, (corner[0], corner[1] + _TEXT_HEIGHT))
        own = [flag for flag in reached if flag.map_id == each.map_id]
        pixels = [each.pixel(flag.x, flag.y, zoom, shrink) for flag in own]
        poles = [(corner[0] + x, corner[1] + _TEXT_HEIGHT + y) for x, y in pixels]
        for walk in walks:
            on_map = [point for point in walk if point.map_id == each.map_id]
            ways = [each.pixel(point.x, point.y, zoom, shrink) for point in on_map]
            _draw_walk(draw, [(corner[0] + x, corner[1] + _TEXT_HEIGHT + y) for x, y in ways])
        draw_flags(draw, zip(own, poles, strict=True))
    _draw_scale(picture, (_MARGIN, under), most, counted, in_steps=in_steps)
    for number, line in enumerate(lines, 2):
        corner = (_MARGIN, under + _SCALE_HEIGHT + number * _TEXT_HEIGHT)
        draw.text(corner, line, fill=_MUTED)
    for number, (flag, line) in enumerate(zip(flags, legend, strict=True)):
        corner = (_MARGIN + number // n_rows * column, listed + number % n_rows * _TEXT_HEIGHT)
        draw.text(corner, line, fill=INK if flag in reached else _FAINT)
    return picture


def drawn_blocks(side: int = SIDE) -> int:
    """Return from how many blocks of screens such a picture is drawn: 43 MiB for 1,000 pixels.

    They have nine times its pixels, because many maps may be left out.
    """
    return -(-9 * side**2 // BLOCK_SIDE**2)


def _draw_walk(draw: ImageDraw.ImageDraw, ways: Sequence[tuple[int, int]]) -> None:
    """Draw the way of an agent, with a dot where it is."""
    if not ways:
        return
    draw.line(ways, fill=_WALK)
    x, y = ways[-1]
    draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=_WALK, outline=BACKGROUND)


def visit_colours(layer: PlaceLayer, most: int, *, in_steps: bool = False) -> NDArray[np.uint8]:
    """Return the colour of each cell, uint8 [h, w, 4] RGBA, transparent where nobody was.

    A cell of one visit has the first colour, one of `most` visits the last. The longer ago the last
    visit, the fainter; in steps, there are 8 colours and 4 strengths.
    """
    share = np.log(np.maximum(layer.counts, 1)) / math.log(max(most, 2))
    ages = layer.ages()
    if in_steps:
        share = _stepped(share, _LEVELS)
        ages = _stepped(ages, _FADES)
    opacity = 255 * (1 - FADING * ages)
    alpha = np.where(layer.counts > 0, opacity, 0)[..., None].astype(np.uint8)
    return np.concatenate((_colours(share), alpha), axis=-1)


def _stepped(share: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return shares of which there are `n`, from 0 to 1."""
    return np.minimum(np.floor(share * n), n - 1) / (n - 1)


def _facts(counts: PlaceCounts) -> Iterator[str]:
    since = f" since timestep {counts.since:,}" if counts.since else ""
    yield f"{counts.n_places:,} places, {counts.timesteps:,} timesteps of all envs{since}"


def _further(counts: PlaceCounts, counted: str, *, n_hidden: int) -> Iterator[str]:
    if n_hidden:
        yield f"{n_hidden:,} more maps, visited less often, are not shown"
    if counts.elsewhere:
        yield f"{counts.elsewhere:,} {counted} at more places, which do not fit"


def _arranged(shown: Sequence[_Map], side: int) -> tuple[list[_Panel], int, int]:
    """Return the maps in rows, as large as fits, the zoom and the shrink."""
    for zoom, shrink in chain(((zoom, 1) for zoom in _ZOOMS), ((1, each) for each in _SHRINKS)):
        panels = _in_rows(shown, zoom, shrink, side)
        if all(max(panel.right, panel.bottom) <= side for panel in panels):
            break
    return panels, zoom, shrink


def _in_rows(shown: Sequence[_Map], zoom: int, shrink: int, side: int) -> list[_Panel]:
    panels: list[_Panel] = []
    left = top = row_height = 0
    for each in shown:
        width, height = (zoom * n for n in each.size(shrink))
        with_label = max(width, _text_width(each.label))
        if left and left + with_label > side:
            left = 0
            top = top + row_height + _GAP
            row_height = 0
        height += _TEXT_HEIGHT
        panels.append(_Panel(left, top, left + width, top + height))
        left += with_label + _GAP
        row_height = max(row_height, height)
    return panels


def _label(layer: PlaceLayer) -> str:
    side = layer.cell_side
    return layer.name if side == 1 else f"{layer.name} (a cell is {side} x {side})"


def _colours(share: NDArray[np.float64]) -> NDArray[np.uint8]:
    at = np.linspace(0, 1, len(_RAMP))
    channels = (np.interp(share, at, _RAMP[:, channel]).round() for channel in range(3))
    return np.stack([channel.astype(np.uint8) for channel in channels], axis=-1)


def _draw_scale(
    picture: Image.Image, at: tuple[int, int], most: int, counted: str, *, in_steps: bool
) -> None:
    """Draw the ramp with a number below each power of ten, and what it counts."""
    left, top = at
    shares = np.linspace(0, 1, _SCALE_WIDTH)
    if in_steps:
        shares = _stepped(shares, _LEVELS)
    ramp = np.broadcast_to(_colours(shares), (_SCALE_HEIGHT, _SCALE_WIDTH, 3))
    picture.paste(Image.fromarray(np.ascontiguousarray(ramp)), at)
    draw = ImageDraw.Draw(picture)
    draw.text((left + _SCALE_WIDTH + _GAP, top), f"{counted} in a cell", fill=_MUTED)
    free_from = left
    for number in chain(_powers_of_ten(most), (most,)):
        text = f"{number:,}"
        share = math.log(number) / math.log(max(most, 2))
        x = left + round(share * (_SCALE_WIDTH - 1))
        x = min(x, left + _SCALE_WIDTH - _text_width(text))
        if x >= free_from:
            draw.text((x, top + _SCALE_HEIGHT + 2), text, fill=_MUTED)
            free_from = x + _text_width(text) + _GAP


def _powers_of_ten(most: int) -> Iterator[int]:
    """Yield them from 1 on, as long as `most` has room beside them."""
    number = 1
    while 3 * number <= most or number == 1:
        yield number
        number *= 10


def _text_width(text: str) -> int:
    return math.ceil(ImageDraw.Draw(Image.new("1", (1, 1))).textlength(text))


def read_place_counts(run_dir: RunDir) -> PlaceCounts:
    """Return how often the player was at each place.

    Raises:
        UsageError: the run has counted no places, or the file is damaged.
    """
    file = run_dir.places
    try:
        return parse_place_counts(file.read_bytes())
    except FileNotFoundError:
        if is_packed_agent(run_dir.root):
            agent = run_name(run_dir.root)
            raise UsageError(
                f"{agent} is an agent without the map of its training; train it on, and look at "
                f"that: game-rl train --fork {quote(agent)} run_dir=runs/mine"
            ) from None
        raise UsageError(
            f"{run_dir.root} has no map of visited places: only a run whose game.yaml names a "
            "`place` has one, such as `place: [map, x, y]`, from the first update after it does"
        ) from None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(
            f"{file} is damaged: {error}; delete it, and the next update of the run writes it "
            f"again (game-rl train --resume {quote(str(run_dir.root))})"
        ) from None
