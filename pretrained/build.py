"""Builds an agent that comes with game_rl: `make pretrained AGENT=duel`.

It trains the agent, unless the run is there, and packs its best policy into `pretrained/NAME`.
"""

import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from game_rl.hub.agent_folder import pack_agent
from game_rl.hub.agent_package import PretrainedAddress
from game_rl.playback.trained_run import open_trained_run

MOST_BYTES = 3_000_000
_EPISODES = 100


@dataclass(frozen=True)
class Recipe:
    """How an agent is made.

    Attributes:
        commands: words of `game-rl` that train it.
        run: its run directory.
        deterministic: whether it takes its most probable actions.
    """

    commands: tuple[tuple[str, ...], ...]
    run: str
    deterministic: bool = True


RECIPES = {
    "duel": Recipe((("train", "duel_variables_ppo", "seed=100"),), "runs/duel_variables_ppo"),
    "beacon": Recipe(
        (
            ("explore", "beacon", "--output", "explored/beacon", "--minutes", "6"),
            ("train", "beacon_explored_variables_ppo"),
        ),
        "runs/beacon_explored_variables_ppo",
    ),
}


def build(name: str, run: Path | None) -> None:
    """Train and pack an agent.

    Args:
        run: the folder of a run that is trained already; None: that of the recipe.
    """
    recipe = RECIPES[name]
    trained = run or Path(recipe.run)
    if not trained.exists():
        for words in recipe.commands:
            subprocess.run([sys.executable, "-m", "game_rl", *words], check=True)
    best = replace(open_trained_run(trained, "best"), deterministic=recipe.deterministic)
    folder = Path(__file__).with_name(name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    pack_agent(best, PretrainedAddress(name), folder, episodes=_EPISODES, tell=print)
    n_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder}: {n_bytes:,} bytes, of at most {MOST_BYTES:,}")


if __name__ == "__main__":
    build(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else None)
