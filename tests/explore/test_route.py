"""Routes: which way a name stands for, and that it is played as it was found."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from PIL.GifImagePlugin import GifImageFile

from game_rl.cli.main import main
from game_rl.envs.make_env import make_game_env
from game_rl.errors import ReplayError, UsageError
from game_rl.explore.exploration import Exploration
from game_rl.explore.route import find_route
from game_rl.playback.route_replay import record_route
from tests.explore.explored_beacon import BEACON, SETTINGS


def test_the_first_way_to_a_term_earns_it_with_its_last_action(beacon: Exploration) -> None:
    route = find_route(beacon.archive, "key")
    env = make_game_env(SETTINGS.env, BEACON)
    try:
        env.reset(seed=SETTINGS.seed, options={"start_state": "shore"})
        sums = []
        for action in route.actions:
            env.step(action)
            sums.append(env.reward_terms.get("key", 0.0))
    finally:
        env.close()
    assert sums[-1] > 0
    assert not any(sums[:-1])


def test_best_and_numbers_name_the_ways_of_cells(beacon: Exploration) -> None:
    archive = beacon.archive
    best = max(archive.cells, key=lambda record: record.score)
    assert find_route(archive, "best").cell is best
    assert find_route(archive, "7").actions == archive.cells[7].way.whole()


@pytest.mark.parametrize(
    ("word", "says"),
    [("kez", "did you mean key"), ("99999", "there is no cell 99,999"), ("-1", "no route -1")],
)
def test_an_unknown_route_is_refused(beacon: Exploration, word: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        find_route(beacon.archive, word)


def test_record_films_a_route_and_writes_it_for_check_game(
    beacon: Exploration, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(beacon.folder.root)
    clip = tmp_path / "key.gif"
    words = ["record", root, "--route", "key", "--overlay", "--output", str(clip), "--json"]
    assert main(words) == 0
    timesteps = json.loads(capsys.readouterr().out)["timesteps"]
    with Image.open(clip) as film:
        assert isinstance(film, GifImageFile)
        assert film.size == (320, 2 * (144 + 26))
        shown_s = 0
        for number in range(film.n_frames):
            film.seek(number)
            shown_s += film.info["duration"] / 1000
    assert shown_s == pytest.approx(1 + timesteps * 8 / 59.7, rel=0.15)  # hundredths of a second
    episode = tmp_path / "key.json"
    assert main(["record", root, "--route", "key", "--output", str(episode)]) == 0
    found = json.loads(episode.read_text(encoding="utf-8"))
    assert len(found["actions"]) == timesteps
    assert (found["start_state"], found["frame_skip"]) == ("shore", 8)


def test_a_route_that_no_longer_leads_where_it_led_is_not_filmed(
    beacon: Exploration, tmp_path: Path
) -> None:
    route = find_route(beacon.archive, "key")
    others = replace(route, actions=route.actions[:-20])
    clip = tmp_path / "x.gif"
    with pytest.raises(ReplayError, match="it does not earn key"):
        record_route(others, BEACON, SETTINGS, clip)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--episodes", "3"], "--episodes is for the episodes of a run"),
        (["--grid"], "--grid is for the episodes of a run"),
        (["--overlay", "value"], "no policy plays a route"),
        (["--best"], "is for the episodes of a run"),
    ],
)
def test_options_of_runs_are_refused(
    beacon: Exploration, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert main(["record", str(beacon.folder.root), *words]) == 2
    assert says in capsys.readouterr().err


def test_a_route_of_no_exploration_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", str(tmp_path), "--route", "best"]) == 2
    assert "is not the folder of an exploration" in capsys.readouterr().err
