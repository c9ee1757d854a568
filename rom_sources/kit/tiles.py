"""Conversion of pictures to tiles, and of tiles to C."""

from __future__ import annotations

from itertools import chain

from canvas import Picture

Tile = tuple[tuple[int, ...], ...]


def cut(picture: Picture, x: int, y: int, height: int) -> Tile:
    return tuple(tuple(row[x : x + 8]) for row in picture[y : y + height])


class TileBank:
    """Tiles in order of first use; equal tiles are stored once."""

    def __init__(self) -> None:
        self.numbers: dict[Tile, int] = {}

    def number(self, tile: Tile) -> int:
        return self.numbers.setdefault(tile, len(self.numbers))

    def bytes(self) -> list[int]:
        """Return the tiles in the console's format: the low bits of a row, then its high bits."""
        return [
            sum((shade >> bit & 1) << (7 - x) for x, shade in enumerate(row))
            for tile in self.numbers
            for row in tile
            for bit in (0, 1)
        ]


def figure(bank: TileBank, picture: Picture, left: int) -> list[int]:
    """Return the bank's tile count, the part count, and (y, x, tile) of each non-empty 8x16 sprite.

    x is an offset from the column of the feet, `left`, modulo 256; y is the row in the picture.
    """
    parts = []
    for y in range(0, len(picture), 16):
        for x in range(0, len(picture[0]), 8):
            tile = cut(picture, x, y, 16)
            if any(map(any, tile)):
                parts.append([y, (x - left) % 256, 2 * bank.number(tile)])
    return [len(bank.numbers), len(parts), *chain.from_iterable(parts)]


def shifted(picture: Picture, columns: int) -> Picture:
    return [[0] * columns + row + [0] * (8 - columns) for row in picture]


def c_array(kind: str, name: str, values: list[int] | list[str]) -> str:
    lines = [", ".join(map(str, values[i : i + 20])) for i in range(0, len(values), 20)]
    return f"{kind} {name}[] = {{\n    " + ",\n    ".join(lines) + "\n};\n"
