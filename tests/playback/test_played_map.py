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
from game_rl.episodes.logged_episodes import LoggedEpisodes, read_episodes_of
from game_rl.games.variables import as_tuple
from game_rl.places.screen_map import read_screen_map
from game_rl.playback.played_map import spread_over_run, update_screen_map
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
    told: list[tuple[int, int]] = []
    first = update_screen_map(run_dir, game, progress=lambda *n: told.append(n))
    assert told
    assert told[-1][0] == told[-1][1]
    told.clear()
    again = update_screen_map(run_dir, game, progress=lambda *n: told.append(n))
    assert not told
    assert again.to_bytes() == first.to_bytes() == run_dir.place_screens.read_bytes()
    run_dir.place_screens.write_bytes(b"damaged")
    assert update_screen_map(run_dir, game, progress=lambda *_: None).to_bytes() == first.to_bytes()


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
