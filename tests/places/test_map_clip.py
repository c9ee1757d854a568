"""The clip of a training's map, against the moments at which its places were found."""

from itertools import pairwise
from pathlib import Path

import numpy as np

from game_rl.places.joined_maps import joined_maps
from game_rl.places.map_clip import Walk, map_pictures
from game_rl.places.place_counts import MapPoint, PlaceCounts, Visits
from game_rl.places.place_flags import PlaceFlag
from game_rl.places.screen_map import ScreenMap
from game_rl.playback.clip import save_clip

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


def test_a_place_has_few_colours_while_it_fades() -> None:
    counts, screens = two_rooms()
    joined = joined_maps(counts, screens, pixels=1, names={})
    pictures = list(map_pictures(counts, joined, title="Tiny", side=40, n_pictures=100))
    row, column = 16 + 14 + 12 + 14 + 5, 16 + 10
    shown = [tuple(picture[row, column].tolist()) for picture in pictures[49:]]
    assert 2 <= len(set(shown)) <= 4
    changes = sum(one != other for one, other in pairwise(shown))
    assert changes == len(set(shown)) - 1  # it never takes a colour again
    brightness = [sum(colour) for colour in shown]
    assert brightness[-1] > brightness[0]  # the bright screen shows through


def test_a_milestone_is_faint_in_the_list_until_it_is_reached() -> None:
    counts, screens = two_rooms()
    joined = joined_maps(counts, screens, pixels=1, names={})
    flags = [PlaceFlag(1, None, 5, 5, "first", 30), PlaceFlag(2, None, 25, 5, "second", 80)]
    pictures = list(map_pictures(counts, joined, title="Tiny", side=40, flags=flags, n_pictures=10))
    height = pictures[0].shape[0]
    brightest = [
        [int(picture[height - 16 - 14 * n : height - 16 - 14 * (n - 1)].max()) for n in (2, 1)]
        for picture in pictures
    ]
    faint, bright = min(brightest[0]), max(brightest[-1])
    assert faint > 60  # of the background: 32
    assert bright > 2 * faint
    for number, lines in enumerate(brightest, 1):
        assert lines == [bright if 10 * number >= at else faint for at in (30, 80)]


def test_a_large_map_is_small_enough_to_be_shown_around(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    side = 200
    counts = PlaceCounts(NAMES, {0: (0, 0)})
    screens = ScreenMap()
    screens.add(
        (0,),
        0,
        0,
        rng.choice(np.array([0, 80, 160, 255], np.uint8), (side, side, 1)).repeat(3, axis=2),
    )
    for until in range(100, 5_001, 100):  # some 28,000 of 40,000 places
        places = np.column_stack((np.zeros(1_000, np.int64), rng.integers(0, side, (1_000, 2))))
        counts.add(Visits(*np.unique(places, axis=0, return_counts=True)), until=until)
    joined = joined_maps(counts, screens, pixels=1, names={})
    output = tmp_path / "map.gif"
    save_clip(map_pictures(counts, joined, title="Tiny", side=side), 0.1, output)
    assert 25_000 < counts.n_places < 32_000
    assert output.stat().st_size < 2_000_000
