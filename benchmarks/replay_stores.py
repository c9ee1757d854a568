"""The replay stores that `benchmarks.replay` compares, behind one protocol.

Imports are within the stores, so that a peer that is not installed costs its own row alone.
"""

import gzip
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from benchmarks.replay_trace import Trace, VecStep

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
        from game_rl.buffers.array_file import dump_arrays
        from game_rl.run_dir import synced_file

        with synced_file(folder / "replay.safetensors") as file:
            file.writelines(dump_arrays(self.buffer.pond.state_dict()))

    def load(self, folder: Path) -> None:
        from game_rl.buffers.array_file import read_arrays

        self.buffer = self.make()
        with (folder / "replay.safetensors").open("rb") as file:
            self.buffer.pond.load_state_dict(read_arrays(file))

    def files(self) -> list[Path]:
        return []


class LakeStore:
    """Ours on disk; a checkpoint seals the writer and pins a mark."""

    def __init__(self, trace: Trace, folder: Path) -> None:
        from game_rl.lake.lake import Lake
        from game_rl.lake.schema import LakeSchema
        from game_rl.lake.writer import LakeWriter

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
        from game_rl.lake.sampler import Sampler

        if self.sampler is None:
            self.writer.seal()
            self.sampler = Sampler(self.lake.view(), gamma=1.0)
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
        from game_rl.lake.lake import Lake
        from game_rl.lake.sampler import Sampler

        self.sampler = Sampler(Lake.open(self.path).view(), gamma=1.0)

    def files(self) -> list[Path]:
        return sorted(self.path.glob("*.segment"))


class _TorchRl(ABC):
    """A ReplayBuffer of TorchRL on one of its storages."""

    def __init__(self, trace: Trace, folder: Path) -> None:
        from torchrl.data import ReplayBuffer

        self.folder = folder / "storage"
        self.capacity = len(trace)
        self.rng_state = 0
        self.buffer = ReplayBuffer(storage=self.storage())

    @abstractmethod
    def storage(self) -> Any: ...

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
    "ours: Lake": LakeStore,
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
