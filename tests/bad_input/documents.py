"""The valid documents that tests damage, and functions that load them like a user's command."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from game_rl.config.loader import load_config
from game_rl.game_check.recorded_episode import read_recorded_episode
from game_rl.games.definition import load_game
from game_rl.games.symbol_files import read_symbols
from tests.emulator.fake_emulator import FakeEmulator
from tests.games.example import SYMBOLS, VALID_GAME, write_game

VALID_RUN = """\
# A run with every section.
game: duel
seed: 3
total_timesteps: 400_000
run_dir: runs/duel_ppo
device: auto
env:
  n_envs: 8
  n_workers: 2
  frame_skip: 8
  frame_stack: 4
  max_episode_timesteps: 1_000
  start_states: [level_1, level_2]
  max_idle_frames: 30
  observation: {size: half, colour: grey}
  worker_timeout_s: 60.0
algorithm:
  name: ppo
  n_steps: 128
  batch_size: 256
  n_epochs: 4
  learning_rate: {start: 5.0e-4, end: 0}
  clip_range: 0.2
  gamma: 0.95
  ent_coef: 0.01
  precision: auto
evaluation: {every_timesteps: 50_000, episodes: 20}
checkpoints: {every_timesteps: 100_000, keep_last: 3}
"""
VALID_EPISODE = """\
{"start_state": "beginning", "seed": 7,
 "actions": ["idle", "left", "jump_right", "left", "idle"]}
"""


@dataclass(frozen=True)
class Document:
    """A kind of file that a user writes.

    Attributes:
        text: a valid document.
        file_name: name of the file in a folder.
        load: function that loads the file in a folder, and adds other files that it needs.
    """

    kind: str
    text: str
    file_name: str
    load: Callable[[Path], object]

    def load_changed(self, content: bytes, folder: Path) -> None:
        """Write the content and load it; raise the error that the user would see."""
        (folder / self.file_name).write_bytes(content)
        self.load(folder)


def _load_game(folder: Path) -> None:
    changed = (folder / "game.yaml").read_bytes()
    path = write_game(folder)
    path.write_bytes(changed)
    game = load_game(str(path))
    emulator = FakeEmulator()
    for variable in game.variables:
        if variable.bank is None:
            variable.read(emulator)


def _load_run(folder: Path) -> None:
    load_config(folder / "run.yaml")


def _load_episode(folder: Path) -> None:
    read_recorded_episode(folder / "episode.json", load_game(str(write_game(folder))))


def _load_symbols(folder: Path) -> None:
    read_symbols(folder / "game.sym")


DOCUMENTS = (
    Document("game.yaml", VALID_GAME, "game.yaml", _load_game),
    Document("run config", VALID_RUN, "run.yaml", _load_run),
    Document("recorded episode", VALID_EPISODE, "episode.json", _load_episode),
    Document("symbol file", SYMBOLS, "game.sym", _load_symbols),
)
