"""Builds an agent that comes with game_rl: `make pretrained AGENT=duel`.

It trains the agent, or continues its run until that is complete, and packs the best policy into
`pretrained/NAME`. The whole way in a minute, with an agent that has learned nothing:

    python pretrained/build.py duel total_timesteps=4_096 --run runs/tried --folder runs/agent

With --card, it trains nothing: it packs the agent of the folder again, if that still plays as its
results say.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from game_rl.files.run_dir import RunDir
from game_rl.hub.agent_folder import pack_agent
from game_rl.hub.agent_package import RESULTS, PretrainedAddress
from game_rl.playback.trained_run import TrainedRun, open_trained_run

MOST_BYTES = 3_000_000
_EPISODES = 100


@dataclass(frozen=True)
class Recipe:
    """How an agent is made.

    Attributes:
        config: the config and the keys to override, as words of `game-rl train`.
        explored_timesteps: for which its game is explored before, into `explored/NAME`; 0: not.
        deterministic: whether it takes its most probable actions.
    """

    config: tuple[str, ...]
    explored_timesteps: int = 0
    deterministic: bool = True


RECIPES = {
    "duel": Recipe(("duel_variables_ppo", "seed=100")),
    "beacon": Recipe(("beacon_explored_variables_ppo",), explored_timesteps=2_200_000),
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
        if recipe.explored_timesteps and not explored.exists():
            timesteps = str(recipe.explored_timesteps)
            _game_rl("explore", name, "--output", str(explored), "--timesteps", timesteps)
        _game_rl("train", *recipe.config, f"run_dir={json.dumps(str(run))}", *overrides)
    best = replace(open_trained_run(run, "best"), deterministic=recipe.deterministic)
    _pack(name, best, folder)


def build_card(name: str, folder: Path) -> None:
    """Pack the agent of a folder again: its evaluation, clips, recorded episodes and card."""
    results = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
    _pack(name, open_trained_run(folder, "best"), folder, rewards=results["rewards"])


def _pack(
    name: str, agent: TrainedRun, folder: Path, *, rewards: Sequence[float] | None = None
) -> None:
    """Pack an agent into a folder, whose files it replaces.

    Args:
        rewards: which its episodes must have; None: any.
    """
    n_episodes = _EPISODES if rewards is None else len(rewards)
    with TemporaryDirectory(prefix="game_rl_build_") as temporary:
        packed = Path(temporary) / name
        packed.mkdir()
        pack_agent(agent, PretrainedAddress(name), packed, episodes=n_episodes, tell=print)
        results = json.loads((packed / RESULTS).read_text(encoding="utf-8"))
        if rewards is not None and results["rewards"] != rewards:
            sys.exit(f"{name} has other rewards than {folder / RESULTS} says; it stays as it is")
        n_bytes = sum(file.stat().st_size for file in packed.rglob("*") if file.is_file())
        if n_bytes > MOST_BYTES:
            sys.exit(f"{name} has {n_bytes:,} bytes, and {MOST_BYTES:,} are the most")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(packed, folder)
    print(f"{folder}: {n_bytes:,} bytes, of at most {MOST_BYTES:,}")


def check_version() -> None:
    """Exit if the version on the card would name other source than that which packs the agent.

    An editable installation has the version of the commit from which it was installed.
    """
    found = version("game_rl")
    commit = found.partition("+g")[2].partition(".")[0] or f"v{found}"
    command = ["git", "diff", "--quiet", commit, "--", "game_rl"]
    if subprocess.run(command, cwd=Path(__file__).parents[1], check=False).returncode:
        sys.exit(
            f"the source has changed since game_rl {found} was installed: commit the changes, and "
            "install that with pip install --no-deps --editable ."
        )


def _game_rl(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "game_rl", *words], check=True)


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", choices=sorted(RECIPES))
    parser.add_argument("--run", type=Path, help="folder of the run (default: runs/NAME_agent)")
    parser.add_argument("--folder", type=Path, help="of the agent (default: pretrained/NAME)")
    parser.add_argument("--card", action="store_true", help="train nothing, pack it again")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="of the config")
    given = parser.parse_intermixed_args(words)
    run = given.run or Path("runs") / f"{given.name}_agent"
    folder = given.folder or Path(__file__).with_name(given.name)
    if given.folder is None:
        check_version()
    if given.card:
        build_card(given.name, folder)
    else:
        build(given.name, run, folder, given.overrides)


if __name__ == "__main__":
    main(sys.argv[1:])
