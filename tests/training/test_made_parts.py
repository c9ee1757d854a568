"""Trainings with parts that a reward class makes and tiles by their ids, stopped and resumed."""

from pathlib import Path

import pytest

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.files.run_dir import RunDir
from game_rl.training.train import resume, train
from tests.tiny_run import TINY_GAME, MakeConfig, command
from tests.training.forks import FILES, KINDS, quiet

GAME = """
reward: far:Far
parts:
  gap: {own: {kind: vector, shape: [2]}, stack: true}
  step: {own: {kind: categories, shape: [1], of: 300}}
  signs: {own: {kind: vector, shape: [5], of: 4}}
  field: {own: {kind: grid, shape: [8, 10], of: 3}}
  tiles: {tiles: {area: {width: 20, height: 18}, follow_scroll: true, sprites: true, ids: true}}
"""
CLASS = """
import numpy as np


class Far:
    def reset(self, variables):
        self.n = 0

    def step(self, variables):
        self.n += 1
        return 0.001

    def parts(self, variables, screen):
        field = np.zeros((8, 10), np.int64)
        field[self.n % 8, variables["player_x"] % 10] = 2
        gap = variables["opponent_x"] - variables["player_x"]
        return {
            "gap": [gap / 50, float(screen.mean()) / 255],
            "step": [self.n],
            "signs": [gap % 4, 3, 2, 1, 0],
            "field": field,
        }
"""


@pytest.fixture
def game(tmp_path: Path) -> Path:
    folder = (TINY_GAME.parent / "../../game_rl/games/duel").resolve()
    text = TINY_GAME.read_text(encoding="utf-8").replace("../../game_rl/games/duel", str(folder))
    (tmp_path / "far.py").write_text(CLASS, encoding="utf-8")
    path = tmp_path / "game.yaml"
    path.write_text(text + GAME, encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ppo", "dqn-lake", "pqn"])
def test_a_run_that_was_stopped_and_resumed_is_the_run_that_was_not(
    make_config: MakeConfig, game: Path, kind: str
) -> None:
    seen = "{screen: false, parts: [gap, step, signs, field, tiles]}"
    keys = (f"game={game}", *KINDS[kind], "env.frame_stack=2", f"env.observation={seen}")
    runs = {}
    for name, until in (("whole", None), ("cut", 96)):
        config = make_config(name, *keys)
        train(config, command(quiet(), until=until))
        runs[name] = RunDir(config.run_dir)
    whole, cut = runs["whole"], runs["cut"]
    resume(cut.root, command(quiet()))
    for file in FILES:
        ours, theirs = (run.checkpoint(192) / file for run in (cut, whole))
        assert ours.exists() == theirs.exists()
        assert not ours.exists() or ours.read_bytes() == theirs.read_bytes()
    states = [Checkpoint(run.checkpoint(192)).play().envs for run in (cut, whole)]
    assert states[0] == states[1]
