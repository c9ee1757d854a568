"""Runs whose rewards remember the episode, broken off within episodes and resumed."""

import json
from pathlib import Path

import pytest

from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.files.run_dir import RunDir
from game_rl.training.train import resume, train
from tests.tiny_run import TINY_GAME, command
from tests.training.test_resuming import assert_same_run, console, told, write_config

REMEMBERING = {
    "seen": {"variables": ["player_x", "player_height"], "on": "first_visit", "weight": 0.1},
    "stays": {"variables": ["player_x"], "on": "visits", "at_least": 4, "weight": -0.05},
    "far": {"variable": "player_x", "on": "new_maximum", "weight": 0.02,
            "unless": {"variable": "player_height", "changes": True, "for": 2}},
}  # fmt: skip


def write_game(folder: Path, **rewards: object) -> None:
    text = TINY_GAME.read_text(encoding="utf-8")
    text = text.replace("../../", f"{TINY_GAME.parent.parent.parent}/")
    terms = "".join(f"  {name}: {json.dumps(entry)}\n" for name, entry in rewards.items())
    (folder / "game.yaml").write_text(
        text.replace("\nrewards:\n", f"\nrewards:\n{terms}"), encoding="utf-8"
    )


@pytest.fixture
def config(tmp_path: Path) -> RunConfig:
    write_game(tmp_path, **REMEMBERING)
    return load_config(write_config(tmp_path, "run", f"game={tmp_path / 'game.yaml'}"))


@pytest.mark.slow
def test_bests_and_places_go_on_within_an_episode(config: RunConfig, tmp_path: Path) -> None:
    train(config, command(console()))
    part = config.model_copy(update={"run_dir": tmp_path / "part"})
    train(part, command(console(), until=96))
    resume(part.run_dir, command(console()))
    assert_same_run(part.run_dir, config.run_dir)


@pytest.mark.slow
def test_a_game_file_that_gets_such_terms_during_a_run_is_played_on(
    config: RunConfig, tmp_path: Path
) -> None:
    write_game(tmp_path)
    train(config, command(console(), until=96))
    write_game(tmp_path, **REMEMBERING)
    output = console()
    resume(config.run_dir, command(output))
    assert "rewards.seen.on: None -> first_visit" in told(output)
    assert RunDir(config.run_dir).checkpoint(192).exists()
