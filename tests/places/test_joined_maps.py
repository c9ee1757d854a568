"""Maps of a world: rooms with and without screens, at full size and in fewer pixels."""

import io

import numpy as np
import pytest
from numpy.typing import NDArray

from game_rl.places.joined_maps import _UNSEEN, JoinedMap, Room, joined_maps
from game_rl.places.place_counts import PlaceCounts, Visits
from game_rl.places.place_layers import PlaceLayer
from game_rl.places.screen_map import ScreenMap
from tests.places.test_screen_map import noise

NAMES = {1: "east", 2: "far away"}


def world(*visits: tuple[int, int, int], until: int = 64) -> PlaceCounts:
    """Counts of a world of rooms of 160 x 128, one after the other, each visit after the last."""
    counts = PlaceCounts(("room", "x", "y"), {n: (160 * n, 0) for n in range(3)})
    for number, place in enumerate(visits, 1):
        visit = Visits(np.array([place], np.int64), np.ones(1, np.int64))
        counts.add(visit, until=until * number)
    return counts


def drawn(joined: JoinedMap, shrink: int = 1) -> NDArray[np.uint8]:
    def colours(layer: PlaceLayer) -> NDArray[np.uint8]:
        return np.zeros((*layer.counts.shape, 4), np.uint8)

    return np.asarray(joined.drawn(1, shrink, colours))


def test_a_visited_room_without_a_screen_has_a_border_and_its_name() -> None:
    counts = world((0, 5, 20), (2, 10, 30), (2, 110, 90))
    screens = ScreenMap()
    screens.add((0,), 0, 16, noise(1, 112, 160))
    (joined,) = joined_maps(counts, screens, pixels=1, names=NAMES)
    assert joined.rooms == [
        Room("", 0, 16, 160, 128),
        Room("far away", 330, 30, 431, 91, is_seen=False),
    ]
    picture = drawn(joined)[:, 330 - joined.left :]
    top, bottom = 30 - joined.top, 90 - joined.top
    assert (picture[top, :101] != _UNSEEN).any(axis=-1).all(), "the upper border"
    assert (picture[bottom, :101] != _UNSEEN).any(axis=-1).all(), "the lower one"
    assert (picture[top + 2 : bottom, 2:99] != _UNSEEN).any(), "the name"
    (nameless,) = joined_maps(counts, screens, pixels=1, names={})
    inside = drawn(nameless)[top + 1 : bottom, 331 - nameless.left : 430 - nameless.left]
    assert (inside == _UNSEEN).all()


def test_a_room_whose_places_are_a_part_of_a_pixel_is_drawn() -> None:
    (joined,) = joined_maps(world((0, 5, 20), (2, 10, 30)), ScreenMap(), pixels=1, names={})
    assert drawn(joined, shrink=16).shape == (1, 21, 3)


def test_a_room_without_a_screen_is_on_the_map_from_its_first_visit_on() -> None:
    counts = world((0, 5, 20), (1, 10, 30), (2, 110, 90))
    screens = ScreenMap()
    screens.add((1,), 0, 0, noise(1, 128, 160))
    (joined,) = joined_maps(counts, screens, pixels=1, names=NAMES)
    rooms = [[room.left for room in joined.at(64 * n).rooms] for n in range(4)]
    assert rooms == [[], [5], [5, 160], [5, 160, 430]]
    assert [len(joined.at(64 * n).pictures) for n in range(4)] == [0, 0, 1, 1]


def test_places_of_several_pixels_are_where_their_screens_are() -> None:
    """As in Pokémon: x and y are tiles of 16 pixels."""
    counts = world((1, 4, 6), (2, 9, 9))
    screens = ScreenMap()
    screens.add((1,), 0, 0, noise(1, 144, 160))
    (joined,) = joined_maps(counts, screens, pixels=16, names=NAMES)
    assert joined.rooms[1].box == ((320 + 9) * 16, 9 * 16, (320 + 10) * 16, 10 * 16)
    assert joined.rooms[0].box == (160 * 16, 0, 160 * 16 + 160, 144)


@pytest.mark.parametrize("shrink", [1, 2, 3, 4, 6, 8])
@pytest.mark.parametrize("most", [16, 4, 1])
def test_screens_in_fewer_pixels_make_about_the_same_picture(shrink: int, most: int) -> None:
    rows, columns = np.mgrid[:288, :320] * 0.7
    screen = np.stack((rows, columns, 255 - rows), axis=-1).astype(np.uint8)
    screens = ScreenMap()
    screens.add((7,), 16, 32, screen)
    counts = PlaceCounts(("map", "x", "y"), {})
    small = ScreenMap.read(io.BytesIO(screens.to_bytes()), most_blocks=most)
    pictures = []
    for each in (screens, small):
        (joined,) = joined_maps(counts, each, pixels=1, names={})
        assert (joined.left, joined.top, joined.right, joined.bottom) == (16, 32, 336, 320)
        pictures.append(drawn(joined, shrink).astype(int))
    assert pictures[0].shape == pictures[1].shape
    assert abs(pictures[0] - pictures[1]).max() <= (0 if small.shrink == 1 else 3)
