"""What the Game Boy's video memory says of the tiles of the background and of the sprites.

Source: Pan Docs, "VRAM Tile Data", "VRAM Tile Maps" and "OAM".
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.emulator import (
    MAP_SIDE,
    N_TILES,
    SCREEN_HEIGHT,
    SCREEN_WIDTH,
    TILE_SIDE,
    SpriteTile,
    TileArea,
)

MAP_PLACES = ((0x9800, 0x9C00), (0x9C00, 0xA000))
"""First address and end of each of the two tile maps."""

_UNSIGNED_NUMBERS = 0x10  # of LCDC
_IN_BANK_1 = 0x08  # of the attributes of a tile or a sprite
_Y_FLIP = 0x40


def tile_ids(
    numbers: Sequence[int],
    control: int,
    area: TileArea,
    scrolling: Sequence[Sequence[int]] | None,
    *,
    attributes: Sequence[int] | None = None,
) -> NDArray[np.int16]:
    """Return the ids of an area's tiles (see `Emulator.tiles`).

    Args:
        numbers: the tile numbers of the map, 32 x 32.
        control: the register LCDC.
        scrolling: SCX and SCY of each of the 144 lines; None for an area of the map.
        attributes: those of the tiles, on a Game Boy Color.
    """
    ids = np.array(numbers, np.int16)
    if not control & _UNSIGNED_NUMBERS:
        ids[ids < 128] += 256
    if attributes is not None:
        ids[np.array(attributes, np.uint8) & _IN_BANK_1 != 0] += N_TILES
    of_map = ids.reshape(MAP_SIDE, MAP_SIDE)
    x, y, width, height = area
    if scrolling is None:
        return of_map[y : y + height, x : x + width].copy()
    lines = np.array([scrolling[TILE_SIDE * row][:2] for row in range(y, y + height)]) // TILE_SIDE
    rows = (lines[:, 1] + np.arange(y, y + height)) % MAP_SIDE
    columns = (lines[:, :1] + np.arange(x, x + width)) % MAP_SIDE
    return of_map[rows[:, None], columns]


def sprite_tiles(attributes: Sequence[int], *, is_tall: bool, is_colour: bool) -> list[SpriteTile]:
    """Return the tiles of the sprites on the screen (see `Emulator.sprites`).

    Args:
        attributes: the 160 bytes of OAM.
        is_tall: whether sprites have 8 x 16 pixels.
    """
    found = []
    for at in range(0, len(attributes), 4):
        y, x, number, flags = attributes[at : at + 4]
        y = y - 16
        x = x - TILE_SIDE
        height = 2 * TILE_SIDE if is_tall else TILE_SIDE
        if not (-height < y < SCREEN_HEIGHT and -TILE_SIDE < x < SCREEN_WIDTH):
            continue
        bank = N_TILES if is_colour and flags & _IN_BANK_1 else 0
        if not is_tall:
            found.append(SpriteTile(x, y, number + bank))
            continue
        first = number & 0xFE
        second = number | 1
        if flags & _Y_FLIP:
            first, second = second, first
        found += [
            SpriteTile(x, y, first + bank),
            SpriteTile(x, y + TILE_SIDE, second + bank),
        ]
    return found
