"""The stores that `benchmarks.replay` compares, each measured in a fresh process.

    python -m benchmarks.replay_contenders NAME TRACE FOLDER

prints a line of JSON. Imports are within the contenders, so that a peer that is not installed costs
its own row alone.
"""

import gzip
import json
import os
import pickle
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from benchmarks.replay_trace import Trace, VecStep, fingerprint
from game_rl.resources import resident_bytes

_BATCHES = (32, 256)
_REPEATS = 5
_CHECKED = 2048
_AFTER = 0.02  # part of the trace that comes between the first checkpoint and the second
_SEGMENT_BYTES = 32 << 20

Rows = tuple[Any, Any, Any, Any, Any]


class Store(Protocol):
    """What a contender can do; rows are (observations, next ones, actions, rewards, terminated)."""

    def add(self, step: VecStep) -> None: ...
    def sample(self, batch_size: int) -> Rows: ...
    def nbytes(self) -> int: ...
    def save(self, folder: Path) -> None: ...
    def load(self, folder: Path) -> None:
        """As a new process would; it is empty before."""

    def files(self) -> list[Path]:
        """That samples are read from."""


class Sb3Store:
    """A ReplayBuffer, saved as SB3 saves it."""

    def __init__(self, trace: Trace, folder: Path, **more: Any) -> None:  # noqa: ARG002
        self.buffer = self.make(trace, **more)

    def make(self, trace: Trace, **more: Any) -> Any:
        from stable_baselines3.common.buffers import ReplayBuffer

        return ReplayBuffer(len(trace), **sb3_arguments(trace), **more)

    def add(self, step: VecStep) -> None:
        done = step.terminated | step.truncated
        self.buffer.add(
            step.observations, step.next_observations, step.actions, step.rewards, done, step.infos
        )

    def sample(self, batch_size: int) -> Rows:
        found = self.buffer.sample(batch_size)
        return (
            found.observations,
            found.next_observations,
            found.actions,
            found.rewards,
            found.dones,
        )

    def nbytes(self) -> int:
        arrays = (value for value in vars(self.buffer).values() if isinstance(value, np.ndarray))
        return sum(a.nbytes if a.dtype != object else _object_bytes(a) for a in arrays)

    def save(self, folder: Path) -> None:
        from stable_baselines3.common.save_util import save_to_pkl

        save_to_pkl(folder / "buffer.pkl", self.buffer)

    def load(self, folder: Path) -> None:
        from stable_baselines3.common.save_util import load_from_pkl

        self.buffer = None
        self.buffer = load_from_pkl(folder / "buffer.pkl")

    def files(self) -> list[Path]:
        return []


class _Sb3Optimized(Sb3Store):
    """The next observation is the one of the next slot; wrong at the end of an episode."""

    def make(self, trace: Trace, **_: Any) -> Any:
        return super().make(trace, optimize_memory_usage=True, handle_timeout_termination=False)


class _Sb3Gzip(Sb3Store):
    """What users write when the pickle is too large."""

    def save(self, folder: Path) -> None:
        with gzip.open(folder / "buffer.pkl.gz", "wb") as file:
            pickle.dump(self.buffer, file)

    def load(self, folder: Path) -> None:
        self.buffer = None
        with gzip.open(folder / "buffer.pkl.gz", "rb") as file:
            self.buffer = pickle.load(file)  # noqa: S301 - written above


class _ExtraBuffers(Sb3Store):
    """sb3-extra-buffers, with the codec that its documentation recommends for pictures."""

    codec = "zstd"
    level = 3

    def make(self, trace: Trace, **_: Any) -> Any:
        from sb3_extra_buffers.compressed import CompressedReplayBuffer
        from sb3_extra_buffers.compressed.compression_methods import COMPRESSION_METHOD_MAP

        if self.codec not in COMPRESSION_METHOD_MAP:
            raise ImportError(
                f"sb3-extra-buffers has no {self.codec}: pip install 'game_rl[bench]'"
            )
        return CompressedReplayBuffer(
            len(trace),
            **sb3_arguments(trace),
            compression_method=self.codec,
            compression_kwargs={"compresslevel": self.level},
        )


class _ExtraBuffersLevel5(_ExtraBuffers):
    level = 5


class PondStore:
    """Ours in RAM; a checkpoint is what `checkpoints.save_replay_buffer` writes."""

    def __init__(self, trace: Trace, folder: Path) -> None:  # noqa: ARG002
        self.trace = trace
        self.buffer = self.make()

    def make(self) -> Any:
        from game_rl.buffers.replay import PackedReplayBuffer

        trace = self.trace
        return PackedReplayBuffer(
            len(trace),
            **sb3_arguments(trace),
            packing=trace.packing,
            frame_stack=trace.frame_stack,
        )

    add = Sb3Store.add
    sample = Sb3Store.sample

    def nbytes(self) -> int:
        n: int = self.buffer.pond.nbytes
        return n

    def save(self, folder: Path) -> None:
        import safetensors.numpy

        from game_rl.run_dir import write_synced

        state = safetensors.numpy.save(self.buffer.pond.state_dict())
        write_synced(folder / "replay.safetensors", state)

    def load(self, folder: Path) -> None:
        import safetensors.numpy

        self.buffer = self.make()
        state = safetensors.numpy.load((folder / "replay.safetensors").read_bytes())
        self.buffer.pond.load_state_dict(state)

    def files(self) -> list[Path]:
        return []


class _Lake:
    """Ours on disk; a checkpoint seals the writer and pins a mark."""

    per_block = 1

    def __init__(self, trace: Trace, folder: Path) -> None:
        from game_rl.buffers.lake.lake import Lake
        from game_rl.buffers.lake.schema import LakeSchema
        from game_rl.buffers.lake.writer import LakeWriter

        self.path = folder / "lake"
        self.path.mkdir()
        self.channels = trace.packing.shape[0]
        self.lake = Lake.create(self.path, LakeSchema(trace.packing, frame_stack=trace.frame_stack))
        self.writer = LakeWriter(
            self.lake, "bench", n_envs=trace.n_envs, segment_bytes=_SEGMENT_BYTES
        )
        self.rng = np.random.default_rng(0)
        self.idle = list(range(trace.n_envs))
        self.n_saved = 0
        self.sampler: Any = None

    def add(self, step: VecStep) -> None:
        if self.idle:
            self.writer.begin(step.observations[self.idle, -self.channels :], self.idle)
        self.writer.append(
            actions=step.actions,
            rewards=step.rewards,
            terminated=step.terminated,
            truncated=step.truncated,
            next_frames=step.next_observations[:, -self.channels :],
        )
        self.idle = np.flatnonzero(step.terminated | step.truncated).tolist()
        self.sampler = None

    def sample(self, batch_size: int) -> Rows:
        from game_rl.buffers.lake.sampler import Sampler

        if self.sampler is None:
            self.writer.seal()
            self.sampler = Sampler(self.lake.view(), per_block=self.per_block, gamma=1.0)
        found = self.sampler.sample(self.rng, batch_size)
        over = found.discounts == 0
        return found.stacks, found.next_stacks, found.actions, found.rewards, over

    def nbytes(self) -> int:
        self.writer.seal()
        return self.lake.n_bytes()

    def save(self, folder: Path) -> None:  # noqa: ARG002 - it is where the data are
        self.writer.seal()
        self.n_saved += 1
        self.lake.pin(f"{self.n_saved}")

    def load(self, folder: Path) -> None:  # noqa: ARG002
        from game_rl.buffers.lake.lake import Lake
        from game_rl.buffers.lake.sampler import Sampler

        self.sampler = Sampler(Lake.open(self.path).view(), per_block=self.per_block, gamma=1.0)

    def files(self) -> list[Path]:
        return sorted(self.path.glob("*.segment"))


class _LakePerBlock8(_Lake):
    per_block = 8


class _TorchRl:
    """A ReplayBuffer of TorchRL on one of its storages."""

    def __init__(self, trace: Trace, folder: Path) -> None:
        from torchrl.data import ReplayBuffer

        self.folder = folder / "storage"
        self.capacity = len(trace)
        self.rng_state = 0
        self.buffer = ReplayBuffer(storage=self.storage())

    def storage(self) -> Any:
        raise NotImplementedError

    def add(self, step: VecStep) -> None:
        import torch
        from tensordict import TensorDict

        self.buffer.extend(
            TensorDict(
                {
                    "observation": torch.from_numpy(step.observations),
                    "next": torch.from_numpy(step.next_observations),
                    "action": torch.from_numpy(step.actions),
                    "reward": torch.from_numpy(step.rewards),
                    "terminated": torch.from_numpy(step.terminated),
                },
                batch_size=[len(step.actions)],
            )
        )

    def sample(self, batch_size: int) -> Rows:
        found = self.buffer.sample(batch_size)
        return tuple(  # type: ignore[return-value]
            found[name] for name in ("observation", "next", "action", "reward", "terminated")
        )

    def nbytes(self) -> int:
        return sum(path.stat().st_blocks * 512 for path in self.files())

    def save(self, folder: Path) -> None:
        self.buffer.dumps(folder / "torchrl")

    def load(self, folder: Path) -> None:
        from torchrl.data import ReplayBuffer

        self.folder = self.folder.with_name("loaded")
        self.buffer = ReplayBuffer(storage=self.storage())
        self.buffer.loads(folder / "torchrl")

    def files(self) -> list[Path]:
        return [path for path in sorted(self.folder.rglob("*")) if path.is_file()]


class _TorchRlMemmap(_TorchRl):
    def storage(self) -> Any:
        from torchrl.data import LazyMemmapStorage

        return LazyMemmapStorage(self.capacity, scratch_dir=str(self.folder))


class _TorchRlCompressed(_TorchRl):
    def storage(self) -> Any:
        from torchrl.data import CompressedListStorage

        return CompressedListStorage(self.capacity)

    def nbytes(self) -> int:
        items = self.buffer._storage._storage
        return sum(_tensor_bytes(item) for item in items if item is not None)


CONTENDERS: dict[str, Callable[[Trace, Path], Store]] = {
    "ours: Pond": PondStore,
    "ours: Lake": _Lake,
    "ours: Lake, per_block=8": _LakePerBlock8,
    "sb3": Sb3Store,
    "sb3 optimized": _Sb3Optimized,
    "sb3 + gzip": _Sb3Gzip,
    "extra-buffers zstd 3": _ExtraBuffers,
    "extra-buffers zstd 5": _ExtraBuffersLevel5,
    "torchrl memmap": _TorchRlMemmap,
    "torchrl compressed": _TorchRlCompressed,
}


def sb3_arguments(trace: Trace) -> dict[str, Any]:
    return {
        "observation_space": spaces.Box(0, 255, trace.stack_shape, np.uint8),
        "action_space": spaces.Discrete(trace.n_actions),
        "device": "cpu",
        "n_envs": trace.n_envs,
    }


def _object_bytes(array: Any) -> int:
    return array.nbytes + sum(len(item) for item in array.ravel() if item is not None)


def _tensor_bytes(item: Any) -> int:
    """Of the tensors in nested dictionaries and lists."""
    if isinstance(item, dict):
        return sum(_tensor_bytes(value) for value in item.values())
    if isinstance(item, list | tuple):
        return sum(_tensor_bytes(value) for value in item)
    return int(getattr(item, "nbytes", 0))


# ---------------------------------------------------------------------- one process


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
    if isinstance(store, _Lake):
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
