"""What a pool of states costs a training: CPU time of a timestep, its workers' included.

    python -m benchmarks.pool [--config configs/duel_ppo.yaml] [--turns 12] [--variable player_x]

Two trainings run in turns, each in a process of its own: one without a pool, and one with a pool
of 200 states that grows at new maxima of a variable and draws them by success. A ratio is the
median of those of the turns, with the smallest and the largest.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from statistics import median

from benchmarks.way import ROOT

_UPDATES = 2  # of a turn

_TRAINING = """
import json, sys
from pathlib import Path
import psutil
from benchmarks.trainings.ours import settled_session
from game_rl.config.loader import load_config
from game_rl.files.run_dir import RunDir

def cpu_s():
    training = psutil.Process()
    times = [process.cpu_times() for process in (training, *training.children(recursive=True))]
    return sum(each.user + each.system for each in times)

file, folder, updates, *overrides = sys.argv[1:]
config = load_config(Path(file), overrides)
with settled_session(config, RunDir(Path(folder))) as session:
    print("settled", flush=True)
    for _ in sys.stdin:
        first, before = session.num_timesteps, cpu_s()
        session.learn_until(first + int(updates) * config.rollout_timesteps)
        print(json.dumps((cpu_s() - before) / (session.num_timesteps - first)), flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", default="configs/duel_ppo.yaml")
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--variable", default="player_x", help="of save_on")
    arguments = parser.parse_args()
    pool = {"save_on": {"new_maximum": arguments.variable}, "choose": "success", "goal": "reward"}
    contenders = {"without a pool": "null", "with a pool": json.dumps(pool)}
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    with ExitStack() as stack:
        trainings = {}
        for name, section in contenders.items():
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            words = [str(ROOT / arguments.config), folder, str(_UPDATES), "device=cpu"]
            training = subprocess.Popen(
                [sys.executable, "-c", _TRAINING, *words, f"env.pool={section}"],
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
            )
            trainings[name] = stack.enter_context(training)
        for name, training in trainings.items():
            if training.stdout.readline() != "settled\n":
                raise SystemExit(f"the training {name} has failed")
        for _ in range(arguments.turns):
            for name, training in trainings.items():
                training.stdin.write("\n")
                training.stdin.flush()
                taken[name].append(1e6 * json.loads(training.stdout.readline()))
        for training in trainings.values():
            training.stdin.close()
    print(f"CPU time of a timestep of {arguments.config}")
    first = taken["without a pool"]
    for name, found in taken.items():
        ratios = [one / other for one, other in zip(found, first, strict=True)]
        spread = f"x {median(ratios):.4f} ({min(ratios):.4f} - {max(ratios):.4f})"
        print(f"{name:<18}{median(found):9.2f} µs   {spread}")


if __name__ == "__main__":
    main()
