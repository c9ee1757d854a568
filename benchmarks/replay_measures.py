"""One replay store filled, sampled, saved and loaded in a fresh process.

    python -m benchmarks.replay_measures NAME TRACE FOLDER

prints a line of JSON.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.replay_stores import CONTENDERS, LakeStore, Store
from benchmarks.replay_trace import Trace, VecStep, fingerprint
from game_rl.system.process_memory import resident_bytes

_BATCHES = (32, 256)
_REPEATS = 5
_CHECKED = 2048
_AFTER = 0.02  # part of the trace that comes between the first checkpoint and the second


def measure(name: str, trace: Trace, folder: Path) -> dict[str, Any]:
    store = CONTENDERS[name](trace, folder)
    rss_before = resident_bytes(os.getpid())[0]
    steps = trace.vec_steps()
    n_after = max(1, int(trace.n_vec_steps * _AFTER))
    known: set[int] = set()
    stalls = filled(store, steps, trace.n_vec_steps - n_after, known)
    n = (trace.n_vec_steps - n_after) * trace.n_envs
    found: dict[str, Any] = {
        "transitions": n,
        "fill_per_s": n / sum(stalls),
        "stall_p99_ms": 1e3 * float(np.quantile(stalls, 0.99)),
        "stall_max_ms": 1e3 * max(stalls),
        "rss_bytes": (resident_bytes(os.getpid())[0] - rss_before) / n,
        "equal": share_equal(store, known),
    }
    for size in _BATCHES:
        found[f"sample_{size}_ms"] = 1e3 * sample_s(store, size)
    if store.files():
        found["cold_32_ms"] = 1e3 * median(cold_s(store, 32) for _ in range(_REPEATS))
    saved = folder / "saved"
    saved.mkdir()
    found["save_s"], found["save_extra_bytes"] = with_peak(lambda: store.save(saved))
    before = stamps(folder)
    filled(store, steps, n_after, known)
    store.save(saved)
    after = stamps(folder)
    changed = [path for path, stamp in after.items() if before.get(path) != stamp]
    found["second_save_bytes"] = sum(after[path][0] for path in changed)
    found["new_transitions"] = n_after * trace.n_envs
    found["bytes"] = store.nbytes() / len(trace)  # it is just full
    began = time.perf_counter()
    store.load(saved)
    store.sample(32)
    found["load_s"] = time.perf_counter() - began
    found["equal"] = min(found["equal"], share_equal(store, known))
    return found


def filled(store: Store, steps: Iterator[VecStep], n: int, known: set[int]) -> list[float]:
    """Seconds of each `add`."""
    stalls = []
    for _ in range(n):
        step = next(steps)
        known.update(step.fingerprints())
        began = time.perf_counter()
        store.add(step)
        stalls.append(time.perf_counter() - began)
    return stalls


def share_equal(store: Store, known: set[int]) -> float:
    """Of the transitions that it gives, those that were played, bit for bit."""
    good = total = 0
    while total < _CHECKED:
        rows = [np.asarray(column) for column in store.sample(64)]
        rows[2:] = [column.reshape(-1) for column in rows[2:]]
        good += sum(fingerprint(*row) in known for row in zip(*rows, strict=True))
        total += 64
    return good / total


def sample_s(store: Store, batch_size: int) -> float:
    """The median of some rounds."""
    rounds = []
    n = max(1, 640 // batch_size)
    for _ in range(_REPEATS):
        began = time.perf_counter()
        for _ in range(n):
            store.sample(batch_size)
        rounds.append((time.perf_counter() - began) / n)
    return median(rounds)


def cold_s(store: Store, batch_size: int) -> float:
    """The first sample after the page cache has let go of the files, and the store's own cache."""
    if isinstance(store, LakeStore):
        store.load(Path())
    for path in store.files():
        with suppress(FileNotFoundError), path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    began = time.perf_counter()
    store.sample(batch_size)
    return time.perf_counter() - began


def with_peak(act: Callable[[], None]) -> tuple[float, int]:
    """Seconds, and by how much the resident memory rose at its peak (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark becomes what there is now
    before = resident_bytes(os.getpid())[0]
    began = time.perf_counter()
    act()
    seconds = time.perf_counter() - began
    return seconds, max(0, resident_bytes(os.getpid())[1] - before)


def stamps(folder: Path) -> dict[Path, tuple[int, int, int]]:
    """Size, inode and time of change of every file."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            status = path.stat()
            found[path] = status.st_size, status.st_ino, status.st_mtime_ns
    return found


def main() -> None:
    import torch

    torch.set_num_threads(1)
    name, trace, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    folder.mkdir()
    try:
        found = measure(name, Trace(trace), folder)
    except ImportError as error:
        found = {"missing": f"not installed: {error}"}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
