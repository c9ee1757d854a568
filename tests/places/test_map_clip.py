"""The clip of a training's map, against the moments at which its places were found."""

import numpy as np

from game_rl.places.joined_maps import joined_maps
from game_rl.places.map_clip import Walk, map_pictures
from game_rl.places.place_counts import MapPoint, PlaceCounts, Visits
from game_rl.places.screen_map import ScreenMap

NAMES = ("map", "x", "y")
SIZE = (20, 10)
COLOURS = {0: 240, 1: 180}  # of the rooms' screens


def two_rooms() -> tuple[PlaceCounts, ScreenMap]:
    """Two rooms beside each other, of which the second was found halfway through the run."""
    counts = PlaceCounts(NAMES, {0: (0, 0), 1: (20, 0)})
    screens = ScreenMap()
    for room, until in ((0, 50), (1, 100)):
        places = np.array([[room, x, 5] for x in range(20)], np.int64)
        counts.add(Visits(places, np.ones(20, np.int64)), until=until)
        screens.add((room,), 0, 0, np.full((10, 20, 3), COLOURS[room], np.uint8))
    return counts, screens


def test_a_room_and_its_visits_appear_when_it_was_found() -> None:
    counts, screens = two_rooms()
    joined = joined_maps(counts, screens, pixels=1, names={})
    pictures = list(map_pictures(counts, joined, title="Tiny", side=40, n_pictures=4))
    assert len({picture.shape for picture in pictures}) == 1
    left, top = 16, 16 + 14 + 12 + 14
    for number, picture in enumerate(pictures, 1):
        for room in (0, 1):
            column = left + 20 * room + 10
            is_there = picture[top + 2, column].max() > 60  # above the visits: the screen alone
            assert is_there == (number >= (2, 4)[room])


def test_an_agent_walks_through_its_episode_once_it_has_ended() -> None:
    counts, screens = two_rooms()
    joined = joined_maps(counts, screens, pixels=1, names={})
    walk = Walk(50, [MapPoint(None, x, 2) for x in range(20)])
    without, with_walk = (
        list(map_pictures(counts, joined, title="Tiny", side=400, walks=walks, n_pictures=40))
        for walks in ((), (walk,))
    )
    pairs = zip(without, with_walk, strict=True)
    changed = [number for number, (one, other) in enumerate(pairs, 1) if (one != other).any()]
    assert changed == list(range(20, 28))
