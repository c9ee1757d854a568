"""Tiles and sprites, beside what PyBoy itself says of them."""

import io
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyboy import PyBoy

from game_rl.emulator.emulator import TileArea
from game_rl.emulator.pyboy_emulator import PyBoyEmulator
from game_rl.emulator.video_memory import sprite_tiles, tile_ids
from game_rl.games.definition import Game, load_game

WHOLE_SCREEN = TileArea(0, 0, 20, 18)


def moments(game: Game) -> Iterator[PyBoy]:
    """Moments of a game that somebody plays, not all of them drawn."""
    pyboy = PyBoy(
        io.BytesIO(game.rom.data),
        window="null",
        sound_emulated=False,
        no_input=True,
        cgb=game.is_colour,
        log_level=5,
    )
    pyboy.game_area_dimensions(0, 0, 20, 18, True)
    pyboy.game_area_mapping(list(range(768)), 0)
    pyboy.tick(120, True, False)
    for step, button in enumerate(("start", "a", "right", "start", "right", "a", "up", "right")):
        pyboy.button_press(button)
        pyboy.tick(30, step % 2 == 0, False)
        pyboy.button_release(button)
        pyboy.tick(37, False, False)
        yield pyboy
    pyboy.stop(save=False)


def loaded(pyboy: PyBoy, emulator: PyBoyEmulator) -> None:
    file = io.BytesIO()
    pyboy.save_state(file)
    emulator.load_raw_state(file.getvalue())


@pytest.mark.parametrize("name", ["duel", "beacon", "seasons", "courier"])
def test_tiles_and_sprites_are_those_of_pyboys_game_area(name: str) -> None:
    game = load_game(name)
    seen = set()
    with closing(PyBoyEmulator(game.rom, colour=game.is_colour)) as emulator:
        for pyboy in moments(game):
            loaded(pyboy, emulator)
            expected = np.array(pyboy.game_area())
            grid = emulator.tiles(WHOLE_SCREEN, follow_scroll=True)
            for x, y, tile in emulator.sprites():
                if 0 <= x // 8 < 20 and 0 <= y // 8 < 18:
                    grid[y // 8, x // 8] = tile
            np.testing.assert_array_equal(grid % 384, expected % 384)
            seen.add(grid.tobytes())
    assert len(seen) > 3


@pytest.mark.parametrize("name", ["beacon", "seasons", "courier"])
def test_an_area_of_the_map_is_where_the_map_has_it(name: str) -> None:
    game = load_game(name)
    with closing(PyBoyEmulator(game.rom, colour=game.is_colour)) as emulator:
        for pyboy in moments(game):
            loaded(pyboy, emulator)
            found = emulator.tiles(TileArea(5, 9, 27, 23), follow_scroll=False)
            tilemap = pyboy.tilemap_background
            expected = [[tilemap.tile_identifier(x, y) for x in range(5, 32)] for y in range(9, 32)]
            if game.is_colour:
                expected = [
                    [
                        tile + 384 * (pyboy.memory[1, tilemap.map_offset + 32 * y + x] >> 3 & 1)
                        for x, tile in enumerate(row, 5)
                    ]
                    for y, row in enumerate(expected, 9)
                ]
            assert found.tolist() == expected


@given(st.data())
def test_the_area_follows_the_scrolling_of_each_row(data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(0, 255), min_size=1024, max_size=1024))
    control = data.draw(st.sampled_from([0x00, 0x10]))
    x, y = data.draw(st.integers(0, 19)), data.draw(st.integers(0, 17))
    area = TileArea(x, y, data.draw(st.integers(1, 20 - x)), data.draw(st.integers(1, 18 - y)))
    random = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    scrolling = random.integers(0, 256, (144, 4)).tolist()
    expected = []
    for row in range(area.y, area.y + area.height):
        scx, scy = scrolling[8 * row][:2]
        line = []
        for column in range(area.x, area.x + area.width):
            number = numbers[32 * ((row + scy // 8) % 32) + (column + scx // 8) % 32]
            signed = number - 256 if number > 127 else number
            line.append(number if control else 256 + signed)
        expected.append(line)
    assert tile_ids(numbers, control, area, scrolling).tolist() == expected


def oam(*sprites: tuple[int, int, int, int]) -> list[int]:
    return [byte for sprite in sprites for byte in sprite] + [0] * (160 - 4 * len(sprites))


def test_a_tall_sprite_has_two_tiles_in_the_order_that_is_seen() -> None:
    found = sprite_tiles(oam((26, 18, 7, 0), (26, 28, 8, 0x40)), is_tall=True, is_colour=False)
    assert found == [(10, 10, 6), (10, 18, 7), (20, 10, 9), (20, 18, 8)]


def test_a_sprite_outside_the_screen_is_left_out() -> None:
    at_the_edge = (9, 1, 5, 0x08), (159, 167, 6, 0)
    outside = (8, 20, 1, 0), (160, 20, 2, 0), (30, 0, 3, 0), (30, 168, 4, 0)
    attributes = oam(*at_the_edge, *outside)
    found = sprite_tiles(attributes, is_tall=False, is_colour=False)
    assert found == [(-7, -7, 5), (159, 143, 6)]
    in_colour = sprite_tiles(attributes, is_tall=False, is_colour=True)
    assert in_colour == [(-7, -7, 5 + 384), (159, 143, 6)]
