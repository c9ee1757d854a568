"""Maps joined from screens, against a plain list of the colours that each pixel had."""

import base64
import io
import tracemalloc
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from game_rl.games.conditions import Condition
from game_rl.games.screen_area import CropSpec, PlaceScreen
from game_rl.places import screen_map
from game_rl.places.screen_map import BLOCK_SIDE, ScreenMap, screen_map_json

Seen = dict[tuple[int, ...], list[tuple[int, ...]]]  # the colours of each pixel, as they came


def noise(seed: int, height: int, width: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 4, (height, width, 3), np.uint8) * 85


def pasted(seen: Seen, map_id: tuple[int, ...], x: int, y: int, screen: NDArray[np.uint8]) -> None:
    for row in range(screen.shape[0]):
        for column in range(screen.shape[1]):
            seen[(*map_id, x + column, y + row)].append(tuple(screen[row, column].tolist()))


def pixels_of(joined: ScreenMap) -> dict[tuple[int, ...], tuple[int, ...]]:
    found = {}
    for map_id in joined.maps():
        picture = joined.picture(map_id)
        for row, column in np.argwhere(picture.seen).tolist():
            colour = picture.pixels[row, column].tolist()
            found[(*map_id, picture.x + column, picture.y + row)] = tuple(colour)
    return found


def write_rooms(file: Path, n: int) -> int:
    """Write rooms of 4 x 4 blocks, and return the bytes of their arrays."""
    joined = ScreenMap()
    for number in range(n):
        joined.add((number,), 0, 0, np.tile(noise(number, 16, 16), (32, 32, 1)))
    file.write_bytes(joined.to_bytes())
    return n * 16 * BLOCK_SIDE**2 * 5


def traced_peak(call: Callable[[], object]) -> int:
    """Call, and return the most bytes that Python and NumPy held meanwhile."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(-150, 150), st.integers(-150, 150)), max_size=12
)


@settings(max_examples=30, deadline=None)
@given(STEPS, st.tuples(st.integers(1, 20), st.integers(1, 24)))
def test_every_pixel_of_a_map_is_the_one_that_was_seen(
    steps: list[tuple[int, int, int]], size: tuple[int, int]
) -> None:
    worlds = [noise(seed, 340, 340) for seed in (1, 2)]
    seen: Seen = defaultdict(list)
    joined = ScreenMap()
    height, width = size
    for number, x, y in steps:
        screen = worlds[number][y + 150 : y + 150 + height, x + 150 : x + 150 + width]
        joined.add((number,), x, y, screen)
        pasted(seen, (number,), x, y, screen)
    assert pixels_of(joined) == {pixel: colours[0] for pixel, colours in seen.items()}
    again = ScreenMap.from_bytes(joined.to_bytes())
    assert pixels_of(again) == pixels_of(joined)
    assert again.to_bytes() == joined.to_bytes()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_a_pixel_has_the_colour_of_most_screens(colours: list[int]) -> None:
    joined = ScreenMap()
    for colour in colours:
        joined.add((), 5, 7, np.full((1, 1, 3), colour, np.uint8))
    (found,) = pixels_of(joined).values()
    assert found[0] in colours
    for colour in range(4):
        if 2 * colours.count(colour) > len(colours):
            assert found == (colour,) * 3


def test_whoever_walks_through_a_room_leaves_no_trace() -> None:
    room = noise(3, 128, 160)
    joined = ScreenMap()
    for x in range(0, 150, 10):
        screen = room.copy()
        screen[60:76, x : x + 16] = 7
        joined.add((4,), 0, 0, screen)
    np.testing.assert_array_equal(joined.picture((4,)).pixels, room)


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen_map, "MOST_BLOCKS", 2)
    joined = ScreenMap()
    for x in range(0, 1_000, 100):
        joined.add((0,), x, 0, noise(1, 20, 20))
    assert joined.picture((0,)).seen.shape[1] <= 2 * screen_map.BLOCK_SIDE
    assert ScreenMap.from_bytes(joined.to_bytes()).to_bytes() == joined.to_bytes()


@pytest.mark.parametrize(("most", "shrink"), [(18, 1), (17, 2), (4, 4), (1, 8)])
def test_a_map_that_is_read_in_fewer_pixels_has_the_mean_colour_of_each_square(
    most: int, shrink: int
) -> None:
    joined = ScreenMap()
    joined.add((0,), 37, -90, noise(1, 100, 150))
    joined.add((0,), 300, 200, noise(2, 128, 90))  # 4 x 4 blocks, and 1 x 2
    joined.add((1,), 128 * 5 + 3, 64, noise(3, 9, 200))
    whole = joined.to_bytes()
    found = ScreenMap.read(io.BytesIO(whole), most_blocks=most)
    assert (found.shrink, found.maps()) == (shrink, [(0,), (1,)])
    squares: dict[tuple[int, int, int], list[tuple[int, ...]]] = defaultdict(list)
    for (map_id, x, y), colour in pixels_of(joined).items():
        squares[map_id, x // shrink, y // shrink].append(colour)
    expected = {
        square: tuple(sum(channel) // len(colours) for channel in zip(*colours, strict=True))
        for square, colours in squares.items()
    }
    again = {}
    for (number,) in found.maps():
        picture = found.picture((number,))
        assert picture.shrink == shrink
        assert picture.x % shrink == picture.y % shrink == 0 or shrink == 1
        for row, column in np.argwhere(picture.seen).tolist():
            at = (number, picture.x // shrink + column, picture.y // shrink + row)
            again[at] = tuple(picture.pixels[row, column].tolist())
    assert again == expected


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"x" * 100])
def test_a_damaged_file_is_noticed(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"not a file of a map's screens|pickled"):
        ScreenMap.from_bytes(content)


def test_a_file_that_is_cut_anywhere_is_noticed() -> None:
    joined = ScreenMap()
    joined.add((1,), 3, 4, noise(1, 20, 20))
    content = joined.to_bytes()
    for end in range(0, len(content), 97):
        with pytest.raises(ValueError, match="file of a map's screens"):
            ScreenMap.from_bytes(content[:end])


@pytest.mark.parametrize(("shown", "expected"), [
    (PlaceScreen(), (0, 0)),
    (PlaceScreen(crop=CropSpec(top=16, height=128)), (0, 16)),
    (PlaceScreen(left="camera"), (300, 0)),
    (PlaceScreen(left="camera", top=-8, crop=CropSpec(left=8, width=100)), (308, -8)),
    (PlaceScreen(pixels=16, player=(64, 60)), (16 * 5 - 64, 16 * 9 - 60)),
    (PlaceScreen(when=Condition(variable="battle", equals=0)), (0, 0)),
    (PlaceScreen(when=Condition(variable="battle", equals=1)), None),
])  # fmt: skip
def test_where_a_screen_lies_on_its_map(
    shown: PlaceScreen, expected: tuple[int, int] | None
) -> None:
    assert shown.shown_at((2, 5, 9), {"camera": 300, "battle": 0}) == expected


def test_the_page_gets_every_map_and_one_at_a_time_is_in_memory(tmp_path: Path) -> None:
    file = tmp_path / "place_screens.npz"
    size = write_rooms(file, 8)
    whole = ScreenMap.read(file)
    assert traced_peak(lambda: screen_map_json(file)) < size
    found = screen_map_json(file)["maps"]
    assert [tuple(each["map"]) for each in found] == whole.maps()
    for each in found:
        picture = whole.picture(tuple(each["map"]))
        with Image.open(io.BytesIO(base64.b64decode(each["png"]))) as png:
            np.testing.assert_array_equal(np.asarray(png)[..., :3], picture.pixels)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert screen_map_json(file)["maps"] == []
