"""Pictures to tiles, and tiles to C."""

from __future__ import annotations

from itertools import chain

from canvas import Picture

Tile = tuple[tuple[int, ...], ...]


def cut(picture: Picture, x: int, y: int, height: int) -> Tile:
    return tuple(tuple(row[x : x + 8]) for row in picture[y : y + height])


class TileBank:
    """Tiles in the order of their first use; the same tile is stored once."""

    def __init__(self) -> None:
        self.numbers: dict[Tile, int] = {}

    def number(self, tile: Tile) -> int:
        return self.numbers.setdefault(tile, len(self.numbers))

    def bytes(self) -> list[int]:
        """Two bits a pixel as the console has them: low bits of a row, then its high bits."""
        return [
            sum((shade >> bit & 1) << (7 - x) for x, shade in enumerate(row))
            for tile in self.numbers
            for row in tile
            for bit in (0, 1)
        ]


def figure(bank: TileBank, picture: Picture, left: int) -> list[int]:
    """Tiles so far, parts, then (y, x, tile) of each 8x16 sprite that is not empty.

    x and y are offsets from the place of the feet, modulo 256.
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
