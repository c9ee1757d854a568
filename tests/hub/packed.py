"""A tiny run of a game of one's own, packed once for all tests of a process."""

import functools
import shutil
import tempfile
from pathlib import Path

import yaml

from game_rl.config.loader import load_config
from game_rl.files.run_dir import RunDir
from game_rl.hub.agent_folder import pack_agent
from game_rl.hub.agent_package import AgentPackage, parse_address
from game_rl.playback.trained_run import open_trained_run
from tests.tiny_run import TINY, TINY_GAME, train_once

ADDRESS = parse_address("hf:ada/ppo-tiny")
EPISODES = 5
ROM = Path(__file__).parents[2] / "game_rl" / "games" / "duel" / "duel.gb"


def own_game(folder: Path, *, is_foreign: bool = False) -> Path:
    """A copy of the tiny game with its ROM beside it.

    Args:
        is_foreign: whether the ROM differs from the one that comes with game_rl, in an unused byte.
    """
    folder.mkdir(parents=True)
    content = bytearray(ROM.read_bytes())
    content[-1] ^= is_foreign
    (folder / "mine.gb").write_bytes(content)
    shutil.copy(ROM.with_suffix(".sym"), folder / "mine.sym")
    text = TINY_GAME.read_text(encoding="utf-8")
    text = text.replace("../../game_rl/games/duel/duel", "mine")
    (folder / "game.yaml").write_text(text, encoding="utf-8")
    return folder / "game.yaml"


def train_tiny(folder: Path, game: str, *overrides: str) -> RunDir:
    config = folder / "tiny.yaml"
    config.write_text(TINY.format(run_dir=folder / "run"), encoding="utf-8")
    values = ["total_timesteps=96", f"game={game}", *overrides]
    return train_once(load_config(config, values))


@functools.cache
def packed_tiny() -> tuple[Path, AgentPackage]:
    """The folder, which no test may change, and the manifest."""
    folder = Path(tempfile.mkdtemp(prefix="packed_tiny_"))
    run = train_tiny(folder, str(own_game(folder / "mine")))
    agent = folder / "agent"
    agent.mkdir()
    return agent, pack_agent(open_trained_run(run.root, "best"), ADDRESS, agent, episodes=EPISODES)


def yaml_of(path: Path) -> object:
    return yaml.safe_load(path.read_text(encoding="utf-8"))
