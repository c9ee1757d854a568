"""CPU time and memory of trainings with this code and with another commit's, in turns.

    python -m benchmarks.commits COMMIT [--pairs 7] [--only ppo dqn pqn]

Each training is a process of its own: a bundled config, shortened, with one evaluation at its end;
DQN also writes a Lake. In each pair both commits train the same, and the order changes from pair to
pair. CPU time is that of the training and of all its children, from the operating system. Memory is
the sum of the proportional set sizes of the whole tree, sampled four times a second. The table has
the median ratio of this code to the commit's, with the smallest and the largest.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from benchmarks.way import ROOT, code_of

_SAMPLE_S = 0.25
_WORDS = {
    "ppo": ("duel_ppo.yaml", "16384", "stop_when=null"),
    "dqn": (
        "duel_dqn.yaml",
        "10000",
        "lake={}",
        "algorithm.learning_starts=2000",
        "algorithm.replay.capacity=20000",
    ),
    "pqn": ("duel_pqn.yaml", "24576"),
}


@dataclass(frozen=True)
class Taken:
    """CPU seconds and the peak of the memory in bytes of one training."""

    cpu_s: float
    peak_bytes: int


def train(code: Path, name: str) -> Taken:
    """Train with the code at `code`, and return what that took."""
    config, total, *more = _WORDS[name]
    with tempfile.TemporaryDirectory() as folder:
        settings = (
            f"run_dir={folder}/run",
            f"total_timesteps={total}",
            "device=cpu",
            f"evaluation.every_timesteps={total}",
            "evaluation.episodes=4",
            "recording.episodes=0",
            *more,
        )
        command = [sys.executable, "train.py", "--config", f"configs/{config}"]
        command += [word for setting in settings for word in ("--set", setting)]
        environment = os.environ | {"PYTHONPATH": str(code)}
        with Path(folder, "output").open("wb") as output:
            process = subprocess.Popen(
                command, cwd=code, env=environment, stdout=output, stderr=subprocess.STDOUT
            )
            peak_bytes, usage = _watched(process)
        if process.returncode:
            sys.exit(Path(folder, "output").read_text(encoding="utf-8"))
    return Taken(usage, peak_bytes)


def _watched(process: "subprocess.Popen[bytes]") -> tuple[int, float]:
    """Wait for a process; return its tree's peak of memory, and its CPU seconds with children's."""
    peak, is_over = [0], threading.Event()

    def sample() -> None:
        while not is_over.wait(_SAMPLE_S):
            peak[0] = max(peak[0], _tree_bytes(process.pid))

    sampler = threading.Thread(target=sample)
    sampler.start()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    is_over.set()
    sampler.join()
    return peak[0], usage.ru_utime + usage.ru_stime


def _tree_bytes(pid: int) -> int:
    total = 0
    with suppress(psutil.Error):  # the training has just ended
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):  # a child has
                total += process.memory_full_info().pss
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--only", nargs="+", choices=list(_WORDS), default=list(_WORDS))
    arguments = parser.parse_args()
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    with code_of(arguments.commit) as before:
        for pair in range(arguments.pairs):
            for name in arguments.only:
                places = [ROOT, before] if pair % 2 else [before, ROOT]
                taken = {place: train(place, name) for place in places}
                now, then = taken[ROOT], taken[before]
                ratios[name, "CPU"].append(now.cpu_s / then.cpu_s)
                ratios[name, "memory"].append(now.peak_bytes / then.peak_bytes)
                print(f"pair {pair + 1}, {name}: {now} here, {then} there", flush=True)
    print(f"\nthis code / {arguments.commit}, {arguments.pairs} pairs: median (min - max)")
    for (name, what), found in ratios.items():
        print(f"{name:<4} {what:<7} {median(found):.3f} ({min(found):.3f} - {max(found):.3f})")


if __name__ == "__main__":
    main()
