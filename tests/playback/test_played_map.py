"""The maps of a run: joined from its logged episodes, each of which is played again once."""

from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageSequence

from game_rl.checkpoints.named import open_run
from game_rl.checkpoints.run_game import open_game
from game_rl.cli.main import main
from game_rl.envs.make_env import make_game_env
from game_rl.episodes.logged_episodes import (
    LoggedEpisodes,
    read_episodes_of,
    read_logged_episodes,
)
from game_rl.games.variables import as_tuple
from game_rl.places.place_counts import PlaceCounts, Visits, timesteps_of
from game_rl.places.places_picture import read_place_counts
from game_rl.places.screen_map import read_screen_map
from game_rl.playback import played_map
from game_rl.playback.played_map import (
    PlaceTimes,
    likely_there,
    spread_over_run,
    update_screen_map,
)
from game_rl.training.train import train
from tests.tiny_run import MakeConfig, command
from tests.training.forks import KINDS, quiet


@pytest.fixture
def root(make_config: MakeConfig) -> Path:
    """A run of beacon that has played some short episodes."""
    config = make_config(
        "run",
        "game=beacon",
        *KINDS["ppo"],
        "env.start_states=[shore, caves]",
        "env.max_episode_timesteps=12",
        "env.observation.parts=[]",
    )
    train(config, command(quiet(), until=64))
    return config.run_dir


def test_the_rooms_of_a_map_are_the_screens_of_the_game(root: Path, tmp_path: Path) -> None:
    output = tmp_path / "map.png"
    assert main(["places", str(root), "--output", str(output), "--side", "700"]) == 0
    run_dir, config = open_run(root)
    game = open_game(run_dir, config)
    joined = read_screen_map(run_dir.place_screens)
    env = make_game_env(config.env, game, draws=True)
    for start_state in ("shore", "caves"):
        env.reset(seed=1, options={"start_state": start_state})
        env.step(0)
        picture = joined.picture((int(as_tuple(env.read_variables()["room"])[0]),))
        assert (picture.x, picture.y, picture.seen.shape) == (0, 16, (128, 160))
        assert picture.seen.all()
        same = (picture.pixels == env.render()[16:]).all(axis=-1)
        assert same.mean() > 0.95  # all but the keeper and what walks about
    env.close()
    with Image.open(output) as drawn:
        assert max(drawn.size) <= 700 + 200


def test_what_was_played_again_is_not_played_again(root: Path) -> None:
    run_dir, config = open_run(root)
    game = open_game(run_dir, config)
    counts = read_place_counts(run_dir)
    told: list[tuple[int, int]] = []
    first = update_screen_map(run_dir, game, counts, progress=lambda *n: told.append(n))
    assert told
    assert told[-1][0] == told[-1][1]
    told.clear()
    again = update_screen_map(run_dir, game, counts, progress=lambda *n: told.append(n))
    assert not told
    assert again.to_bytes() == first.to_bytes() == run_dir.place_screens.read_bytes()
    run_dir.place_screens.write_bytes(b"damaged")
    again = update_screen_map(run_dir, game, counts, progress=lambda *_: None)
    assert again.to_bytes() == first.to_bytes()


def test_a_visited_room_without_a_screen_gets_one_from_an_episode_that_was_there(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(played_map, "spread_over_run", lambda episodes: episodes.at(np.array([0])))
    run_dir, config = open_run(root)
    counts = read_place_counts(run_dir)
    visited = {sheet.map_id for sheet in counts.sheets()}
    assert len(visited) > 1
    game = open_game(run_dir, config)
    joined = update_screen_map(run_dir, game, counts, progress=lambda *_: None)
    assert visited <= set(joined.maps())


def test_the_episode_during_which_most_unseen_places_were_found_comes_first(root: Path) -> None:
    run_dir, _ = open_run(root)
    episodes = read_logged_episodes(run_dir)
    assert episodes.first_timesteps().tolist() == [each.first_timestep for each in episodes]
    counts = PlaceCounts(("room", "x", "y"), {})
    rng = np.random.default_rng(0)
    for until in range(8, 65, 8):
        visits = np.column_stack((rng.integers(0, 2, 9), rng.integers(0, 90, (9, 2))))
        counts.add(Visits(visits, np.ones(9, np.int64)), until=until)
    times = PlaceTimes.of(counts)
    found = [
        int(timestep)
        for sheet in counts.sheets()
        if sheet.map_id == (1,)
        for timestep in timesteps_of(sheet.found[sheet.visits > 0])
    ]
    # up to the boundary at or after its end; the counts have one each 8 timesteps
    there = [
        sum(each.first_timestep * 127 / 128 <= n <= -(-each.timesteps // 8) * 8 for n in found)
        for each in episodes
    ]
    among = np.ones(len(episodes), np.bool_)
    while among.any():
        most = max(n for n, is_left in zip(there, among, strict=True) if is_left)
        index = likely_there(episodes, times, [(0,)], among)
        if not most:
            assert index is None
            break
        assert index is not None
        assert (there[index], among[index]) == (most, True)
        among[index] = False
    assert likely_there(episodes, times, [(0,), (1,)], among | True) is None


def test_a_map_without_screens_says_why(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = root / "map.png"
    assert main(["places", str(root), "--output", str(output), "--plain"]) == 0
    run_dir, _ = open_run(root)
    assert not run_dir.place_screens.exists()
    for segment in run_dir.episodes.iterdir():
        segment.unlink()
    assert main(["places", str(root), "--output", str(output)]) == 0
    assert "no logged episode can be played again" in capsys.readouterr().out


@pytest.mark.slow  # 200 maps are drawn, twice
def test_a_whole_training_takes_20_seconds_in_either_format(root: Path, tmp_path: Path) -> None:
    sizes = []
    for name in ("map.gif", "map.mp4"):
        output = tmp_path / name
        assert main(["places", str(root), "--output", str(output), "--side", "420"]) == 0
    with Image.open(tmp_path / "map.gif") as gif:
        sizes.append(gif.size)
        milliseconds = sum(frame.info["duration"] for frame in ImageSequence.Iterator(gif))
    with av.open(str(tmp_path / "map.mp4")) as container:
        frames = list(container.decode(video=0))
        sizes.append((frames[0].width, frames[0].height))
        rate = container.streams.video[0].average_rate
    assert milliseconds == pytest.approx(20_000)
    assert len(frames) / float(rate) == pytest.approx(20)
    assert sizes[0] == sizes[1]


@given(st.lists(st.integers(1, 900), max_size=60), st.integers(1, 3_000))
def test_episodes_are_spread_over_the_run(lengths: list[int], most: int) -> None:
    empty = read_episodes_of(Path("no such folder"))
    rows = np.zeros(len(lengths), empty.rows.dtype)
    rows["number"] = np.arange(len(lengths))
    rows["length"] = lengths
    chosen = spread_over_run(LoggedEpisodes(rows, (), (), (), {}), most).rows["number"].tolist()
    assert chosen == sorted(set(chosen))
    total = sum(lengths[number] for number in chosen)
    assert total <= most or len(chosen) == 1
    if sum(lengths) <= most:
        assert chosen == list(range(len(lengths)))
    elif lengths:
        assert len(lengths) - 1 in chosen
