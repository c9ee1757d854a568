"""Memory and speed of PPO with an LSTM: sb3-contrib's RecurrentPPO and ours, in turns.

    python -m benchmarks.recurrent [--only usual large] [--peers sb3-contrib ours-bf16] [--quick]

All peers play the bundled game with the same ROM, frame skip, picture, rollout, batches, epochs and
LSTM, and see one screen at a time. Speed is that of `benchmarks.training`, and memory that of
`benchmarks.memory`: the peak PSS of the whole process tree, of ours that of the complete
`game-rl train`, in a training of its own that makes one update of one epoch. "ours-small" computes
in bfloat16 with the smallest `micro_batch_size`, one sequence, which gives the same gradient.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from statistics import median

from benchmarks.memory import measure, our_command
from benchmarks.training import Run, run_of
from benchmarks.trainings.work import Work, set_words
from game_rl.system.machine import effective_cpus

_SIZE = 256
_SEQUENCE = 64
_OURS = [sys.executable, "-c", "from benchmarks.trainings.ours import main; main()"]
_CONTRIB = [sys.executable, "-m", "benchmarks.trainings.recurrent_sb3"]
WORKS = {
    "usual": Work(n_envs=8, n_steps=128, batch_size=256, n_epochs=4),
    "large": Work(n_envs=2, n_steps=8_192, batch_size=2_048, n_epochs=4, size="full"),
}
PEERS = ("sb3-contrib", "ours-float32", "ours-bf16", "ours-small")
_HEADER = (
    f"{'':<7} {'':<12} | {'peak PSS':>9} {'theirs / it':>11} | {'timesteps/s':>11} "
    f"{'(min - max)':>15} {'it / theirs':>11} | {'collect':>9} {'update':>9}  a timestep"
)


def overrides(peer: str) -> list[str]:
    memory = f"{{kind: lstm, size: {_SIZE}, sequence: {_SEQUENCE}}}"
    small = [f"algorithm.micro_batch_size={_SEQUENCE}"] if peer == "ours-small" else []
    precision = "float32" if peer == "ours-float32" else "bf16"
    return [
        "env.frame_stack=1",
        f"algorithm.memory={memory}",
        f"algorithm.precision={precision}",
        *small,
    ]


def speed_command(peer: str, work: Work) -> list[str]:
    if peer == PEERS[0]:
        return [*_CONTRIB, "--lstm-size", str(_SIZE), *work.arguments()]
    return [*_OURS, *work.arguments(), *set_words(overrides(peer))]


def memory_command(peer: str, work: Work, run_dir: Path) -> list[str]:
    once = replace(work, n_epochs=1, updates=1)
    if peer == PEERS[0]:
        return speed_command(peer, once)
    return our_command(once, overrides(peer), run_dir)


def measured_speed(peer: str, work: Work) -> Run:
    result = subprocess.run(
        speed_command(peer, work), capture_output=True, encoding="utf-8", check=False
    )
    if result.returncode:
        raise SystemExit(f"{peer} failed:\n{result.stdout}\n{result.stderr}")
    return run_of(json.loads(result.stdout.splitlines()[-1]), work.rollout_timesteps)


def peak_bytes(peer: str, work: Work) -> int:
    with tempfile.TemporaryDirectory() as folder:
        return measure(memory_command(peer, work, Path(folder) / "run")).peak_bytes


def line(name: str, peer: str, peaks: dict[str, int], runs: dict[str, list[Run]]) -> str:
    theirs = PEERS[0]
    memory = f"{name:<7} {peer:<12} | {peaks[peer] / 1e6:>6,.0f} MB"
    if not runs[peer]:
        return f"{memory} {peaks.get(theirs, 0) / peaks[peer]:>11.1f} |"
    own = [run.timesteps_per_s for run in runs[peer]]
    ratios = {"memory": "", "speed": ""}
    if peer != theirs and theirs in runs:
        pairs = zip(runs[peer], runs[theirs], strict=True)
        speed = median(a.timesteps_per_s / b.timesteps_per_s for a, b in pairs)
        ratios = {"memory": f"{peaks[theirs] / peaks[peer]:.1f}", "speed": f"{speed:.2f}"}
    spread = f"({min(own):,.0f} - {max(own):,.0f})"
    return (
        f"{memory} {ratios['memory']:>11} | "
        f"{median(own):>11,.0f} {spread:>15} {ratios['speed']:>11} | "
        f"{median(run.collect_us for run in runs[peer]):>6,.0f} µs "
        f"{median(run.update_us for run in runs[peer]):>6,.0f} µs"
    )


def compare(name: str, work: Work, peers: Sequence[str], repeats: int) -> None:
    peaks = {peer: peak_bytes(peer, work) for peer in peers}
    runs: dict[str, list[Run]] = {peer: [] for peer in peers}
    for _ in range(repeats):
        for peer in peers:
            runs[peer].append(measured_speed(peer, work))
    for peer in peers:
        print(line(name, peer, peaks, runs), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("--repeats", type=int, default=3, help="rounds of the speed; 0: none")
    parser.add_argument("--updates", type=int, default=5, help="in a run, with the warm-up")
    parser.add_argument("--quick", action="store_true", help="one round of few updates")
    options = parser.parse_args()
    if options.quick:
        options.repeats = 1
        options.updates = 3
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "sb3-contrib"))
    print(f"LSTM of {_SIZE}, sequences of {_SEQUENCE}; {effective_cpus()} CPUs; {packages}")
    print(_HEADER, flush=True)
    for name in options.only:
        work = replace(WORKS[name], updates=options.updates)
        compare(name, work, options.peers, options.repeats)


if __name__ == "__main__":
    main()
