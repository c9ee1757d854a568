"""The sheet and the best way's picture: which screens they show."""

import io
import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from game_rl.explore.exploration import Exploration
from game_rl.explore.exploration_view import ExplorationView
from game_rl.explore.explore_dir import ExploreDir
from game_rl.explore.explore_pictures import (
    exploration_map,
    furthest,
    png_of,
    shown_cells,
    way_moments,
)
from game_rl.explore.trip import Gain
from game_rl.game_check.sheets import Moment
from tests.explore.explored_beacon import BEACON, SETTINGS, explore_beacon
from tests.places.test_screen_map import traced_peak, write_rooms

_POINTS = st.lists(st.tuples(*3 * [st.integers(0, 3)]), min_size=1, max_size=12)


@given(points=_POINTS, data=st.data())
def test_each_point_is_the_one_that_is_furthest_from_those_before(
    points: list[tuple[int, ...]], data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, len(points)))
    chosen = furthest(np.array(points, np.int16), n)
    expected = [0]
    while len(expected) < n:
        distances = [
            min(sum(abs(a - b) for a, b in zip(p, points[e], strict=True)) for e in expected)
            for p in points
        ]
        expected.append(distances.index(max(distances)))
    assert chosen == expected


def test_of_cells_with_variables_the_sheet_shows_an_even_choice(beacon: Exploration) -> None:
    cells = beacon.archive.cells
    shown = shown_cells(cells, SETTINGS)
    held = [record for record in cells if record.state]
    gaps = {held.index(b) - held.index(a) for a, b in itertools.pairwise(shown)}
    assert len(shown) == 40
    assert max(gaps) - min(gaps) <= 1


@pytest.mark.parametrize("n", [1, 2, 39, 40, 41, 200])
def test_the_best_way_shows_its_first_reward_and_its_end(n: int) -> None:
    screen = np.zeros((144, 160, 3), np.uint8)
    gains = [Gain(number, ("key",), screen) for number in range(n)]
    labels = [moment.label for moment in way_moments(gains)]
    assert labels[0] == "0: key"
    assert labels[-1] == f"{n - 1}: key"
    assert len(labels) == len(set(labels)) == min(n, 40)


@pytest.mark.parametrize("n", [1, 4, 5, 40])
def test_a_sheet_says_where_each_screen_is_and_its_whole_label(n: int) -> None:
    rng = np.random.default_rng(n)
    screens = rng.integers(0, 256, (n, 144, 160, 3), np.uint8)
    labels = [f"{number}: {'a_long_term, ' * 3}“end”" for number in range(n)]
    png = png_of([Moment(label, screen) for label, screen in zip(labels, screens, strict=True)])
    with Image.open(io.BytesIO(png)) as picture:
        sheet = np.asarray(picture)
        found = json.loads(picture.info["screens"])
    assert [each["label"] for each in found] == labels
    for each, screen in zip(found, screens, strict=True):
        rows = slice(each["top"], each["top"] + each["height"])
        columns = slice(each["left"], each["left"] + each["width"])
        np.testing.assert_array_equal(sheet[rows, columns], screen)


def test_drawing_changes_nothing_in_the_archive(beacon: Exploration, tmp_path: Path) -> None:
    """One exploration is drawn after each round, the other one in the end."""
    explore_beacon(tmp_path / "x", rounds=1)
    explore_beacon(tmp_path / "x", rounds=2)
    assert ExploreDir(tmp_path / "x").archive.read_bytes() == beacon.folder.archive.read_bytes()
    with Image.open(beacon.folder.best_picture) as picture:
        assert picture.size[0] > 160
    shutil.rmtree(tmp_path / "x")


@pytest.mark.slow
def test_the_map_is_drawn_from_fewer_pixels_than_its_screens_have(
    beacon: Exploration, tmp_path: Path
) -> None:
    folder = ExploreDir(shutil.copytree(beacon.folder.root, tmp_path / "x"))
    size = write_rooms(folder.place_screens, 40)
    view = ExplorationView(folder, BEACON.definition.place, {})
    view.refresh()
    assert traced_peak(lambda: exploration_map(view, BEACON, title="")) < size
