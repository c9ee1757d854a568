"""Whether the default config learns: whole runs with several seeds, and a random player.

    python -m benchmarks.learning [--config configs/duel_ppo.yaml] [--seeds 0 1 2] [--set KEY=VALUE]

Each run is a process of its own, started by `game-rl train`. The table shows how often the best
policy wins in the final evaluation, whose fights were not used to select the policy.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.envs.make_env import make_env
from game_rl.games.definition import load_game
from game_rl.system.machine import effective_cpus

_RANDOM_EPISODES = 200


@dataclass(frozen=True)
class Run:
    seed: int
    success_rate: float
    mean_reward: float
    minutes: float
    timesteps_to_best: int


def random_success_rate(config: RunConfig) -> float:
    """Return the share of episodes won by a player that draws a random action each timestep."""
    rng = np.random.default_rng(0)
    game = load_game(config.game)
    successes = 0
    with closing(make_env(config.env, game)) as env:
        for episode in range(_RANDOM_EPISODES):
            env.reset(seed=episode)
            over = False
            while not over:
                action = int(rng.integers(len(game.definition.actions)))
                _, _, terminated, truncated, info = env.step(action)
                over = terminated or truncated
            successes += info["is_success"]
    return successes / _RANDOM_EPISODES


def train(config: Path, seed: int, overrides: list[str], run_dir: Path) -> Run:
    words = [f"seed={seed}", f"run_dir={run_dir}", *overrides]
    settings = [word for value in words for word in ("--set", value)]
    command = [sys.executable, "-m", "game_rl", "train", "--config", str(config), *settings]
    started = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    minutes = (time.monotonic() - started) / 60
    evaluate = [sys.executable, "-m", "game_rl", "evaluate", str(run_dir), "--json"]
    found = json.loads(subprocess.run(evaluate, check=True, capture_output=True).stdout)
    with (run_dir / "eval.csv").open(encoding="utf-8") as file:
        best = [row for row in csv.DictReader(file) if row["is_best"] == "True"][-1]
    return Run(seed, found["success_rate"], found["mean_reward"], minutes, int(best["timesteps"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", type=Path, default=Path("configs/duel_ppo.yaml"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    config = load_config(arguments.config, arguments.set)
    print(f"{config.total_timesteps:,} timesteps, {effective_cpus()} CPUs")
    print(f"random player: {random_success_rate(config):.1%} of {_RANDOM_EPISODES} episodes won")
    print("seed   won   reward  best at  minutes")
    runs = []
    for seed in arguments.seeds:
        with tempfile.TemporaryDirectory() as folder:
            run = train(arguments.config, seed, arguments.set, Path(folder) / "run")
        runs.append(run)
        print(
            f"{run.seed:>4} {run.success_rate:>5.0%} {run.mean_reward:>8.2f} "
            f"{run.timesteps_to_best:>8,} {run.minutes:>8.1f}",
            flush=True,
        )
    won = [run.success_rate for run in runs]
    minutes = [run.minutes for run in runs]
    print(
        f"won {min(won):.0%} to {max(won):.0%}, median {np.median(won):.0%}; "
        f"{np.median(minutes):.1f} minutes (median)"
    )


if __name__ == "__main__":
    main()
