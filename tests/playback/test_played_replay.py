"""A clip of a recorded episode: it shows the pictures that the player saw."""

import json
from contextlib import closing
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence

from game_rl.cli.main import main
from game_rl.config.schema import EnvConfig, ObservationConfig
from game_rl.emulator.emulator import Button
from game_rl.envs.make_env import make_game_env
from game_rl.game_check.recorded_episode import LONGEST_EPISODE_TIMESTEPS
from game_rl.games.definition import load_game
from game_rl.play.play_session import PlaySession

_FRAME_SKIP = 4
_HELD: list[tuple[Button, ...]] = [(), ("right",), ("right", "a"), ("left",), ("b",)]
_SHOWN_AT_THE_END = 15  # pictures, a second


def played(path: Path) -> list[np.ndarray]:
    """Play duel for some seconds, write the episode, return the last picture of each timestep."""
    config = EnvConfig(
        max_episode_timesteps=LONGEST_EPISODE_TIMESTEPS,
        frame_skip=_FRAME_SKIP,
        observation=ObservationConfig(size="full"),
    )
    seen = []
    with closing(make_game_env(config, load_game("duel"), draws=True)) as env:
        session = PlaySession(env, frame_skip=_FRAME_SKIP)
        session.begin("level_1", seed=11)
        for buttons in _HELD:
            for _ in range(10):
                session.play(buttons)
                if session.frames % _FRAME_SKIP == 0:
                    seen.append(session.screen.copy())
        path.write_text(session.record(), encoding="utf-8")
    return seen


def shown_by(path: Path) -> list[np.ndarray]:
    """Return what a GIF of 14.9 pictures a second shows, at half of its size."""
    with Image.open(path) as gif:
        frames = [
            [np.asarray(frame.convert("RGB"))[::2, ::2]] * round(frame.info["duration"] / 70)
            for frame in ImageSequence.Iterator(gif)
        ]
    return list(chain.from_iterable(frames))


def test_the_clip_of_a_played_episode_shows_what_the_player_saw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "duel_1.json"
    seen = played(path)
    assert main(["record", str(path), "--game", "duel", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["file"] == str(tmp_path / "duel_1.gif")
    assert facts["timesteps"] == len(seen)
    assert facts["reward"] == json.loads(path.read_text(encoding="utf-8"))["reward"]
    assert (facts["ending"], facts["fault"]) == ("", "")
    shown = shown_by(tmp_path / "duel_1.gif")
    np.testing.assert_array_equal(shown, seen + [seen[-1]] * _SHOWN_AT_THE_END)


def test_a_play_that_earns_something_else_now_is_shown_with_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "duel_1.json"
    played(path)
    path.write_text(
        json.dumps({**json.loads(path.read_text(encoding="utf-8")), "reward": 99.0}),
        encoding="utf-8",
    )
    output = tmp_path / "clip.gif"
    words = ["record", str(path), "--game", "duel", "--output", str(output), "--overlay", "action"]
    assert main(words) == 0
    assert "and earned 99" in " ".join(capsys.readouterr().err.split())
    with Image.open(output) as gif:
        assert gif.height > 2 * 144


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "add --game"),
        (["--game", "dual"], "did you mean duel"),
        (["--game", "duel", "--episodes", "2"], "--episodes is for the episodes of a run"),
        (["--game", "duel", "--grid"], "--grid is for the episodes of a run"),
        (["--game", "duel", "--route", "best"], "--route is for explorations"),
        (["--game", "duel", "--overlay", "value"], "no policy plays a recorded episode"),
        (["--game", "duel", "--output", "x.json"], "must end in .gif or .mp4"),
        (["--game", "duel"], "no such file"),
    ],
)
def test_mistakes_are_named_before_anything_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert main(["record", str(tmp_path / "duel_1.json"), *words]) == 2
    assert says in " ".join(capsys.readouterr().err.split())
