"""What an exploration takes: limits that hold whatever is found, and what is refused."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.cli.main import main
from game_rl.explore.archive import Archive
from game_rl.explore.exploration import Exploration
from game_rl.explore.explore_forecast import ExploreForecast, Taken, forecast_of
from game_rl.explore.trip import Pace
from game_rl.places.screen_map import BLOCK_SIDE, MOST_BLOCKS
from game_rl.system.units import GIB, MIB
from tests.explore.explored_beacon import SETTINGS

NOW = Taken(180 * MIB, 1_000)


def forecast(
    *,
    most_bytes: int,
    timesteps: int,
    finds: float = 0.1,
    free: Taken | None = None,
    archive: Archive | None = None,
    has_map: bool = False,
) -> ExploreForecast:
    return forecast_of(
        SETTINGS.model_copy(update={"most_bytes": most_bytes}),
        archive or Archive(most_bytes),
        Pace(4_400, 10_000, finds),
        now=NOW,
        available=free or Taken(64 * GIB, 64 * GIB),
        n_processes=2,
        timesteps=timesteps,
        has_map=has_map,
    )


def test_of_a_long_exploration_states_fill_their_limit_and_the_file_three_times_that() -> None:
    most = forecast(most_bytes=GIB, timesteps=10**8).most
    cells = GIB // 4_400
    assert most.memory_bytes - NOW.memory_bytes - GIB == pytest.approx(cells * 3_100, rel=0.1)
    lines = 10**8 * 0.7 + 6.4 * 0.1**2 * 10 ** (8 * 0.86) * 180
    assert most.disk_bytes == pytest.approx(3 * GIB * 4 / 3 + 2 * lines, rel=0.01)


def test_what_beacon_took_is_what_is_expected() -> None:
    """With cells of 16 pixels, 65,244 finds of 12,913 cells; with cells of 2, 27,547 of 18,752."""
    coarse = forecast(most_bytes=2 * GIB, timesteps=2_308_586, finds=0.186875).expected
    assert coarse.disk_bytes == pytest.approx(402_530_713, rel=0.1)
    fine = forecast(most_bytes=2 * GIB, timesteps=200_377, finds=0.341875).expected
    assert fine.disk_bytes == pytest.approx(172_877_552, rel=0.1)
    states = fine.memory_bytes - NOW.memory_bytes - 18_752 * 3_100
    assert states == pytest.approx(85_151_536 + 16 * MIB, rel=0.1)


def test_what_was_explored_finds_less_in_as_many_timesteps_more() -> None:
    whole, half = (forecast(most_bytes=2 * GIB, timesteps=n).expected for n in (2_000_000, 10**6))
    archive = Archive(2 * GIB)
    archive.timesteps = 10**6
    rest = forecast(most_bytes=2 * GIB, timesteps=10**6, archive=archive).expected
    together = rest.disk_bytes + half.disk_bytes - NOW.disk_bytes
    assert together == pytest.approx(whole.disk_bytes, rel=0.001)
    assert rest.disk_bytes < half.disk_bytes


@given(
    timesteps=st.integers(1, 10**9),
    most_bytes=st.integers(10**6, 2**34),
    finds=st.floats(0, 1),
)
def test_what_is_expected_is_never_more_than_the_most(
    timesteps: int, most_bytes: int, finds: float
) -> None:
    found = forecast(most_bytes=most_bytes, timesteps=timesteps, finds=finds)
    assert NOW.memory_bytes <= found.expected.memory_bytes <= found.most.memory_bytes
    assert NOW.disk_bytes <= found.expected.disk_bytes <= found.most.disk_bytes


@pytest.mark.parametrize(
    ("free", "verdict"),
    [
        (Taken(64 * GIB, 64 * GIB), "fits"),
        (Taken(64 * GIB, 2 * GIB), "tight"),
        (Taken(GIB, 64 * GIB), "tight"),
        (Taken(64 * GIB, 100 * MIB), "does_not_fit"),
        (Taken(10 * MIB, 64 * GIB), "does_not_fit"),
    ],
)
def test_only_what_is_expected_must_have_room(free: Taken, verdict: str) -> None:
    found = forecast(most_bytes=2 * GIB, timesteps=3_000_000, free=free)
    assert found.verdict == verdict


def test_an_exploration_without_room_is_refused_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "x"
    words = ["explore", "beacon", "--output", str(folder), "--processes", "1"]
    assert main([*words, "--states", "1000TB", "--timesteps", str(10**16)]) == 3
    assert "lower --states" in capsys.readouterr().err
    assert main([*words, "--timesteps", "10", "--json"]) == 0  # the folder is as good as new
    assert json.loads(capsys.readouterr().out)["rounds"] == 1


def test_maps_that_are_joined_from_screens_are_counted() -> None:
    found = forecast(most_bytes=GIB, timesteps=10_000)
    with_map = forecast(most_bytes=GIB, timesteps=10_000, has_map=True)
    assert with_map.most.memory_bytes - found.most.memory_bytes == MOST_BLOCKS * 5 * BLOCK_SIDE**2
    assert 0 < with_map.expected.memory_bytes - found.expected.memory_bytes < 160 * MIB
    assert with_map.most.disk_bytes > found.most.disk_bytes


def test_the_file_of_maps_is_as_small_as_it_is(beacon: Exploration) -> None:
    found = forecast(most_bytes=GIB, timesteps=10_000)
    with_map = forecast(most_bytes=GIB, timesteps=10_000, has_map=True)
    forecast_bytes = with_map.expected.disk_bytes - found.expected.disk_bytes
    size = beacon.folder.place_screens.stat().st_size  # of few rooms
    assert size / 2 < forecast_bytes < 200_000
