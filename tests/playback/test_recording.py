"""Clips of a run on the game in colour."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageSequence

from game_rl.cli.main import main
from game_rl.config.loader import load_config
from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_env
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from tests.tiny_run import TINY, train_once

_CHANGES = (
    "game=seasons", "env.start_states=[spring]", "env.observation.colour=rgb",
    "total_timesteps=32", "env.max_episode_timesteps=20", "recording={episodes: 1, max_s: 0.7}",
)  # fmt: skip


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    folder = tmp_path_factory.mktemp("colour")
    config = folder / "run.yaml"
    config.write_text(TINY.format(run_dir=folder / "run"), encoding="utf-8")
    return train_once(load_config(config, _CHANGES))


def shown(path: Path) -> list[NDArray[np.uint8]]:
    """What the GIF shows every seven hundredths of a second, which are four frames."""
    with Image.open(path) as gif:
        return [
            np.asarray(frame.convert("RGB"))[::2, ::2]
            for frame in ImageSequence.Iterator(gif)
            for _ in range(frame.info["duration"] // 70)
        ]


@pytest.mark.slow
def test_a_clip_has_the_colours_of_the_screen_and_each_whole_episode(
    run_dir: RunDir, tmp_path: Path
) -> None:
    output = tmp_path / "clip.gif"
    assert main(["record", str(run_dir.root), "--episodes", "2", "--output", str(output)]) == 0
    pictures = shown(output)
    held = 15  # pictures of a second, for which the end of an episode stands
    assert len(pictures) == 2 * (20 * 2 + held)
    env = make_env(EnvConfig(start_states=("spring",)), load_game("seasons"))
    env.reset(seed=0)
    sky = env.render()[0, 0]
    env.close()
    assert len(set(sky.tolist())) > 1
    assert all((picture[0, 0] == sky).all() for picture in pictures)


def test_the_clip_that_a_training_makes_ends_after_its_seconds(
    run_dir: RunDir, tmp_path: Path
) -> None:
    whole = tmp_path / "clip.gif"
    assert main(["record", str(run_dir.root), "--output", str(whole)]) == 0
    short = shown(run_dir.videos / "best.gif")
    assert len(short) == 10  # of 14.93 a second
    np.testing.assert_array_equal(short, shown(whole)[:10])
