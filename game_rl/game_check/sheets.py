"""The sheets of `game-rl check-game`: screens, and the parts of an observation beside the screen.

A vector is a row for each variable: its name, a bar for each number and the number itself, or a
square for each bit. Categories are numbers, actions their names. A grid is a picture with a colour
for each class.
"""

import colorsys
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo

from game_rl.emulator.emulator import SCREEN_HEIGHT, SCREEN_WIDTH, TILE_SIDE
from game_rl.errors import UsageError
from game_rl.games.definition import Game
from game_rl.games.parts.part_kind import GamePart

BACKGROUND = (32, 32, 32)
INK = (224, 224, 224)

_COLUMNS = 4
_SCREEN_GAP = 8
_LABEL_HEIGHT = 16
_LETTERS = 26  # of a label, which is as wide as a screen
_TILE_WIDTH = SCREEN_WIDTH + _SCREEN_GAP
_TILE_HEIGHT = _LABEL_HEIGHT + SCREEN_HEIGHT + _SCREEN_GAP


@dataclass(frozen=True, eq=False)
class Moment:
    """What is seen at a moment of play: the whole screen, and all parts that the game defines."""

    label: str
    screen: NDArray[np.uint8]  # [144, 160, 3] RGB
    parts: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def write_contact_sheet(moments: Sequence[Moment], path: Path) -> None:
    """Write the screens, four in a row, as a PNG to `path`.

    Raises:
        UsageError: the file cannot be written.
    """
    save_sheet(contact_sheet(moments), path, "contact sheet")


def contact_sheet(moments: Sequence[Moment]) -> Image.Image:
    """Return the screens, four in a row, with their labels."""
    columns = min(_COLUMNS, max(1, len(moments)))
    rows = -(-len(moments) // columns)
    size = (columns * _TILE_WIDTH + _SCREEN_GAP, rows * _TILE_HEIGHT + _SCREEN_GAP)
    sheet = Image.new("RGB", size, BACKGROUND)
    draw = ImageDraw.Draw(sheet)
    for index, moment in enumerate(moments):
        left, top = _screen_at(index)
        draw.text((left, top - _LABEL_HEIGHT), moment.label[:_LETTERS], fill=INK)
        sheet.paste(Image.fromarray(moment.screen), (left, top))
    return sheet


def contact_sheet_text(moments: Sequence[Moment]) -> PngInfo:
    """Return what the PNG of a contact sheet says about itself, from which the page cuts it.

    Its text `screens` is a JSON list of the screens: `label`, and in pixels of the sheet `left`,
    `top`, `width` and `height`.
    """
    screens = []
    for index, moment in enumerate(moments):
        left, top = _screen_at(index)
        place = {"left": left, "top": top, "width": SCREEN_WIDTH, "height": SCREEN_HEIGHT}
        screens.append({"label": moment.label, **place})
    text = PngInfo()
    text.add_text("screens", json.dumps(screens))
    return text


def _screen_at(index: int) -> tuple[int, int]:
    """Return left and top of a screen of a contact sheet."""
    row, column = divmod(index, _COLUMNS)
    return _SCREEN_GAP + column * _TILE_WIDTH, _SCREEN_GAP + row * _TILE_HEIGHT + _LABEL_HEIGHT


_TILE_GRID_SCALE = 4
_GRID_INK = (255, 64, 64)


def write_tile_grid(screen: NDArray[np.uint8], path: Path) -> None:
    """Write a screen, uint8 [144, 160, 3], with the numbers of its rows and columns of tiles.

    Raises:
        UsageError: the file cannot be written.
    """
    side = _TILE_GRID_SCALE * TILE_SIDE
    width = _TILE_GRID_SCALE * SCREEN_WIDTH
    height = _TILE_GRID_SCALE * SCREEN_HEIGHT
    picture = Image.fromarray(screen).resize((width, height), Image.Resampling.NEAREST)
    sheet = Image.new("RGB", (width + side, height + side), BACKGROUND)
    sheet.paste(picture, (side, side))
    draw = ImageDraw.Draw(sheet)
    for number, left in enumerate(range(side, width + side, side)):
        draw.line((left, 0, left, height + side), fill=_GRID_INK)
        draw.text((left + side // 3, side // 3), str(number), fill=INK)
    for number, top in enumerate(range(side, height + side, side)):
        draw.line((0, top, width + side, top), fill=_GRID_INK)
        draw.text((side // 3, top + side // 3), str(number), fill=INK)
    save_sheet(sheet, path, "screen")


def save_sheet(sheet: Image.Image, path: Path, what: str) -> None:
    """Save a sheet as a PNG.

    Raises:
        UsageError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sheet.save(path, format="PNG", optimize=True)
    except OSError as error:
        raise UsageError(
            f"the {what} {path} cannot be written ({error.strerror}); name another file"
        ) from None


Colour = tuple[int, int, int]

_MOST_MOMENTS = 4
_GAP = 12
_SMALL_GAP = 4
_SHEET_WIDTH = 1_000  # panels that do not fit beside each other stand below
_TEXT_HEIGHT = 13
_FAINT: Colour = (186, 186, 194)
_DIM: Colour = (140, 140, 148)
_EMPTY: Colour = (58, 58, 64)
_POSITIVE: Colour = (86, 180, 233)
_NEGATIVE: Colour = (230, 126, 74)
_CHIP: Colour = (70, 82, 104)
_LABEL_WIDTH = 110
_BAR_WIDTH = 72
_NUMBER_WIDTH = 54
_VALUES_WIDTH = _BAR_WIDTH + _SMALL_GAP + _NUMBER_WIDTH
_ROW_WIDTH = _LABEL_WIDTH + _SMALL_GAP + _VALUES_WIDTH
_BAR_HEIGHT = 7
_SQUARE = 8
_SMALL_SQUARE = 4
_MOST_LARGE_SQUARES = 32
_WAVE_HEIGHT = 24
_GRID_SIDE = 160
_LARGEST_CELL = 12

# Okabe and Ito's colours, which people tell apart who see red and green alike
_OF_CLASSES: tuple[Colour, ...] = (
    *((86, 180, 233), (230, 159, 0), (0, 158, 115), (240, 228, 66)),
    *((213, 94, 0), (204, 121, 167), (0, 114, 178), (224, 224, 224)),
)
_GOLDEN_RATIO = (1 + math.sqrt(5)) / 2


def class_colour(number: int) -> Colour:
    """Return the colour of a class of a grid; class 0 is what has no class."""
    if number == 0:
        return _EMPTY
    if number <= len(_OF_CLASSES):
        return _OF_CLASSES[number - 1]
    red, green, blue = colorsys.hsv_to_rgb(number / _GOLDEN_RATIO % 1, 0.55, 0.9)
    return round(255 * red), round(255 * green), round(255 * blue)


def write_parts_sheet(
    moments: Sequence[Moment], game: Game, path: Path, *, names: Collection[str] | None = None
) -> None:
    """Write a PNG with at most four of the moments, one below the other.

    Args:
        moments: moments at which all parts of the game were seen.
        names: the parts to draw; None for all.

    Raises:
        UsageError: the file cannot be written.
    """
    shown = min(_MOST_MOMENTS, len(moments))
    chosen = [moments[i * len(moments) // shown] for i in range(shown)]
    sheet = _below([_moment(one, game, names) for one in chosen], gap=2 * _GAP)
    framed = Image.new("RGB", (sheet.width + 2 * _GAP, sheet.height + 2 * _GAP), BACKGROUND)
    framed.paste(sheet, (_GAP, _GAP))
    save_sheet(framed, path, "sheet of the parts")


def _moment(moment: Moment, game: Game, names: Collection[str] | None) -> Image.Image:
    panels = [_below([_text(moment.label), Image.fromarray(moment.screen)])]
    for name, part in game.definition.game_parts().items():
        if names is None or name in names:
            drawn = _drawn(part, moment.parts[name])
            kind = game.definition.parts[name].kind
            shape = " x ".join(map(str, part.form.shape))
            stacked = ", stacked" if part.stack else ""
            facts = _text(f"{kind}, {shape}{stacked}", _DIM)
            panels.append(_below([_text(name), drawn, facts]))
    return _wrapped(_columns(panels), _SHEET_WIDTH, gap=2 * _GAP)


def _drawn(part: GamePart, values: NDArray[Any]) -> Image.Image:
    if part.form.kind == "vector":
        rows = []
        first = 0
        for label, n, bits in part.rows():
            numbers = values[first : first + n]
            first += n
            if bits == 1:
                rows.append(_bits(label, numbers))
            elif n == 1:
                (number,) = numbers.tolist()
                rows.append(_row(label, _beside([_bar(number), _text(f"{number:.4g}")])))
            else:
                rows.append(_row(label, _waves(numbers)))
        return _below(rows)
    if part.form.kind == "categories":
        words = [part.labels[n] or "-" for n in values] if part.labels else map(str, values)
        chips = _chips(words)
        return _beside([_text(part.caption, _FAINT), chips], gap=_GAP) if part.caption else chips
    fits = max(1, min(_LARGEST_CELL, _GRID_SIDE // max(values[0].shape)))
    cell = part.cell_pixels or fits
    colours = np.array([class_colour(n) for n in range(int(values[0].max()) + 1)], np.uint8)
    drawn = colours[values[0]].repeat(cell, axis=0).repeat(cell, axis=1)
    picture = Image.fromarray(drawn)
    if part.marks_middle:
        picture = _with_middle(picture)
    names = part.labels[1:]
    return _below([picture, _legend(names)]) if names else picture


def _bits(label: str, bits: NDArray[Any]) -> Image.Image:
    if label and len(bits) > _MOST_LARGE_SQUARES:
        return _below([_text(label, _FAINT), _squares(bits, _SMALL_SQUARE, _ROW_WIDTH)])
    return _row(label, _squares(bits, _SQUARE, _VALUES_WIDTH if label else _ROW_WIDTH))


def _row(label: str, values: Image.Image) -> Image.Image:
    """Return a label of fixed width, shortened if it is too long, and beside it the values."""
    if not label:
        return values
    while _width(label) > _LABEL_WIDTH:
        label = label.rstrip("…")[:-1] + "…"
    words = Image.new("RGB", (_LABEL_WIDTH, _TEXT_HEIGHT), BACKGROUND)
    words.paste(_text(label, _FAINT), (0, 0))
    return _beside([words, values])


def _bar(number: float) -> Image.Image:
    """Draw a bar of a number from 0 to 1, or from 0 to -1 in another colour."""
    bar = Image.new("RGB", (_BAR_WIDTH, _TEXT_HEIGHT), BACKGROUND)
    draw = ImageDraw.Draw(bar)
    top = (_TEXT_HEIGHT - _BAR_HEIGHT) // 2
    draw.rectangle((0, top, _BAR_WIDTH - 1, top + _BAR_HEIGHT - 1), fill=_EMPTY)
    length = round(min(1, abs(number)) * _BAR_WIDTH)
    if length:
        colour = _POSITIVE if number > 0 else _NEGATIVE
        draw.rectangle((0, top, length - 1, top + _BAR_HEIGHT - 1), fill=colour)
    return bar


def _waves(numbers: NDArray[np.float32]) -> Image.Image:
    """Draw numbers as columns from a line on, as far as the largest reaches or 1."""
    width = max(2, min(_SQUARE, _VALUES_WIDTH // len(numbers)))
    height = _WAVE_HEIGHT // 2
    most = max(1.0, float(np.abs(numbers).max()))
    per_line = _VALUES_WIDTH // width
    lines = []
    for start in range(0, len(numbers), per_line):
        line = numbers[start : start + per_line]
        picture = Image.new("RGB", (len(line) * width, 2 * height + 1), BACKGROUND)
        draw = ImageDraw.Draw(picture)
        for index, number in enumerate(line.tolist()):
            length = round(number / most * height)
            left = index * width
            colour = _POSITIVE if length > 0 else _NEGATIVE
            ends = sorted((height, height - length))
            draw.rectangle((left, ends[0], left + width - 2, ends[1]), fill=colour)
        draw.line((0, height, picture.width, height), fill=_DIM)
        lines.append(picture)
    return _below(lines)


def _squares(bits: NDArray[np.float32], side: int, width: int) -> Image.Image:
    """Draw a square for each bit, filled if it is 1."""
    columns = min(len(bits), width // (side + 1))
    rows = -(-len(bits) // columns)
    picture = Image.new("RGB", (columns * (side + 1), rows * (side + 1) + 2), BACKGROUND)
    draw = ImageDraw.Draw(picture)
    for index, bit in enumerate(bits):
        left = index % columns * (side + 1)
        top = index // columns * (side + 1) + 2
        fill = _POSITIVE if bit else _EMPTY
        draw.rectangle((left, top, left + side - 1, top + side - 1), fill=fill)
    return picture


# --- categories, grids ---


def _chips(words: Iterable[str]) -> Image.Image:
    """Draw each of some words in a box of its own."""
    chips = []
    for one in words:
        chip = Image.new("RGB", (_width(one) + 10, _TEXT_HEIGHT + 4), _CHIP)
        ImageDraw.Draw(chip).text((5, 1), one, fill=INK)
        chips.append(chip)
    return _wrapped(chips, _GRID_SIDE, gap=_SMALL_GAP)


def _with_middle(grid: Image.Image) -> Image.Image:
    """Add marks outside of a grid at the row and column of its middle, where the player is."""
    framed = Image.new("RGB", (grid.width + 5, grid.height + 5), BACKGROUND)
    framed.paste(grid, (5, 5))
    draw = ImageDraw.Draw(framed)
    x = 5 + grid.width // 2
    y = 5 + grid.height // 2
    draw.line((x, 0, x, 3), fill=INK)
    draw.line((0, y, 3, y), fill=INK)
    return framed


def _legend(names: Sequence[str]) -> Image.Image:
    entries = []
    for number, name in enumerate(names, 1):
        swatch = Image.new("RGB", (_SQUARE, _TEXT_HEIGHT), BACKGROUND)
        ImageDraw.Draw(swatch).rectangle((0, 3, _SQUARE - 1, 10), fill=class_colour(number))
        entries.append(_beside([swatch, _text(name, _FAINT)]))
    return _wrapped(entries, _GRID_SIDE, gap=_GAP, line_gap=0)


# --- layout ---


def _width(words: str) -> int:
    return math.ceil(ImageFont.load_default().getlength(words))


def _text(words: str, ink: Colour = INK) -> Image.Image:
    picture = Image.new("RGB", (max(1, _width(words)), _TEXT_HEIGHT), BACKGROUND)
    ImageDraw.Draw(picture).text((0, -1), words, fill=ink)
    return picture


def _beside(pictures: Sequence[Image.Image], *, gap: int = _SMALL_GAP) -> Image.Image:
    width = sum(picture.width for picture in pictures) + gap * (len(pictures) - 1)
    joined = Image.new("RGB", (width, max(p.height for p in pictures)), BACKGROUND)
    left = 0
    for picture in pictures:
        joined.paste(picture, (left, 0))
        left += picture.width + gap
    return joined


def _below(pictures: Sequence[Image.Image], *, gap: int = _SMALL_GAP) -> Image.Image:
    height = sum(picture.height for picture in pictures) + gap * (len(pictures) - 1)
    joined = Image.new("RGB", (max(p.width for p in pictures), height), BACKGROUND)
    top = 0
    for picture in pictures:
        joined.paste(picture, (0, top))
        top += picture.height + gap
    return joined


def _columns(pictures: Sequence[Image.Image]) -> list[Image.Image]:
    """Put pictures below each other where they are together no higher than the highest."""
    height = max(picture.height for picture in pictures)
    columns: list[list[Image.Image]] = []
    left = 0
    for picture in pictures:
        if picture.height > left:
            columns.append([])
            left = height
        columns[-1].append(picture)
        left -= picture.height + _GAP
    return [_below(column, gap=_GAP) for column in columns]


def _wrapped(
    pictures: Sequence[Image.Image], width: int, *, gap: int, line_gap: int | None = None
) -> Image.Image:
    """Return the pictures beside each other, in as many lines as the width needs."""
    lines: list[list[Image.Image]] = [[]]
    for picture in pictures:
        used = sum(other.width + gap for other in lines[-1])
        if lines[-1] and used + picture.width > width:
            lines.append([])
        lines[-1].append(picture)
    below = gap if line_gap is None else line_gap
    return _below([_beside(line, gap=gap) for line in lines], gap=below)
