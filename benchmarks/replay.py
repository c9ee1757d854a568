"""Replay stores side by side: bytes, speed, memory and what a checkpoint writes.

    python -m benchmarks.replay [--transitions 10000] [--sizes full half] [--only sb3 ...]
                                [--run RUN] [--folder DIR] [--claims]

One play is recorded (random, or that of a run's policy), stacks of four, and given to each store in
a fresh process with one thread. What a store gives back is compared bit for bit with the play;
`equal` below 100 % means that it gives back something else (SB3's optimize_memory_usage has another
episode's frame after an episode's end).

* bytes: of a transition, in RAM or on disk, whichever the store lives in.
* sample: a batch with next observations, ms; `cold` with the page cache dropped.
* extra: peak of the resident memory while saving, over what was there before.
* 2nd: bytes that a checkpoint writes after 2 % more transitions.

`--claims`: the Pond's samples and SB3's in turns, and what grows with a Lake: memory and bytes of a
checkpoint, refill of a Pond, opening many segments.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.replay_claims import print_claims
from benchmarks.replay_stores import CONTENDERS
from benchmarks.replay_trace import Trace, record
from benchmarks.vec_env import warn_if_busy

_HEADER = (
    f"{'':<24} {'bytes':>9} {'fill/s':>8} {'p99 ms':>7} | {'b. 32':>7} {'b. 256':>7} "
    f"{'cold 32':>8} | {'save s':>7} {'extra MB':>8} {'load s':>7} {'2nd MB':>8} | equal"
)


def measured(name: str, trace: Path, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.replay_measures", name, str(trace), str(folder)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    if done.returncode:
        return {"missing": f"failed: {done.stderr.strip().splitlines()[-1]}"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def line(name: str, found: dict[str, Any]) -> str:
    if "missing" in found:
        return f"{name:<24} {found['missing']}"
    cold = f"{found['cold_32_ms']:8.2f}" if "cold_32_ms" in found else f"{'':8}"
    return (
        f"{name:<24} {found['bytes']:>9,.0f} {found['fill_per_s']:>8,.0f} "
        f"{found['stall_p99_ms']:>7.2f} | "
        f"{found['sample_32_ms']:>7.2f} {found['sample_256_ms']:>7.2f} {cold} | "
        f"{found['save_s']:>7.2f} {found['save_extra_bytes'] / 1e6:>8.1f} {found['load_s']:>7.2f} "
        f"{found['second_save_bytes'] / 1e6:>8.2f} | {found['equal']:.1%}"
    )


def compare(names: Sequence[str], trace: Path, folder: Path) -> None:
    print(_HEADER)
    for number, name in enumerate(names):
        print(line(name, measured(name, trace, folder / f"store-{number}")), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--transitions", type=int, default=10_000)
    parser.add_argument("--scale", type=float, default=1.0, help="of the transitions, for a look")
    parser.add_argument("--game", default="duel")
    parser.add_argument("--sizes", nargs="+", choices=("full", "half"), default=("full", "half"))
    parser.add_argument("--run", type=Path, help="whose policy plays; its observations")
    parser.add_argument("--envs", type=int, default=8)
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--folder", type=Path, help="on the disk to measure; default: /tmp")
    parser.add_argument("--claims", action="store_true", help="instead of the table")
    options = parser.parse_args()
    warn_if_busy()
    n_transitions = int(options.transitions * options.scale)
    for size in options.sizes[:1] if options.run else options.sizes:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            trace = record(
                Path(folder) / "trace",
                game=options.game,
                size=size,
                n_transitions=n_transitions,
                n_envs=options.envs,
                run=options.run,
            )
            played = f"the policy of {options.run}" if options.run else f"{options.game}, random"
            print(f"\n{played}, {trace.packing.shape}, {len(trace):,} transitions")
            show(trace, options, Path(folder))


def show(trace: Trace, options: argparse.Namespace, folder: Path) -> None:
    if options.claims:
        print_claims(trace, folder)
    else:
        compare(options.only, folder / "trace", folder)


if __name__ == "__main__":
    main()
