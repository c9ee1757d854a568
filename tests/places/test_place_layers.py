"""Grids of visited places against a dict of places, and the picture of them."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.errors import UsageError
from game_rl.events import MilestoneReached
from game_rl.game_check.sheets import save_sheet
from game_rl.places.place_counts import PlaceCounts, Visits
from game_rl.places.place_flags import place_flags
from game_rl.places.place_layers import WORLD, PlaceLayer, layers, readable
from game_rl.places.places_picture import _UNSEEN, places_picture
from tests.places.test_place_counts import counted

NAMES = ("map", "x", "y")
OFFSETS = {0: (0, 0), 1: (10, -36)}
PLACE = st.tuples(st.integers(0, 3), st.integers(-50, 90), st.integers(-50, 90))


@settings(max_examples=60, deadline=None)
@given(st.lists(PLACE, min_size=1, max_size=40), st.booleans())
def test_a_cell_has_the_timesteps_of_its_places(
    places: list[tuple[int, int, int]], is_placed: bool
) -> None:
    offsets = OFFSETS if is_placed else {}
    counts = counted(list(places), NAMES)
    expected: dict[str, Counter[tuple[int, int]]] = {}
    for map_id, x, y in places:
        name = WORLD if map_id in offsets else f"map {map_id}"
        right, down = offsets.get(map_id, (0, 0))
        expected.setdefault(name, Counter())[x + right, y + down] += 1
    counts.offsets = offsets
    found = layers(counts)
    assert {layer.name for layer in found} == set(expected)
    for layer in found:
        cells = {
            (layer.x0 + int(column), layer.y0 + int(row)): int(layer.counts[row, column])
            for row, column in np.argwhere(layer.counts)
        }
        assert cells == expected[layer.name]
        assert layer.counts.shape == (
            max(y for _, y in cells) - layer.y0 + 1,
            max(x for x, _ in cells) - layer.x0 + 1,
        )
    for shown in (found, readable(found), [layer.coarser(3) for layer in found]):
        assert sum(int(layer.counts.sum()) for layer in shown) == len(places)
        for place in places:
            assert timesteps_at(place, shown, offsets) > 0


def timesteps_at(
    place: tuple[int, int, int], shown: list[PlaceLayer], offsets: dict[int, tuple[int, int]]
) -> int:
    """The timesteps in the cell of a place, found one by one."""
    map_id, x, y = place
    right, down = offsets.get(map_id, (0, 0))
    wanted = None if map_id in offsets else (map_id,)
    (layer,) = (layer for layer in shown if layer.map_id == wanted)
    row = (y + down - layer.y0) // layer.cell_side
    return int(layer.counts[row, (x + right - layer.x0) // layer.cell_side])


def test_maps_with_an_offset_are_one_world() -> None:
    counts = counted([(0, 1, 1), (1, 1, 1), (2, 1, 1)], NAMES)
    counts.offsets = OFFSETS
    assert [layer.name for layer in layers(counts)] == [WORLD, "map 2"]
    counts.offsets = {}
    assert [layer.name for layer in layers(counts)] == ["map 0", "map 1", "map 2"]


def test_a_map_of_any_extent_is_a_grid_of_some_thousand_cells() -> None:
    counts = counted([(0, 0), (10**9, 0), (10**9, 10**6)], ("x", "y"))
    (layer,) = layers(counts)
    assert max(layer.counts.shape) <= 2_048
    assert int(layer.counts.sum()) == 3
    assert layer.name == "x, y"


def walk(step: int) -> list[tuple[int, ...]]:
    """A walk to and fro through a room, a step of so many places in each timestep."""
    rows = range(0, 60 * step, step)
    return [(0, x, y) for y in rows[:20] for x in rows]


@pytest.mark.parametrize(("step", "side"), [(1, 1), (3, 2), (12, 8)])
def test_cells_are_as_large_as_it_takes_for_dots_to_be_lines(step: int, side: int) -> None:
    (layer,) = readable(layers(counted(walk(step), NAMES)))
    assert layer.cell_side == side


def test_few_places_are_shown_as_they_are() -> None:
    (layer,) = readable(layers(counted([(0, 5 * n, 0) for n in range(20)], NAMES)))
    assert layer.cell_side == 1


PICTURES = {
    "nothing": PlaceCounts(NAMES, {}),
    "one place": counted([(0, 5, 5)], NAMES),
    "a wide map": counted([(0, 0), (60_000, 0)], ("x", "y")),
    "a high map": counted([(0, 0), (0, 60_000)], ("x", "y")),
    "many maps": counted([(n, x, 0) for n in range(300) for x in range(n % 9 + 1)], NAMES),
}


@pytest.mark.parametrize("counts", PICTURES.values(), ids=PICTURES)
def test_the_picture_has_a_bounded_size(counts: PlaceCounts) -> None:
    picture = places_picture(counts, title="Tiny")
    assert 200 < picture.width < 1_300
    assert 60 < picture.height < 1_300


def test_a_place_is_the_lighter_the_more_often_it_was_visited() -> None:
    places = [(0, x, 0) for x, n in enumerate((1, 10, 100)) for _ in range(n)]
    picture = places_picture(counted(list(places), NAMES), title="Tiny")
    grey = np.asarray(picture.convert("L")).astype(int)
    row = grey[16 + 14 + 12 + 14 + 6]  # in the middle of the only row of cells
    cells = [int(row[16 + 12 * x + 6]) for x in range(3)]
    background = int(grey[0, 0])
    assert background < cells[0] < cells[1] < cells[2]


def visited_at(places: list[tuple[int, int, int]], times: list[int]) -> PlaceCounts:
    """Counts of one visit each, collected at these timesteps."""
    counts = PlaceCounts(NAMES, {})
    for place, until in zip(places, times, strict=True):
        counts.add(Visits(np.array([place], np.int64), np.array([1], np.int64)), until=until)
    return counts


def test_a_place_is_the_fainter_the_longer_ago_it_was_visited() -> None:
    counts = visited_at([(0, 0, 0), (0, 1, 0), (0, 2, 0)], [64, 512, 1024])
    picture = np.asarray(places_picture(counts, title="Tiny")).astype(int)
    row = picture[16 + 14 + 12 + 14 + 6]
    unseen = np.array(_UNSEEN)
    strength = [int(abs(row[16 + 12 * x + 6] - unseen).sum()) for x in range(3)]
    assert 0 < strength[0] < strength[1] < strength[2]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.integers(1, 13))
def test_a_layer_as_it_was_has_the_places_found_by_then(xs: list[int], moment: int) -> None:
    times = [64 * (number + 1) for number in range(len(xs))]
    (layer,) = layers(visited_at([(0, x, 0) for x in xs], times))
    then = layer.at(64 * moment)
    assert {layer.x0 + int(x) for _, x in np.argwhere(then.counts)} == set(xs[:moment])
    assert then.ages().max() <= 1
    coarse = layer.coarser(2)
    for x in range(coarse.counts.shape[1]):
        own = [t for each, t in zip(xs, times, strict=True) if (each - layer.x0) // 2 == x]
        assert coarse.counts[0, x] == len(own)
        if own:
            assert (coarse.found[0, x], coarse.last[0, x]) == (own[0], own[-1])
    whole = layer.at(64 * len(xs))
    np.testing.assert_array_equal(whole.counts, layer.counts)


def reached(place: tuple[int, ...] | None, timesteps: int) -> MilestoneReached:
    return MilestoneReached(
        timesteps=timesteps, kind="variable", name="keys", place=place, text="keys", hours=0
    )


def test_flags_stand_where_milestones_were_reached() -> None:
    events = [reached((1, 3, 4), 10), reached(None, 20), reached((2, 5, 6), 30), reached((1,), 40)]
    flags = place_flags(events, NAMES, OFFSETS)
    assert [flag[:4] for flag in flags] == [(1, None, 13, -32), (2, (2,), 5, 6)]
    counts = counted([(2, x, 6) for x in range(10)], NAMES)
    plain, flagged = (
        np.asarray(places_picture(counts, title="Tiny", flags=shown)) for shown in ((), flags[1:])
    )
    changed = np.argwhere((plain != flagged[: len(plain)]).any(axis=-1)[: 16 + 14 + 12 + 14 + 12])
    x = 16 + 5 * 12 + 6
    assert changed[:, 1].min() == x - 1  # the pole, with its shadow
    assert changed[:, 1].max() < x + 30


def test_a_picture_that_cannot_be_written_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    picture = places_picture(PICTURES["one place"], title="Tiny")
    with pytest.raises(UsageError, match="map of visited places"):
        save_sheet(picture, tmp_path / "file" / "x.png", "map of visited places")
