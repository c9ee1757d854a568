"""What the map of visited places adds to a forecast, beside the sizes of a map that is written."""

import subprocess
import sys
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from game_rl.places.place_counts import (
    PICTURES_OF_A_RUN,
    PlaceCounts,
    PlacesFeature,
    SavedPlaces,
    Visits,
)
from game_rl.places.screen_map import BLOCK_SIDE, MOST_BLOCKS, ScreenMap
from game_rl.preflight.disk import predicted_checkpoint_bytes
from game_rl.preflight.footprint import estimate
from tests.places.test_place_counts import counted
from tests.preflight.conftest import FACTS, make_config

HAS_PLACES = replace(FACTS, has_places=True)


@cache
def walked(timesteps: int, n_places: int) -> bytes:
    """`places.npz` of a walk that finds so many places and keeps returning to them."""
    rng = np.random.default_rng(0)
    steps = zip(*(rng.integers(0, n, 2 * n_places).tolist() for n in (24, 160, 128)), strict=True)
    found = (place for place in dict.fromkeys(steps) if place[1] % 3 == 0 or place[2] % 2 == 0)
    walk = list(islice(found, n_places))
    visits = rng.choice(len(walk), timesteps - len(walk))
    order = rng.permutation([*range(len(walk)), *visits.tolist()])
    places = [walk[number] for number in order]
    return counted(places, ("map", "x", "y"), every=4_096, is_timed=True).to_bytes()


@pytest.mark.parametrize("timesteps", [400, 40_000, pytest.param(400_000, marks=pytest.mark.slow)])
def test_the_file_of_a_walk_that_keeps_returning_has_about_the_size_that_is_counted(
    timesteps: int,
) -> None:
    written = walked(timesteps, min(timesteps // 4, 100_000))
    feature, run = PlacesFeature(), HAS_PLACES.planned(make_config())
    assert feature.file_bytes(run, timesteps) == pytest.approx(len(written), rel=0.6)
    saved = len(SavedPlaces(npz=written).model_dump_json())
    assert feature.checkpoint_bytes(run, timesteps) == pytest.approx(saved, rel=0.6)


def sheet_bytes() -> int:
    """What the arrays of a map with one visited place take."""
    counts = counted([(0, 0, 0)], ("map", "x", "y"))
    (sheet,) = counts._sheets.values()
    return sum(array.nbytes for array in sheet)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ppo", "dqn", "pqn"])
def test_a_place_is_a_part_of_memory_checkpoints_and_logs(name: str) -> None:
    """Beacon's 24 rooms of 160 x 128 pixels lie on 480 to 720 sheets of 32 x 32."""
    config = make_config(algorithm={"name": name})
    without, with_places = estimate(config, FACTS), estimate(config, HAS_PLACES)
    parts = [
        {part.name: part.bytes for part in each.ram.phases[0].parts}
        for each in (without, with_places)
    ]
    assert "visited places" not in parts[0]
    tallies = parts[1]["visited places"] - 600 * sheet_bytes()
    assert 0 < tallies < 6_000_000
    checkpoints = [predicted_checkpoint_bytes(config, facts) for facts in (FACTS, HAS_PLACES)]
    saved = SavedPlaces(npz=walked(400_000, 100_000)).model_dump_json()
    assert checkpoints[1] - checkpoints[0] == pytest.approx(len(saved), rel=0.3)
    logs = [
        next(part.bytes for part in each.disk.parts if part.name.startswith("curves"))
        for each in (without, with_places)
    ]
    pictures = PICTURES_OF_A_RUN * 60_000
    screens = 24 * 4 * 1_400  # the 2 x 2 blocks of each room, compressed
    assert logs[1] - logs[0] == pytest.approx(0.75 * len(saved) + pictures + screens, rel=0.2)


@pytest.mark.parametrize("tensorboard", [True, False])
def test_drawing_counts_between_updates_of_a_run_with_tensorboard(tensorboard: bool) -> None:
    config = make_config(logging={"tensorboard": tensorboard})
    phases = [
        phase.name
        for phase in estimate(config, HAS_PLACES).ram.phases
        if "drawing the visited places" in {part.name for part in phase.parts}
    ]
    assert phases == (["collect"] if tensorboard else [])


DRAW = """
import resource, sys
from pathlib import Path
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat
from game_rl.events import MilestoneReached
from game_rl.files.run_dir import RunDir
from game_rl.places.place_counts import parse_place_counts
from game_rl.training.extensions import places_extension
from game_rl.training.extensions.places_extension import PlacesCallback

class Model:
    logger = Logger("", [TensorBoardOutputFormat(sys.argv[2])])

folder = Path(sys.argv[1])
counts = parse_place_counts((folder / "places.npz").read_bytes())
callback = PlacesCallback(counts, RunDir(folder), total_timesteps=1, title="", names={})
callback.model = Model()
callback.boundary_timesteps = 1
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
callback._draw()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("n_maps", [1, 64])
def test_drawing_from_the_largest_file_of_screens_takes_no_more_than_is_counted(
    tmp_path: Path, n_maps: int
) -> None:
    """The screens alone are 160 MiB."""
    random = np.random.default_rng(0)
    joined = ScreenMap()
    offsets: dict[int, tuple[int, int]] = {}
    noise = random.integers(0, 4, (8, BLOCK_SIDE, BLOCK_SIDE, 3), np.uint8) * 85
    width = round((MOST_BLOCKS / n_maps) ** 0.5)
    joined.pixels = 16
    counts = PlaceCounts(("map", "x", "y"), offsets)
    for number in range(n_maps):
        offsets[number] = (number % 8 * 8 * width, number // 8 * 8 * width)
        for block in range(MOST_BLOCKS // n_maps):
            x, y = block % width * BLOCK_SIDE, block // width * BLOCK_SIDE
            joined.add((number,), x, y, noise[block % 8])
        xy = random.integers(0, 8 * width, (40_000 // n_maps, 2))
        places = np.pad(xy, ((0, 0), (1, 0)), constant_values=number)
        counts.add(Visits(places, np.ones(len(places), np.int64)), until=number + 1)
    screens = joined.to_bytes()
    assert len(screens) > 30_000_000
    (tmp_path / "place_screens.npz").write_bytes(screens)
    (tmp_path / "places.npz").write_bytes(counts.to_bytes())
    words = [sys.executable, "-c", DRAW, str(tmp_path), str(tmp_path / "tensorboard")]
    taken = int(subprocess.run(words, check=True, capture_output=True).stdout) * 1_024
    run = HAS_PLACES.planned(make_config())
    (part,) = PlacesFeature().pause_memory(run)
    assert taken <= part.bytes
