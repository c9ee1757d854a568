"""A run that is watched is the run that is not."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.config.output_config import LiveConfig
from game_rl.config.schema import RunConfig
from game_rl.events import Event, Warned
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.live.live_file import LiveReader, LiveScreen
from game_rl.training.session import TrainingSession, training_process
from tests.examples import variants
from tests.tiny_run import TINY_GAME, MakeConfig

ALGORITHMS = {
    "ppo": "{n_steps: 16, batch_size: 16, n_epochs: 2, clip_range: 0.3, normalize_advantage: true}",
    "pqn": "{name: pqn, n_steps: 16, batch_size: 16}",
    "dqn": (
        "{name: dqn, replay: {capacity: 150}, learning_starts: 40, train_freq: 8, "
        "target_update_interval: 30}"
    ),
}
PARTS = """
parts:
  bodies:
    vector:
      - {variable: player_x, scale: 0.01}
      - {variable: opponent_x, scale: 0.01}
      - {variable: player_health, scale: 0.02}
  moves: {categories: player_state, of: 64}
"""
SEEN = {
    "a screen": "{}",
    "no screen": "{screen: false, parts: [bodies, moves]}",
}
MakeRun = Callable[..., RunConfig]


@pytest.fixture
def make_run(make_config: MakeConfig, tmp_path: Path) -> MakeRun:
    def make(name: str, algorithm: str, seen: str, *more: str) -> RunConfig:
        game = tmp_path / "with_parts" / "game.yaml"
        if not game.exists():
            game.parent.mkdir()
            text = TINY_GAME.read_text(encoding="utf-8")
            bundled = (TINY_GAME.parent / "../../game_rl/games/duel").resolve()
            text = text.replace("../../game_rl/games/duel", str(bundled))
            game.write_text(text + PARTS, encoding="utf-8")
        overrides = [
            f"game={game}",
            f"algorithm={ALGORITHMS[algorithm]}",
            "env={n_envs: 2, n_workers: 2, frame_skip: 8, max_episode_timesteps: 25}",
            f"env.observation={SEEN[seen]}",
            "live.fps=60",
            *more,
        ]
        if algorithm == "dqn":
            overrides.append("checkpoints.save_replay_buffer=true")
        return make_config(name, *overrides)

    return make


class Watcher(BaseCallback):
    """Watches as another process would, and asks the policy by SB3's own methods.

    Attributes:
        screens: what it has seen, by env and timestep.
        expected: values and action values of each vec step, by timestep.
    """

    def __init__(self, run_dir: RunDir) -> None:
        super().__init__()
        self.screens: dict[tuple[int, int], LiveScreen] = {}
        self.expected: dict[int, np.ndarray] = {}
        self.terms: dict[tuple[int, int], Mapping[str, float]] = {}
        self._run_dir = run_dir
        self._reader: LiveReader | None = None

    def _on_step(self) -> bool:
        self.expected[len(self.expected) + 1] = self._values()
        if self._reader is None:
            self._reader = LiveReader.open(self._run_dir)
        assert self._reader is not None
        assert self._reader.is_current
        self._reader.want()
        self.take()
        return True

    def take(self) -> None:
        assert self._reader is not None
        for screen in self._reader.read():
            self.screens[screen.env, screen.timestep] = screen

    def _values(self) -> np.ndarray:
        policy, observations = self.model.policy, self.model._last_obs
        tensors, _ = policy.obs_to_tensor(observations)
        with torch.no_grad():
            if hasattr(policy, "q_net"):
                q = policy.q_net(tensors)
                return torch.cat((q.max(dim=1, keepdim=True).values, q), dim=1).numpy()
            probabilities = policy.get_distribution(tensors).distribution.probs
            return torch.cat((policy.predict_values(tensors), probabilities), dim=1).numpy()


def trained(config: RunConfig, *, is_watched: bool) -> Watcher:
    run_dir = RunDir(config.run_dir)
    run_dir.root.mkdir()
    watcher = Watcher(run_dir)
    with (
        training_process(),
        TrainingSession(
            config, load_game(config.game), run_dir, more=[watcher] if is_watched else []
        ) as session,
    ):
        assert run_dir.live_frames.exists()
        session.learn_until(config.total_timesteps)
        if is_watched:
            watcher.take()
    assert not run_dir.live_frames.exists()
    return watcher


def checkpoints(config: RunConfig) -> dict[tuple[str, str], Any]:
    """What all checkpoints hold, but for what tells the time and the machine's free memory."""
    found: dict[tuple[str, str], Any] = {}
    for path in RunDir(config.run_dir).checkpoints_newest_first():
        files = json.loads((path / "manifest.json").read_text(encoding="utf-8"))["files"]
        for name in files.keys() - {"state.json"}:
            found[path.name, name] = files[name]["sha256"]
        play = json.loads((path / "play.json").read_text(encoding="utf-8"))
        del play["log"]
        for episode in play["episodes"]:
            del episode["seconds"]
        found[path.name, "play.json"] = play
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "seen"),
    variants(
        ("ppo", "no screen"),
        ("dqn", "no screen"),
        ("pqn", "a screen"),
        slow=[("ppo", "a screen"), ("dqn", "a screen"), ("pqn", "no screen")],
    ),
)
def test_watching_changes_nothing_and_shows_what_the_policy_expects(
    make_run: MakeRun, algorithm: str, seen: str
) -> None:
    alone, watched = (make_run(name, algorithm, seen) for name in ("alone", "watched"))
    trained(alone, is_watched=False)
    watcher = trained(watched, is_watched=True)
    assert checkpoints(watched) == checkpoints(alone)
    assert len(RunDir(alone.run_dir).checkpoints_newest_first()) == 3
    with_values = [screen for screen in watcher.screens.values() if screen.value is not None]
    assert len(watcher.screens) > 4
    assert with_values
    for screen in with_values:
        value, *of_actions = watcher.expected[screen.timestep][screen.env]
        assert screen.value == pytest.approx(value, abs=1e-5)
        assert screen.action_values == pytest.approx(of_actions, abs=1e-5)


def opened_once(config: RunConfig) -> tuple[bool, list[Event]]:
    """Open a session; return whether it can be watched, and its events."""
    run_dir, heard = RunDir(config.run_dir), list[Event]()
    with (
        training_process(),
        TrainingSession(
            config, load_game(config.game), run_dir, events=EventLog(None, [heard.append])
        ),
    ):
        reader = LiveReader.open(run_dir)
        if reader is not None:
            reader.close()
    return reader is not None, heard


def test_a_file_that_a_killed_session_left_is_replaced_or_removed(make_run: MakeRun) -> None:
    config = make_run("run", "ppo", "a screen")
    run_dir = RunDir(config.run_dir)
    run_dir.root.mkdir()
    run_dir.live_frames.write_bytes(b"of another session")
    assert opened_once(config) == (True, [])
    run_dir.live_frames.write_bytes(b"of another session")
    off = config.model_copy(update={"live": LiveConfig(fps=0)})
    assert opened_once(off) == (False, [])
    assert not run_dir.live_frames.exists()


def test_a_folder_that_refuses_the_file_is_a_warning(make_run: MakeRun) -> None:
    config = make_run("run", "ppo", "a screen")
    run_dir = RunDir(config.run_dir)
    run_dir.live_frames.mkdir(parents=True)
    can_watch, (warning,) = opened_once(config)
    assert not can_watch
    assert isinstance(warning, Warned)
    assert "cannot be watched" in warning.text
    assert str(run_dir.live_frames) in warning.text
