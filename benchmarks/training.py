"""Timesteps per second of whole trainings: a plain SB3 script, rl_zoo3's settings, and ours.

    python -m benchmarks.training [--quick] [--repeats 5] [--peers plain zoo ...] [--device cpu]
    python -m benchmarks.training --peers ours-bf16 --n-envs 8 16 32 64

All peers do the same work on the bundled game: same ROM, frame skip, picture, stack, rollout,
batches and epochs (see `benchmarks/trainings`). Each run is a process of its own, and each round
runs all peers once, so a slow minute of the machine affects all of them. A run's figure is the
median over its updates except the first ones. It does not include start-up, evaluation and
checkpoints. Ratios are relative to the first row, round by round. With several --n-envs, the size
of the rollout stays the same.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from statistics import median

from benchmarks.trainings.work import FRAME_SKIP, FRAME_STACK, Work, set_words
from game_rl.system.machine import cpu_has_bf16, effective_cpus

_WARM_UP = 2  # updates, for caches, allocator and torch's first calls
_OURS = ["-c", "from benchmarks.trainings.ours import main; main()"]
_WITHOUT_PICTURES = (
    "env.observation.screen=false", "env.observation.parts=[status]",
    "algorithm.network.hidden=[128, 128]",
)  # fmt: skip
PEERS = {
    "plain": ["-m", "benchmarks.trainings.plain_sb3"],
    "plain-1-thread": ["-m", "benchmarks.trainings.plain_sb3", "--torch-threads", "1"],
    "zoo": ["-m", "benchmarks.trainings.rl_zoo"],
    "zoo-subproc": ["-m", "benchmarks.trainings.rl_zoo", "--vec-env", "subproc"],
    "ours-float32": [*_OURS, *set_words(["algorithm.precision=float32"])],
    "ours-bf16": [*_OURS, *set_words(["algorithm.precision=bf16"])],
    "ours-variables": [*_OURS, *set_words(_WITHOUT_PICTURES)],  # other work: nothing is drawn
}
_HEADLINE = ("plain", "zoo", "ours-float32", "ours-bf16")
_HEADER = (
    f"{'':<14} {'envs':>4} | {'timesteps/s':>11} {'(min - max)':>17} | "
    f"{'ratio':>6} {'(min - max)':>15} | {'collect':>9} {'update':>9}  a timestep"
)


@dataclass(frozen=True)
class Run:
    """Medians over the updates of one training, in microseconds for each timestep."""

    collect_us: float
    update_us: float
    total_us: float

    @property
    def timesteps_per_s(self) -> float:
        return 1e6 / self.total_us


@dataclass
class Row:
    """The runs of one peer, one for each round."""

    peer: str
    work: Work
    runs: list[Run] = field(default_factory=list)

    @property
    def speeds(self) -> list[float]:
        return [run.timesteps_per_s for run in self.runs]

    def ratios(self, reference: "Row") -> list[float]:
        """Return the speeds divided by the reference's, round by round."""
        return [a / b for a, b in zip(self.speeds, reference.speeds, strict=True)]


def measure(peer: str, work: Work, extra: Sequence[str]) -> Run:
    """Measure one training in a process of its own."""
    command = [sys.executable, *PEERS[peer], *work.arguments(), *extra]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if result.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{result.stdout}\n{result.stderr}")
    return run_of(json.loads(result.stdout.splitlines()[-1]), work.rollout_timesteps)


def run_of(seconds: dict[str, list[float]], rollout_timesteps: int) -> Run:
    """Make a Run from the clock's report, without the first updates (at most half of them)."""
    collect, update = seconds["collect_s"], seconds["update_s"]
    first = min(_WARM_UP, len(collect) // 2)
    pairs = list(zip(collect, update, strict=True))[first:]
    unit = 1e6 / rollout_timesteps
    return Run(
        collect_us=median(c for c, _ in pairs) * unit,
        update_us=median(u for _, u in pairs) * unit,
        total_us=median(c + u for c, u in pairs) * unit,
    )


def rows_of(peers: Sequence[str], n_envs: Sequence[int], work: Work) -> list[Row]:
    rollout = work.rollout_timesteps
    return [
        Row(peer, replace(work, n_envs=n, n_steps=rollout // n)) for peer in peers for n in n_envs
    ]


def line(row: Row, reference: Row) -> str:
    speeds, ratios = row.speeds, row.ratios(reference)
    spread = f"({min(speeds):,.0f} - {max(speeds):,.0f})"
    ratio_spread = f"({min(ratios):.2f} - {max(ratios):.2f})"
    return (
        f"{row.peer:<14} {row.work.n_envs:>4} | {median(speeds):>11,.0f} {spread:>17} | "
        f"{median(ratios):>6.2f} {ratio_spread:>15} | "
        f"{median(run.collect_us for run in row.runs):>6,.0f} µs "
        f"{median(run.update_us for run in row.runs):>6,.0f} µs"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one round of few updates")
    parser.add_argument("--repeats", type=int, default=5, help="rounds")
    parser.add_argument("--updates", type=int, default=10, help="in a run, with the warm-up")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=_HEADLINE)
    parser.add_argument("--n-envs", type=int, nargs="+", default=[8])
    parser.add_argument("--batch-size", type=int, default=Work.batch_size, help="SB3's is 64")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or auto")
    parser.add_argument("--size", choices=["half", "full"], default="half")
    parser.add_argument("--colour", choices=["grey", "rgb"], default="grey")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE, for ours")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.repeats, arguments.updates = 1, 4
    return arguments


def _print_head(work: Work) -> None:
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "stable-baselines3"))
    print(
        f"{work.rollout_timesteps:,} timesteps a rollout, batches of {work.batch_size}, "
        f"{work.n_epochs} epochs, {work.size} {work.colour} x {FRAME_STACK}, "
        f"frame skip {FRAME_SKIP}, NatureCNN on {work.device}; "
        f"{effective_cpus()} CPUs, bf16 {'fast' if cpu_has_bf16() else 'slow'}; {packages}"
    )


def main() -> None:
    options = _arguments()
    work = Work(
        batch_size=options.batch_size,
        device=options.device,
        size=options.size,
        colour=options.colour,
        updates=options.updates,
    )
    rows = rows_of(options.peers, options.n_envs, work)
    _print_head(work)
    for turn in range(options.repeats):
        for row in rows[turn % len(rows) :] + rows[: turn % len(rows)]:
            extra = set_words(options.set) if row.peer.startswith("ours") else []
            row.runs.append(measure(row.peer, row.work, extra))
            load = os.getloadavg()[0]
            print(
                f"round {turn + 1}: {row.peer} with {row.work.n_envs} envs, "
                f"{row.speeds[-1]:,.0f} timesteps/s (load {load:.1f})",
                file=sys.stderr,
                flush=True,
            )
    print(_HEADER)
    for row in rows:
        print(line(row, rows[0]))


if __name__ == "__main__":
    main()
