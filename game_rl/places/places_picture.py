"""The picture of the visited places: every map in the colours of a logarithmic scale."""

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from game_rl.config.loader import load_config
from game_rl.errors import UsageError
from game_rl.files.run_dir import RunDir
from game_rl.game_check.sheets import BACKGROUND, INK, save_sheet
from game_rl.places.place_counts import PlaceCounts, parse_place_counts
from game_rl.places.place_layers import PlaceLayer, layers, readable

_SIDE = 1_000  # of all maps together, in pixels
_MOST_LAYERS = 64
_GAP = 12
_MARGIN = 16
_TEXT_HEIGHT = 14
_ZOOMS = (12, 10, 8, 6, 5, 4, 3, 2, 1)
_SHRINKS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 1_024, 2_048)
_SCALE_WIDTH = 240
_SCALE_HEIGHT = 12
_MUTED = (158, 158, 166)
_UNSEEN = (46, 46, 50)
# rarely to often; people tell them apart who see red and green alike, and by brightness alone
_RAMP = np.array(
    [(84, 64, 150), (54, 100, 148), (36, 142, 142), (53, 183, 121), (150, 217, 66), (253, 231, 57)],
    np.float64,
)


class _Panel(NamedTuple):
    """A layer with its place in the picture: of its name and, below that, its cells."""

    layer: PlaceLayer
    left: int
    top: int
    right: int
    bottom: int


def write_places_picture(counts: PlaceCounts, path: Path, *, title: str) -> None:
    """Write a PNG.

    Raises:
        UsageError: the file cannot be written.
    """
    save_sheet(places_picture(counts, title=title), path, "map of visited places")


def places_picture(
    counts: PlaceCounts,
    *,
    title: str,
    side: int = _SIDE,
    counted: str = "timesteps",
    facts: Sequence[str] | None = None,
) -> Image.Image:
    """Return all maps below a title, at most about `side` pixels on a side, and the scale.

    Args:
        counted: what was counted at the places.
        facts: lines below the scale; None for those on the timesteps of a run.
    """
    found = readable(layers(counts))
    by_visits = sorted(found, key=lambda layer: -int(layer.counts.sum()))
    kept = {id(layer) for layer in by_visits[:_MOST_LAYERS]}
    shown = [layer for layer in found if id(layer) in kept]
    panels, zoom = _arranged(shown, side)
    most = max((int(panel.layer.counts.max()) for panel in panels), default=1)
    width = max(_text_width(title), _SCALE_WIDTH, *(panel.right for panel in panels), 0)
    height = max((panel.bottom for panel in panels), default=0)
    top = _MARGIN + _TEXT_HEIGHT + _GAP
    under = top + height + _GAP
    lines = list(_facts(counts) if facts is None else facts)
    lines += _further(counts, counted, n_hidden=len(found) - len(shown))
    width = max(width, *map(_text_width, lines))
    whole = under + _SCALE_HEIGHT + 2 * _TEXT_HEIGHT + len(lines) * _TEXT_HEIGHT + _MARGIN
    picture = Image.new("RGB", (width + 2 * _MARGIN, whole), BACKGROUND)
    draw = ImageDraw.Draw(picture)
    draw.text((_MARGIN, _MARGIN), title, fill=INK)
    for panel in panels:
        at = (_MARGIN + panel.left, top + panel.top)
        draw.text(at, _label(panel.layer), fill=_MUTED)
        counts_here = panel.layer.counts  # 1 has the first colour, `most` the last
        colours = _colours(np.log(np.maximum(counts_here, 1)) / math.log(max(most, 2)))
        colours[counts_here == 0] = _UNSEEN
        drawn = colours.repeat(zoom, axis=0).repeat(zoom, axis=1)
        picture.paste(Image.fromarray(drawn), (at[0], at[1] + _TEXT_HEIGHT))
    _draw_scale(picture, (_MARGIN, under), most, counted)
    for number, line in enumerate(lines, 2):
        at = (_MARGIN, under + _SCALE_HEIGHT + number * _TEXT_HEIGHT)
        draw.text(at, line, fill=_MUTED)
    return picture


def _facts(counts: PlaceCounts) -> Iterator[str]:
    since = f" since timestep {counts.since:,}" if counts.since else ""
    yield f"{counts.n_places:,} places, {counts.timesteps:,} timesteps of all envs{since}"


def _further(counts: PlaceCounts, counted: str, *, n_hidden: int) -> Iterator[str]:
    if n_hidden:
        yield f"{n_hidden:,} more maps, visited less often, are not shown"
    if counts.elsewhere:
        yield f"{counts.elsewhere:,} {counted} at further places, for which there is no room"


def _arranged(shown: Sequence[PlaceLayer], side: int) -> tuple[list[_Panel], int]:
    """Return the layers in rows, as large as fits, and the pixels on each side of a cell."""
    for zoom in _ZOOMS:
        panels = _in_rows(shown, zoom, side)
        if all(max(panel.right, panel.bottom) <= side for panel in panels):
            return panels, zoom
    for factor in _SHRINKS:
        panels = _in_rows([layer.coarser(factor) for layer in shown], 1, side)
        if all(max(panel.right, panel.bottom) <= side for panel in panels):
            break
    return panels, 1


def _in_rows(shown: Sequence[PlaceLayer], zoom: int, side: int) -> list[_Panel]:
    panels: list[_Panel] = []
    left = top = row_height = 0
    for layer in shown:
        height, width = (zoom * n for n in layer.counts.shape)
        with_label = max(width, _text_width(_label(layer)))
        if left and left + with_label > side:
            left = 0
            top = top + row_height + _GAP
            row_height = 0
        height += _TEXT_HEIGHT
        panels.append(_Panel(layer, left, top, left + width, top + height))
        left += with_label + _GAP
        row_height = max(row_height, height)
    return panels


def _label(layer: PlaceLayer) -> str:
    side = layer.cell_side
    return layer.name if side == 1 else f"{layer.name} (a cell is {side} x {side})"


def _colours(share: NDArray[np.float64]) -> NDArray[np.uint8]:
    at = np.linspace(0, 1, len(_RAMP))
    channels = [np.interp(share, at, _RAMP[:, channel]) for channel in range(3)]
    return np.stack(channels, axis=-1).round().astype(np.uint8)


def _draw_scale(picture: Image.Image, at: tuple[int, int], most: int, counted: str) -> None:
    """Draw the ramp with a number below each power of ten, and what it counts."""
    left, top = at
    shares = np.linspace(0, 1, _SCALE_WIDTH)
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
        raise UsageError(
            f"{run_dir.root} has no map of visited places: only a run whose game.yaml names a "
            "`place` has one, such as `place: [map, x, y]`, from the first update after it does"
        ) from None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(
            f"{file} is damaged: {error}; delete it, and the next update of the run writes it anew "
            f"(game-rl train --resume {quote(str(run_dir.root))})"
        ) from None


def write_places_map(run_dir: RunDir, counts: PlaceCounts, path: Path) -> None:
    """Draw the map of a run as a PNG.

    Raises:
        UsageError: the file cannot be written.
    """
    game = load_config(run_dir.config, is_saved=True).game
    write_places_picture(counts, path, title=f"{game}, {run_dir.root}")
