"""What the map of visited places adds to a forecast, beside the sizes of a map that is written."""

from dataclasses import replace
from functools import cache
from itertools import islice

import numpy as np
import pytest

from game_rl.places.place_counts import PICTURES_OF_A_RUN, PlacesFeature, SavedPlaces
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
    pictures = PICTURES_OF_A_RUN * 22_000
    assert logs[1] - logs[0] == pytest.approx(0.75 * len(saved) + pictures, rel=0.2)
