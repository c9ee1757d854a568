"""The cost of a generation, compared with the same stretches run by hand.

    python -m benchmarks.generation [--members 4] [--timesteps 8192] [--at-once 2] [--turns 3]

Runs in turns one generation of duel_population, from its beginning to its record, and the same
stretches with `python -m game_rl.experiments.jobs`, equally many at once.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from types import MappingProxyType

from game_rl.config.loader import dump_config, load_config
from game_rl.experiments.jobs.job_files import StretchRequest, request_file, write_request
from game_rl.files.run_dir import RunDir
from game_rl.system.processes import share_environment

_CONFIG = Path(__file__).parents[1] / "configs" / "duel_population.yaml"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.generation", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--timesteps", type=int, default=8_192)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory(prefix="game_rl_generation_") as name:
        for turn in range(arguments.turns):
            folder = Path(name) / str(turn)
            generation_s = train_generation(
                folder, arguments.members, arguments.timesteps, arguments.at_once
            )
            by_hand_s = train_by_hand(folder, arguments.timesteps, arguments.at_once)
            ratios.append(generation_s / by_hand_s)
            print(
                f"turn {turn}: a generation {generation_s:.1f} s, by hand {by_hand_s:.1f} s",
                flush=True,
            )
    spread = f"{min(ratios):.2f} - {max(ratios):.2f}"
    print(f"a generation / by hand: {median(ratios):.2f} ({spread}; at most 1.1)")


def train_generation(folder: Path, members: int, timesteps: int, at_once: int) -> float:
    values = [
        f"run_dir={folder}",
        f"members={members}",
        f"control={members}",
        "generations=1",
        f"timesteps_per_generation={timesteps}",
        "champion={candidates: 1, episodes: 1}",
        f"executor.parallel={at_once}",
    ]
    options = [word for value in values for word in ("--set", value)]
    _run("game_rl", "train", "--config", _CONFIG, *options)
    events = map(json.loads, (folder / "events.jsonl").read_text(encoding="utf-8").splitlines())
    return next(float(e["seconds"]) for e in events if e["event"] == "generation_ended")


def train_by_hand(folder: Path, timesteps: int, at_once: int) -> float:
    """Train the members of that generation once more from their configs; return the seconds."""
    hand = folder / "by_hand"
    roots = []
    for member in sorted((folder / "members").iterdir()):
        roots.append(hand / member.name)
        roots[-1].mkdir(parents=True)
        config = load_config(RunDir(member).config, [f"run_dir={roots[-1]}"], is_saved=True)
        RunDir(roots[-1]).config.write_text(dump_config(config), encoding="utf-8")
    result = json.loads(
        next(iter(folder.glob("generations/*/00.json"))).read_text(encoding="utf-8")
    )
    seed = result["played"]["seed"]

    def train(root: Path) -> None:
        result = root.with_suffix(".json")
        request = StretchRequest(root=hand, run=root, until=timesteps, seed=seed, result=result)
        write_request(request_file(result), request)
        _run("game_rl.experiments.jobs", request_file(result), environment=share_environment(1))

    began = time.monotonic()
    with ThreadPoolExecutor(at_once) as hands:
        list(hands.map(train, roots))
    return time.monotonic() - began


def _run(*words: object, environment: Mapping[str, str] = MappingProxyType({})) -> None:
    subprocess.run(
        [sys.executable, "-m", *map(str, words)],
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )


if __name__ == "__main__":
    main()
