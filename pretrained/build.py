"""Builds an agent that comes with game_rl: `make pretrained AGENT=duel`.

It trains the agent, or continues its run until that is complete, and packs the best policy into
`pretrained/NAME`. The whole way in a minute, with an agent that has learned nothing:

    python pretrained/build.py duel total_timesteps=4_096 --run runs/tried --folder runs/agent
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from game_rl.files.run_dir import RunDir
from game_rl.hub.agent_folder import pack_agent
from game_rl.hub.agent_package import PretrainedAddress
from game_rl.playback.trained_run import open_trained_run

MOST_BYTES = 3_000_000
_EPISODES = 100


@dataclass(frozen=True)
class Recipe:
    """How an agent is made.

    Attributes:
        config: the config and the keys to override, as words of `game-rl train`.
        explored_minutes: how long its game is explored before, into `explored/NAME`; 0: not.
        deterministic: whether it takes its most probable actions.
    """

    config: tuple[str, ...]
    explored_minutes: int = 0
    deterministic: bool = True


RECIPES = {
    "duel": Recipe(("duel_variables_ppo", "seed=100")),
    "beacon": Recipe(("beacon_explored_variables_ppo",), explored_minutes=6),
    "courier": Recipe(("courier_memory_ppo",)),
    "seasons": Recipe(
        (
            "seasons_ppo",
            "env.frame_stack=1",
            "env.observation={screen: false, parts: [status, tiles]}",
            "algorithm.network={features: 64, hidden: [64]}",
        )
    ),
}


def build(name: str, run: Path, folder: Path, overrides: Sequence[str] = ()) -> None:
    """Train and pack an agent.

    Args:
        run: the folder of the run; a run that is there is continued.
        folder: of the packed agent, which replaces what is there.
        overrides: further keys of the config.
    """
    recipe = RECIPES[name]
    if RunDir(run).has_checkpoints():
        _game_rl("train", "--resume", str(run))
    else:
        explored = Path("explored") / name
        if recipe.explored_minutes and not explored.exists():
            minutes = str(recipe.explored_minutes)
            _game_rl("explore", name, "--output", str(explored), "--minutes", minutes)
        _game_rl("train", *recipe.config, f"run_dir={json.dumps(str(run))}", *overrides)
    best = replace(open_trained_run(run, "best"), deterministic=recipe.deterministic)
    with TemporaryDirectory(prefix="game_rl_build_") as temporary:
        packed = Path(temporary) / name
        packed.mkdir()
        pack_agent(best, PretrainedAddress(name), packed, episodes=_EPISODES, tell=print)
        n_bytes = sum(file.stat().st_size for file in packed.rglob("*") if file.is_file())
        if n_bytes > MOST_BYTES:
            sys.exit(f"{name} has {n_bytes:,} bytes, and {MOST_BYTES:,} are the most")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(packed, folder)
    print(f"{folder}: {n_bytes:,} bytes, of at most {MOST_BYTES:,}")


def _game_rl(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "game_rl", *words], check=True)


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", choices=sorted(RECIPES))
    parser.add_argument("--run", type=Path, help="folder of the run (default: runs/NAME_agent)")
    parser.add_argument("--folder", type=Path, help="of the agent (default: pretrained/NAME)")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="of the config")
    given = parser.parse_intermixed_args(words)
    run = given.run or Path("runs") / f"{given.name}_agent"
    folder = given.folder or Path(__file__).with_name(given.name)
    build(given.name, run, folder, given.overrides)


if __name__ == "__main__":
    main(sys.argv[1:])
