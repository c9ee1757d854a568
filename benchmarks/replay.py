"""Replay stores side by side: size, speed, memory, and the bytes that a checkpoint writes.

    python -m benchmarks.replay [--transitions 4000] [--sizes full half] [--only sb3 ...]
                                [--folder DIR] [--growth]

Each store gets random play of `duel` in stacks of four, in a fresh process with one thread. The
transitions that it returns are compared bit for bit with the play. `equal` below 100 % means that
some differ: with SB3's optimize_memory_usage, the next observation at the end of an episode is the
first frame of another one.

* bytes: bytes of a transition, in RAM or on disk, wherever the store keeps it.
* batch: milliseconds for 32 transitions with next observations.
* x SB3: time of SB3's ReplayBuffer for the same batch, in the same process and in turns, divided by
  the store's: the median of seven turns, with the smallest and the largest.
* extra: peak of the resident memory while saving, minus the memory before.
* again: bytes that a checkpoint writes after 2 % more transitions.

`--growth`: the cost of a checkpoint and of opening as a Lake grows to ten million transitions.
Those Lakes are made of the play's segments, linked under other names, so reads come from the page
cache.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks.linked_lake import linked
from benchmarks.replay_stores import (
    CONTENDERS,
    LakeStore,
    Play,
    Sb3Store,
    Store,
    VecStep,
    fingerprint,
)
from benchmarks.vec_env import warn_if_busy
from game_rl.lake.lake import Lake
from game_rl.lake.sampler import Sampler
from game_rl.lake.segment import SEALED
from game_rl.system.process_memory import resident_bytes

_BATCH = 32
_TURNS = 7
_CHECKED = 2048
_AFTER = 0.02  # share of the play between the first checkpoint and the second
_SIZES = (10_000, 1_000_000, 10_000_000)  # transitions of the grown Lakes
_HEADER = (
    f"{'':<22} {'bytes':>9} {'batch ms':>9} {'x SB3 (from - to)':>22} "
    f"{'save s':>8} {'extra MB':>9} {'again MB':>9}  equal"
)


# ---------------------------------------------------------------------- one store


def measure(name: str, play: Play, folder: Path) -> dict[str, Any]:
    """Measure one store in this process."""
    store, sb3 = CONTENDERS[name](play, folder), Sb3Store(play, folder)
    steps = play.vec_steps()
    n_after = max(1, int(play.n_vec_steps * _AFTER))
    known = fill([store, sb3], islice(steps, play.n_vec_steps - n_after))
    ratios, batch_ms = in_turns(store, sb3)
    del sb3
    saved = folder / "saved"
    saved.mkdir()
    save_s, extra = with_peak(lambda: store.save(saved))
    before = stamps(folder)
    known |= fill([store], steps)
    store.save(saved)
    again = [stamp for path, stamp in stamps(folder).items() if before.get(path) != stamp]
    return {
        "bytes": store.nbytes() / (play.n_vec_steps * play.n_envs),  # the store is exactly full
        "batch_ms": batch_ms,
        "ratios": ratios,
        "save_s": save_s,
        "extra_bytes": extra,
        "again_bytes": sum(stamp[0] for stamp in again),
        "equal": share_equal(store, known),
    }


def fill(stores: list[Store], steps: Iterator[VecStep]) -> set[int]:
    """Give all steps to all stores; return the fingerprints of the transitions."""
    known: set[int] = set()
    for step in steps:
        known.update(step.fingerprints())
        for store in stores:
            store.add(step)
    return known


def in_turns(store: Store, sb3: Store) -> tuple[list[float], float]:
    """Return each turn's ratio of SB3's time to the store's, and the store's median in ms."""
    pairs = [(_batch_s(store), _batch_s(sb3)) for _ in range(_TURNS)]
    return [theirs / own for own, theirs in pairs], 1e3 * median(own for own, _ in pairs)


def _batch_s(store: Store, n: int = 20) -> float:
    began = time.perf_counter()
    for _ in range(n):
        store.sample(_BATCH)
    return (time.perf_counter() - began) / n


def share_equal(store: Store, known: set[int]) -> float:
    """Return the share of sampled transitions that are equal to played ones, bit for bit."""
    good = total = 0
    while total < _CHECKED:
        rows = [np.asarray(column) for column in store.sample(64)]
        rows[2:] = [column.reshape(-1) for column in rows[2:]]
        good += sum(fingerprint(*row) in known for row in zip(*rows, strict=True))
        total += 64
    return good / total


def with_peak(act: Callable[[], None]) -> tuple[float, int]:
    """Return the seconds and the peak growth of the resident memory (Linux)."""
    Path("/proc/self/clear_refs").write_text(
        "5", encoding="utf-8"
    )  # reset the high-water mark to the present memory
    before = resident_bytes(os.getpid())[0]
    began = time.perf_counter()
    act()
    seconds = time.perf_counter() - began
    return seconds, max(0, resident_bytes(os.getpid())[1] - before)


def stamps(folder: Path) -> dict[Path, tuple[int, int, int]]:
    """Return the size, inode and modification time of every file."""
    status = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    return {path: (s.st_size, s.st_ino, s.st_mtime_ns) for path, s in status.items()}


# ---------------------------------------------------------------------- the table


def print_row(name: str, play: Play, folder: Path) -> None:
    """Measure a store in a process of its own, and print its row."""
    arguments = ["--store", name, "--sizes", play.size, "--transitions", str(play.n_transitions)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.replay", *arguments, "--folder", str(folder)],
        capture_output=True,
        encoding="utf-8",
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    if done.returncode:
        print(f"{name:<22} failed: {done.stderr.strip().splitlines()[-1]}")
        return
    found = json.loads(done.stdout.splitlines()[-1])
    ratios = found["ratios"]
    spread = f"{median(ratios):.2f} ({min(ratios):.2f} - {max(ratios):.2f})"
    print(
        f"{name:<22} {found['bytes']:>9,.0f} {found['batch_ms']:>9.2f} {spread:>22} "
        f"{found['save_s']:>8.2f} {found['extra_bytes'] / 1e6:>9.1f} "
        f"{found['again_bytes'] / 1e6:>9.2f}  {found['equal']:.1%}",
        flush=True,
    )


# ---------------------------------------------------------------------- a Lake that grows


def print_growth(play: Play, folder: Path) -> None:
    base = LakeStore(play, folder)
    fill([base], play.vec_steps())
    print(f"{base.nbytes() / len(base.lake.view()):,.0f} bytes a transition")
    base.writer.close()
    for n in _SIZES:
        lake = linked(base.lake, folder / f"{n}" / "lake", n)
        extra, written = checkpoint_cost(lake, play)
        opened_s, memory = opening_cost(lake)
        print(
            f"{n:>10,} transitions: a checkpoint takes {extra / 2**20:.1f} MiB of memory and "
            f"writes {written / 2**20:.2f} MiB beside what is new; opened in {opened_s:.2f} s, "
            f"3,200 samples take {memory / 2**20:.0f} MiB"
        )


def checkpoint_cost(lake: Lake, play: Play) -> tuple[int, int]:
    """Return the extra memory of a save, and the bytes written besides 2,000 new transitions."""
    store = LakeStore(play, lake.path.parent)
    store.save(lake.path)
    before = stamps(lake.path)
    fill([store], islice(play.vec_steps(), 2000 // play.n_envs))
    extra = with_peak(lambda: store.save(lake.path))[1]
    new = {p: s[0] for p, s in stamps(lake.path).items() if before.get(p) != s}
    store.writer.close()
    return extra, sum(size for path, size in new.items() if path.suffix != SEALED)


def opening_cost(lake: Lake) -> tuple[float, int]:
    """Return the seconds to open a Lake, and the memory after 100 batches."""
    before = resident_bytes(os.getpid())[0]
    began = time.perf_counter()
    sampler = Sampler(Lake.open(lake.path).view())
    seconds = time.perf_counter() - began
    rng = np.random.default_rng(0)
    for _ in range(100):
        sampler.sample(rng, _BATCH)
    return seconds, max(0, resident_bytes(os.getpid())[0] - before)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--transitions", type=int, default=4_000)
    parser.add_argument("--sizes", nargs="+", choices=("full", "half"), default=("full", "half"))
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--folder", type=Path, help="on the disk to measure; default: /tmp")
    parser.add_argument("--growth", action="store_true", help="instead of the table")
    parser.add_argument("--store", choices=CONTENDERS, help=argparse.SUPPRESS)  # one row, as JSON
    options = parser.parse_args()
    if options.store is None:
        warn_if_busy()
    for size in options.sizes:
        play = Play(size, options.transitions)
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            show(play, options, Path(folder))


def show(play: Play, options: argparse.Namespace, folder: Path) -> None:
    if options.store:
        torch.set_num_threads(1)
        try:
            print(json.dumps(measure(options.store, play, folder)))
        except ImportError as error:
            sys.exit(f"not installed ({error})")
        return
    print(f"\n{play.size}, {play.n_transitions:,} transitions of random play of duel")
    if options.growth:
        print_growth(play, folder)
        return
    print(_HEADER)
    for name in options.only:
        print_row(name, play, folder)


if __name__ == "__main__":
    main()
