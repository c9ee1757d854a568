"""An exploration of beacon that several tests look at, and none changes."""

import pytest

from game_rl.explore.exploration import Exploration
from tests.explore.explored_beacon import explore_beacon


@pytest.fixture(scope="session")
def beacon(tmp_path_factory: pytest.TempPathFactory) -> Exploration:
    """Three rounds, in the second of which a key is taken for the first time."""
    return explore_beacon(tmp_path_factory.mktemp("explored") / "beacon", rounds=3)
