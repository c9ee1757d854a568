"""Timesteps per second of the vec env alone: SB3's, Gymnasium's and ours, with upper limits.

    python -m benchmarks.vec_env [--envs 8 32] [--games duel busy] [--repeats 5] [--seconds 2]

All play random actions on the same game at frame skip 4 and return stacks of four half-size grey
pictures.

* raw: the upper limit, `PyBoy.tick(4, True)` of as many emulators in one process per core, without
  envs. Loading the start state of an episode takes PyBoy as long as 20 timesteps. This is not part
  of the time of `raw`, but of that of all other rows.
* envs: our envs with pictures and rewards, in one independent process per core.
* lockstep: the same, but the processes wait for each other after every vec step in a busy loop. A
  vec env that costs nothing would reach this speed, if each env stays in one process.
* stored: our vec env in halves, with every vec step in the rollout buffer: a rollout without a
  network.

The time of a vec step beyond one of `lockstep` is the training process's part and the waking of
workers. The process's own CPU time is printed too, as a busy machine disturbs it less.

All contenders run from the beginning and measure in turns, so a slow moment of the machine affects
all of them. Ratios are taken within a round. `busy` is a game that never halts the processor. The
last lines show the memory of one of our workers.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import mean, median

from game_rl.system.machine import cpu_percent, effective_cpus

_CONTENDERS = ("raw", "raw+loads", "envs", "lockstep", "ours", "stored", "sb3", "gymnasium")
_OURS = ("ours", "stored")
_PROGRAM = "from benchmarks.vec_env_contenders import main; main()"
_IDLE_PERCENT = 5.0
_MB = 1e6
_HEADER = (
    f"{'':<10} {'timesteps/s':>11} {'(min - max)':>17} | "
    f"{'of raw':>7} {'(min - max)':>15} | {'x SB3':>6} {'(min - max)':>13}"
)


@dataclass
class Row:
    """The rounds of one contender."""

    name: str
    process: subprocess.Popen[str]
    worker_pss_mb: float
    worker_rss_mb: float
    speeds: list[float] = field(default_factory=list)
    own_us: list[float] = field(default_factory=list)
    """Microseconds of CPU for a vec step in the process that the workers answer."""

    def measure(self, seconds: float) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        speed, own_us = map(float, self.process.stdout.readline().split())
        self.speeds.append(speed)
        self.own_us.append(own_us)

    def ratios(self, other: "Row") -> list[float]:
        return [a / b for a, b in zip(self.speeds, other.speeds, strict=True)]


def start(name: str, game: str, n_envs: int, stack: ExitStack) -> Row:
    process = stack.enter_context(
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, name, game, str(n_envs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"{name} did not start")
    pss, rss = zip(*json.loads(line), strict=True)
    return Row(name, process, mean(pss) / _MB, mean(rss) / _MB)


def compare(
    names: Sequence[str], game: str, n_envs: int, *, repeats: int, seconds: float
) -> dict[str, Row]:
    """Measure all contenders in turns."""
    with ExitStack() as stack:
        rows = {name: start(name, game, n_envs, stack) for name in names}
        warn_if_busy()
        for _ in range(repeats):
            for row in rows.values():
                row.measure(seconds)
    return rows


def warn_if_busy() -> None:
    cpu_percent()
    time.sleep(0.5)
    busy = cpu_percent()
    if busy > _IDLE_PERCENT:
        print(f"warning: the machine is not idle ({busy:.0f} % CPU): these figures are too low")


def print_table(rows: dict[str, Row]) -> None:
    print(_HEADER)
    for row in rows.values():
        cells = [f"{row.name:<10} {_span(row.speeds, '11,.0f', '7,.0f')}"]
        for name, median_format, format_ in (("raw", "7.1%", "6.1%"), ("sb3", "6.2f", "5.2f")):
            if name in rows:
                cells.append(_span(row.ratios(rows[name]), median_format, format_))
        print(" | ".join(cells), flush=True)


def print_own_parts(rows: dict[str, Row], n_envs: int) -> None:
    """Print the training process's CPU for our vec step, and its time beyond `lockstep`."""
    for name in (name for name in _OURS if name in rows):
        row = rows[name]
        text = f"{name}: the training process's own CPU {_span(row.own_us, ',.0f', ',.0f')} us"
        if "lockstep" in rows:
            pairs = zip(row.speeds, rows["lockstep"].speeds, strict=True)
            parts = [1e6 * n_envs * (1 / ours - 1 / lockstep) for ours, lockstep in pairs]
            text += f", {_span(parts, ',.0f', ',.0f')} us beyond lockstep"
        print(f"{text}, of a vec step")


def _span(values: Sequence[float], median_format: str, format_: str) -> str:
    low, high = format(min(values), format_), format(max(values), format_)
    return f"{median(values):{median_format}} ({low} - {high})"


def print_memory(weights: dict[int, Row]) -> None:
    """Print the memory of our workers; `weights` has our row for each `n_envs`."""
    n_workers = effective_cpus()
    for n_envs, row in weights.items():
        print(
            f"a worker with {n_envs / n_workers:g} emulators: "
            f"PSS {row.worker_pss_mb:.1f} MB, RSS {row.worker_rss_mb:.1f} MB"
        )
    for (few, light), (many, heavy) in pairwise(sorted(weights.items())):
        emulators = (many - few) / n_workers
        pss = (heavy.worker_pss_mb - light.worker_pss_mb) / emulators
        rss = (heavy.worker_rss_mb - light.worker_rss_mb) / emulators
        print(f"each emulator more: PSS {pss:.2f} MB, RSS {rss:.2f} MB (aim: 70 MB + 2 MB each)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--envs", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--games", nargs="+", default=["duel", "busy"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--contenders", nargs="+", default=_CONTENDERS, choices=_CONTENDERS)
    arguments = parser.parse_args()
    print(f"{effective_cpus()} CPUs; median of {arguments.repeats} x {arguments.seconds:g} s")
    weights = {}
    for game in arguments.games:
        for n_envs in arguments.envs:
            print(f"\n{game}, {n_envs} envs")
            rows = compare(
                arguments.contenders,
                game,
                n_envs,
                repeats=arguments.repeats,
                seconds=arguments.seconds,
            )
            print_table(rows)
            print_own_parts(rows, n_envs)
            if "ours" in rows:
                weights[n_envs] = rows["ours"]
    print()
    print_memory(weights)


if __name__ == "__main__":
    main()
