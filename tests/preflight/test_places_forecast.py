"""What the map of visited places adds to a forecast, beside the sizes of a map that is written."""

from dataclasses import replace

import numpy as np
import pytest

from game_rl.places.place_counts import PlacesFeature, SavedPlaces
from game_rl.preflight.disk import predicted_checkpoint_bytes
from game_rl.preflight.footprint import estimate
from tests.places.test_place_counts import counted
from tests.preflight.conftest import FACTS, make_config

HAS_PLACES = replace(FACTS, has_places=True)


@pytest.mark.parametrize("timesteps", [400, 40_000, 400_000])
def test_the_file_of_a_walk_that_keeps_returning_has_about_the_size_that_is_counted(
    timesteps: int,
) -> None:
    new = min(timesteps // 4, 40_000)
    rng = np.random.default_rng(0)
    steps = zip(*(rng.integers(0, n, 2 * new).tolist() for n in (24, 160, 128)), strict=True)
    walk = [place for place in set(steps) if place[1] % 3 == 0 or place[2] % 2 == 0][:new]
    visits = [place for place in walk for _ in range(int(rng.geometric(0.25)))]
    counts = counted(visits, ("map", "x", "y"), every=10_000)
    written = counts.to_bytes()
    feature, run = PlacesFeature(), HAS_PLACES.planned(make_config())
    assert feature.file_bytes(run, timesteps) == pytest.approx(len(written), rel=0.6)
    saved = len(SavedPlaces(npz=written).model_dump_json())
    assert feature.checkpoint_bytes(run, timesteps) == pytest.approx(saved, rel=0.6)


@pytest.mark.parametrize("name", ["ppo", "dqn", "pqn"])
def test_a_place_is_a_part_of_memory_checkpoints_and_logs(name: str) -> None:
    config = make_config(algorithm={"name": name})
    without, with_places = estimate(config, FACTS), estimate(config, HAS_PLACES)
    parts = [
        {part.name: part.bytes for part in each.ram.phases[0].parts}
        for each in (without, with_places)
    ]
    assert "visited places" not in parts[0]
    assert 4_000_000 < parts[1]["visited places"] < 10_000_000
    checkpoints = [predicted_checkpoint_bytes(config, facts) for facts in (FACTS, HAS_PLACES)]
    assert 0 < checkpoints[1] - checkpoints[0] < 200_000
    logs = [
        next(part.bytes for part in each.disk.parts if part.name.startswith("curves"))
        for each in (without, with_places)
    ]
    assert 400_000 < logs[1] - logs[0] < 700_000
