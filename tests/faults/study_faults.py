"""A table of what a study loses when its controller, its runs or both are killed.

    python -m tests.faults.study_faults [--kills 20] [--only controller member both signal]

Each trial is a real study with two seeds and two arms, a run and a population whose best member
trains on. It is registered, and `game-rl train` carries it out in processes of its own. It is
killed at random moments, resumed each time, and compared with an undisturbed study: every result
except its place and seconds, and the weights and optimiser of each kept checkpoint. Processes that
are killed are the controller, its children (a run, or the process of a population) and their
children (members). No process may be left running, and no traceback may appear.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.population_faults import HANG_S, KINDS, Controller, hashes_of, trials
from tests.faults.ray_nodes import RayNodes

_RUN = """\
game: duel
total_timesteps: 1000
run_dir: x
device: cpu
env: {n_envs: 2, n_workers: 1, frame_skip: 8, max_episode_timesteps: 25, start_states: [level_1]}
algorithm: {n_steps: 16, batch_size: 16, n_epochs: 1}
evaluation:
  {every_timesteps: 64, episodes: 2, final_episodes: 2, n_envs: 2, baselines: false}
checkpoints: {every_timesteps: 32, keep_last: 2}
"""
_STUDY = """\
kind: study
question: Does the best of two that trains on bring more reward than one?
results: PLACE/results
run_dir: PLACE/runs
arms:
  one: {config: run.yaml}
  best:
    kind: population
    member: {config: run.yaml}
    members: 2
    generations: 1
    timesteps_per_generation: 64
    fitness: {episodes: 2, metric: mean_reward}
    train_on: {timesteps: 32}
    champion: {candidates: 1, episodes: 2}
seeds: [3, 4]
budget: {timesteps: 160}
test: {episodes: 4}
metric: mean_reward
primary: {arm: best, against: one}
decision: {alpha: 0.6}
"""
_OF_NO_RESULT = ("registration", "host", "seconds", "sha256")  # the hash covers the others


def write_study(folder: Path, place: Path) -> Path:
    """Write and register a study whose folders are in `place`, and its arms' config."""
    (folder / "run.yaml").write_text(_RUN, encoding="utf-8")
    file = place.with_suffix(".yaml")
    file.write_text(_STUDY.replace("PLACE", str(place)), encoding="utf-8")
    register = [sys.executable, "-m", "game_rl", "study", "register", str(file)]
    subprocess.run(register, check=True, capture_output=True)
    return file


def results_of(place: Path) -> dict[str, dict[str, object]]:
    """Return the parts of the results that must be the same."""
    found = {}
    for path in sorted(place.glob("results/results/*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        found[path.name] = {k: v for k, v in document.items() if k not in _OF_NO_RESULT}
    return found


class StudyBench:
    """Studies that are killed, and an undisturbed one for comparison."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.nodes: RayNodes | None = None
        self.whole = self.new("whole")
        began = time.monotonic()
        controller = Controller(self.whole)
        if controller.process.wait(HANG_S) != 0:
            raise SystemExit(f"the undisturbed study failed:\n{controller.output}")
        self.seconds = time.monotonic() - began

    def new(self, name: str, *, on_ray: bool = False) -> Path:
        assert not on_ray  # studies run in local processes
        place = self.folder / name
        write_study(self.folder, place)
        return place

    def is_complete(self, place: Path) -> bool:
        return len(results_of(place)) == len(results_of(self.whole))

    def differences(self, place: Path) -> list[str]:
        """Return the differences of a finished study from the undisturbed one."""
        here, there = results_of(place), results_of(self.whole)
        found = [f"another {name}" for name in there if here.get(name) != there[name]]
        if hashes_of(place) != hashes_of(self.whole):
            found.append("other weights")
        left = [str(p) for p in place.rglob(".*") if p.name.endswith((".tmp", ".trash", ".fork"))]
        return found + [f"left behind: {path}" for path in left]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.study_faults", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--kills", type=int, default=20, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.environ.setdefault("PYTHONPATH", str(Path.cwd()))
    with tempfile.TemporaryDirectory(prefix="game_rl_study_faults_") as folder:
        bench = StudyBench(Path(folder), arguments.seed)
        share = -(-arguments.kills // len(arguments.only))
        tallies = {kind: trials(bench, kind, share) for kind in arguments.only}
    print(f"one undisturbed study takes {bench.seconds:.0f} s")
    print(f"{'killed':<12} {'kills':>6} {'studies':>8} {'bad':>4}")
    for kind, tally in tallies.items():
        print(f"{kind:<12} {tally.trials:>6} {tally.runs:>8} {len(tally.problems):>4}")
    for problem in [p for tally in tallies.values() for p in tally.problems][:20]:
        print(f"\nBAD {problem}")
    return 1 if any(tally.problems for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
