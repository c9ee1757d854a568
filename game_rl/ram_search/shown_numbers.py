"""Numbers that a game draws with tiles: where they stand, which tiles are digits, what they say."""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.emulator import TILE_SIDE, Emulator, TileArea
from game_rl.emulator.video_memory import MAP_PLACES, tile_ids
from game_rl.errors import UsageError

ROWS = 18
COLUMNS = 20
NO_TILE = -1
Tiles = NDArray[np.int16]

_LCD_CONTROL = 0xFF40
_WINDOW_Y = 0xFF4A
_WINDOW_X_PLUS_7 = 0xFF4B
_WINDOW_ON = 0x20
_SECOND_MAP = 0x40
_SCREEN = TileArea(0, 0, COLUMNS, ROWS)
_PLACE = re.compile(r"(row|column|col|r|c)\s*(\d+)", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_MOST_DIGITS = 8


def background_tiles(emulator: Emulator) -> Tiles:
    """Return the tiles of background and window on the screen, int16 [18, 20]."""
    found = emulator.tiles(_SCREEN, follow_scroll=True)
    control = emulator.read(_LCD_CONTROL)
    top = -(-emulator.read(_WINDOW_Y) // TILE_SIDE)
    left = max(0, -(-(emulator.read(_WINDOW_X_PLUS_7) - 7) // TILE_SIDE))
    if not control & _WINDOW_ON or top >= ROWS or left >= COLUMNS:
        return found
    start, end = MAP_PLACES[bool(control & _SECOND_MAP)]
    area = TileArea(0, 0, COLUMNS - left, ROWS - top)
    banks = (0, 1) if emulator.is_colour else (None,)
    numbers, *attributes = (list(emulator.read_range(start, end, bank=bank)) for bank in banks)
    in_bank_1 = attributes[0] if attributes else None
    found[top:, left:] = tile_ids(numbers, control, area, None, attributes=in_bank_1)
    return found


def sprite_tiles_on_screen(emulator: Emulator) -> Tiles:
    """Return the tiles of sprites, each in the cell that it covers most, int16 [18, 20]."""
    found = np.full((ROWS, COLUMNS), NO_TILE, np.int16)
    for sprite in reversed(emulator.sprites()):
        row = round(sprite.y / TILE_SIDE)
        column = round(sprite.x / TILE_SIDE)
        if 0 <= row < ROWS and 0 <= column < COLUMNS:
            found[row, column] = sprite.tile
    return found


LAYERS: Mapping[str, Callable[[Emulator], Tiles]] = {
    "tiles": background_tiles,
    "sprites": sprite_tiles_on_screen,
}
"""What numbers are drawn with; the usual one first."""


class Statement(NamedTuple):
    """What a person says of a number on the screen.

    Attributes:
        digits: as they are shown.
        row, column: where its first digit stands, in tiles from 0; None if it was not said.
    """

    digits: str
    row: int | None = None
    column: int | None = None


def parse_statement(text: str) -> Statement:
    """Return what `28` or `row 1 column 5 is 28` says.

    Raises:
        UsageError: it says something else.
    """
    places = {match[1][0].lower(): int(match[2]) for match in _PLACE.finditer(text)}
    numbers = _NUMBER.findall(_PLACE.sub(" ", text))
    if len(numbers) != 1 or len(places) == 1 or len(numbers[0]) > _MOST_DIGITS:
        raise UsageError(
            f"--number {text!r} does not say what the screen shows; write --number 28, or, if it "
            'shows several 28, --number "row 1 column 5 is 28" (tiles of 8 pixels, counted from 0 '
            "at the top left)"
        )
    row = places.get("r")
    column = places.get("c")
    if row is not None and (row >= ROWS or (column or 0) >= COLUMNS):
        raise UsageError(
            f"--number {text!r}: the screen has rows 0 to {ROWS - 1} and columns 0 to "
            f"{COLUMNS - 1} of tiles"
        )
    return Statement(numbers[0], row, column)


class NumberPlace(NamedTuple):
    """Where a number stands, and the tiles of its digits.

    Attributes:
        layer: one of `LAYERS`.
        digits: the digit of each tile.
    """

    row: int
    column: int
    width: int
    layer: str
    digits: Mapping[int, int]

    @property
    def zero(self) -> int | None:
        """The byte in a tile map that stands for 0; None if it is not known."""
        return next((tile % 256 for tile, digit in self.digits.items() if digit == 0), None)

    def read(self, tiles: Tiles) -> int | None:
        """Return the number that tiles [18, 20] show here; None if there is none.

        It is the row of digits that begins at this column, ends with the last digit, or has one of
        them in between: numbers get longer to the left or to the right.
        """
        row = [self.digits.get(tile) for tile in tiles[self.row].tolist()]
        inside = range(self.column, self.column + self.width)
        at = next((column for column in inside if row[column] is not None), None)
        if at is None:
            return None
        first = at
        while first > 0 and row[first - 1] is not None:
            first -= 1
        found = 0
        for digit in row[first:]:
            if digit is None:
                break
            found = 10 * found + digit
        return found

    @property
    def in_words(self) -> str:
        by = " of sprites" if self.layer == "sprites" else ""
        last = f" to {self.column + self.width - 1}" if self.width > 1 else ""
        return f"row {self.row}, column{'s' if last else ''} {self.column}{last}{by}"


def places_showing(statement: Statement, layers: Mapping[str, Tiles]) -> list[NumberPlace]:
    """Return the places where the screen shows a number, if its digits' tiles are in a row.

    Args:
        layers: tiles [18, 20] of each layer.
    """
    digits = [int(digit) for digit in statement.digits]
    found = []
    for layer, tiles in layers.items():
        for row in range(ROWS):
            for column in range(COLUMNS - len(digits) + 1):
                shown = tiles[row, column : column + len(digits)].tolist()
                zeros = {tile - digit for tile, digit in zip(shown, digits, strict=True)}
                zero = zeros.pop()
                if not zeros and zero >= 0 and NO_TILE not in shown:
                    of_tiles = {zero + digit: digit for digit in range(10)}
                    place = NumberPlace(row, column, len(digits), layer, of_tiles)
                    if place.read(tiles) == int(statement.digits):
                        found.append(place)
    return found


def stated_place(statement: Statement, layers: Mapping[str, Tiles]) -> list[NumberPlace]:
    """Return the places that a statement can mean: the one that it names, or a near one.

    Tiles of digits that are not in a row are taken from the statement alone, and the others are
    learned from a counter.

    Raises:
        UsageError: the screen shows the number nowhere, or a single digit may stand anywhere.
    """
    everywhere = places_showing(statement, layers)
    if statement.row is None or statement.column is None:
        if len(set(statement.digits)) == 1 and len(statement.digits) == 1:
            raise UsageError(
                f"--number {statement.digits}: one digit may stand anywhere; say where, as in "
                f'--number "row 1 column 5 is {statement.digits}" (tiles of 8 pixels, counted from '
                "0; --screen FILE draws them), or choose a moment when it has two"
            )
        if not everywhere:
            raise UsageError(_nowhere(statement))
        return everywhere
    row = statement.row
    column = statement.column
    for distance in (0, 1):  # somebody may count from 1, or name another digit of it
        near = [
            place
            for place in everywhere
            if max(abs(place.row - row), abs(place.column - column)) <= distance
            or (place.row == row and place.column <= column < place.column + place.width)
        ]
        if near:
            return near[:1] if distance == 0 else near
    return _in_any_order(statement, layers)


def _in_any_order(statement: Statement, layers: Mapping[str, Tiles]) -> list[NumberPlace]:
    row = statement.row
    column = statement.column
    assert row is not None
    assert column is not None
    digits = [int(digit) for digit in statement.digits]
    for layer, tiles in layers.items():
        shown = tiles[row, column : column + len(digits)].tolist()
        pairs = set(zip(shown, digits, strict=False))
        is_clear = len(pairs) == len({tile for tile, _ in pairs}) == len(set(digits))
        if len(shown) == len(digits) and is_clear and NO_TILE not in shown:
            return [NumberPlace(row, column, len(digits), layer, dict(pairs))]
    raise UsageError(_nowhere(statement))


def _nowhere(statement: Statement) -> str:
    return (
        f"the screen does not show {statement.digits} with a tile a digit at this moment; look at "
        "it with --screen FILE, start at another moment (--start-state, --script, --wait), or "
        "describe what you know of the number at some moments (--moments FILE)"
    )


def learned_from_counter(place: NumberPlace, tiles: NDArray[np.int16]) -> Iterator[NumberPlace]:
    """Yield the place with all digits, learned from how its last digit counts: up, then down.

    Args:
        tiles: int16 [n_frames, 18, 20].
    """
    cells = tiles[:, place.row, place.column + place.width - 1].tolist()
    follows: dict[int, dict[int, int]] = {}
    for one, other in pairwise(cells):
        if one != other:
            counts = follows.setdefault(one, {})
            counts[other] = counts.get(other, 0) + 1
    after = {one: max(counts, key=lambda tile: counts[tile]) for one, counts in follows.items()}
    for step in (1, -1):
        known = dict(place.digits)
        for tile, digit in list(known.items()):
            at = tile
            value = digit
            while (after_it := after.get(at)) is not None and after_it not in known:
                value = (value + step) % 10
                if value in known.values():
                    break
                known[after_it] = value
                at = after_it
        yield place._replace(digits=known)
