"""The replay stores that `benchmarks.replay` compares, and the play that fills them.

The stores import their packages themselves, so a package that is not installed only costs its row.
"""

import gzip
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from game_rl.config.schema import EnvConfig, ObservationConfig
from game_rl.envs.make_env import make_observation_format
from game_rl.envs.observation import ObservationFormat
from game_rl.games.definition import load_game
from game_rl.vec_env.make_vec_env import make_vec_env

Array = NDArray[Any]
Rows = tuple[Any, Any, Any, Any, Any]


@dataclass(frozen=True)
class VecStep:
    """A vec step in the form in which SB3 gives it to a replay buffer; row i is env i."""

    observations: Array
    next_observations: Array
    actions: Array
    rewards: Array
    terminated: Array
    truncated: Array

    def fingerprints(self) -> Iterator[int]:
        """Yield the fingerprint of each transition."""
        columns = (self.observations, self.next_observations, self.actions, self.rewards)
        for row in zip(*columns, self.terminated, strict=True):
            yield fingerprint(*row)


def fingerprint(
    observation: Array, next_observation: Array, action: Any, reward: Any, terminated: Any
) -> int:
    """Hash every byte of a transition; two are equal by chance with probability 2^-64."""
    small = np.array([float(action), float(reward), float(terminated)], np.float32)
    first = crc32(np.ascontiguousarray(observation).data)
    return first << 32 | crc32(np.ascontiguousarray(next_observation).data, crc32(small.tobytes()))


@dataclass(frozen=True)
class Play:
    """Random play of `duel` in stacks of four, which depends only on the arguments."""

    size: str
    n_transitions: int
    n_envs: int = 8

    @property
    def config(self) -> EnvConfig:
        return EnvConfig(observation=ObservationConfig(size=self.size))  # type: ignore[arg-type]

    @property
    def n_vec_steps(self) -> int:
        return max(2, self.n_transitions // self.n_envs)

    @property
    def observation_format(self) -> ObservationFormat:
        return make_observation_format(self.config, load_game("duel"))

    @property
    def n_actions(self) -> int:
        return len(load_game("duel").action_names)

    def sb3_arguments(self) -> dict[str, Any]:
        return {
            "buffer_size": self.n_vec_steps * self.n_envs,
            "observation_space": self.observation_format.space,
            "action_space": spaces.Discrete(self.n_actions),
            "device": "cpu",
            "n_envs": self.n_envs,
        }

    def vec_steps(self) -> Iterator[VecStep]:
        vec_env = make_vec_env(self.config, load_game("duel"), n_envs=self.n_envs, seed=0)
        rng = np.random.default_rng(0)
        try:
            before = np.array(vec_env.reset())
            for _ in range(self.n_vec_steps):
                actions = rng.integers(self.n_actions, size=self.n_envs)
                found, rewards, dones, infos = vec_env.step(actions)
                after = np.array(found)
                ends = after.copy()
                for env in np.flatnonzero(dones):
                    ends[env] = infos[env]["terminal_observation"]
                cut = np.array([bool(info.get("TimeLimit.truncated")) for info in infos]) & dones
                yield VecStep(before, ends, actions, rewards.copy(), dones & ~cut, cut)
                before = after
        finally:
            vec_env.close()


class Store(Protocol):
    """A contender; rows are (observations, next observations, actions, rewards, terminated)."""

    def add(self, step: VecStep) -> None: ...
    def sample(self, batch_size: int) -> Rows: ...
    def nbytes(self) -> int:
        """Return the store's size, in RAM or on disk, wherever it keeps its data."""

    def save(self, folder: Path) -> None: ...


class Sb3Store:
    """SB3's ReplayBuffer, saved by SB3's own function."""

    def __init__(self, play: Play, folder: Path) -> None:  # noqa: ARG002
        self.buffer = self.make(play)

    def make(self, play: Play, **more: Any) -> Any:
        from stable_baselines3.common.buffers import ReplayBuffer

        return ReplayBuffer(**play.sb3_arguments(), **more)

    def add(self, step: VecStep) -> None:
        done = step.terminated | step.truncated
        infos = [{"TimeLimit.truncated": bool(is_cut)} for is_cut in step.truncated]
        self.buffer.add(
            step.observations, step.next_observations, step.actions, step.rewards, done, infos
        )

    def sample(self, batch_size: int) -> Rows:
        found = self.buffer.sample(batch_size)
        before, after = found.observations, found.next_observations
        return before, after, found.actions, found.rewards, found.dones

    def nbytes(self) -> int:
        arrays = (value for value in vars(self.buffer).values() if isinstance(value, np.ndarray))
        return sum(a.nbytes if a.dtype != object else _object_bytes(a) for a in arrays)

    def save(self, folder: Path) -> None:
        from stable_baselines3.common.save_util import save_to_pkl

        save_to_pkl(folder / "buffer.pkl", self.buffer)


class _Sb3Optimized(Sb3Store):
    """The variant whose next observation is that of the next slot, wrong at episode ends."""

    def make(self, play: Play, **_: Any) -> Any:
        return super().make(play, optimize_memory_usage=True, handle_timeout_termination=False)


class _Sb3Gzip(Sb3Store):
    """A store that compresses the pickle, as users do when it is too large."""

    def save(self, folder: Path) -> None:
        with gzip.open(folder / "buffer.pkl.gz", "wb") as file:
            pickle.dump(self.buffer, file)


class _ExtraBuffers(Sb3Store):
    """sb3-extra-buffers, with the codec that its documentation recommends for pictures."""

    level = 3

    def make(self, play: Play, **_: Any) -> Any:
        from sb3_extra_buffers.compressed import CompressedReplayBuffer
        from sb3_extra_buffers.compressed.compression_methods import COMPRESSION_METHOD_MAP

        if "zstd" not in COMPRESSION_METHOD_MAP:
            raise ImportError("sb3-extra-buffers has no zstd: pip install 'game_rl[bench]'")
        return CompressedReplayBuffer(
            **play.sb3_arguments(),
            compression_method="zstd",
            compression_kwargs={"compresslevel": self.level},
        )


class _ExtraBuffersLevel5(_ExtraBuffers):
    level = 5


class PondStore(Sb3Store):
    """Our store in RAM, saved as with `checkpoints.save_replay_buffer`."""

    def make(self, play: Play, **_: Any) -> Any:
        from game_rl.buffers.replay_buffer import PackedReplayBuffer

        return PackedReplayBuffer(
            **play.sb3_arguments(), observation_format=play.observation_format
        )

    def nbytes(self) -> int:
        n: int = self.buffer.store.nbytes
        return n

    def save(self, folder: Path) -> None:
        from game_rl.buffers.array_file import dump_arrays
        from game_rl.files.durable_files import synced_file

        with synced_file(folder / "replay.safetensors") as file:
            file.writelines(dump_arrays(self.buffer.store.state_dict()))


class LakeStore:
    """Our store on disk; a checkpoint seals the writer and pins the Lake."""

    def __init__(self, play: Play, folder: Path) -> None:
        from game_rl.lake.lake import Lake
        from game_rl.lake.lake_schema import LakeSchema
        from game_rl.lake.writer import LakeWriter

        schema = LakeSchema.of(play.observation_format, n_actions=play.n_actions)
        self.lake = Lake.create(folder / "lake", schema)  # or opens the existing one
        self.writer = LakeWriter(self.lake, "bench", n_envs=play.n_envs)
        self.rng = np.random.default_rng(0)
        self.n_saved = 0
        self.sampler: Any = None

    def add(self, step: VecStep) -> None:
        channels = self.lake.schema.packing.shape[0]
        self.writer.append(
            frames=step.observations[:, -channels:],
            actions=step.actions,
            rewards=step.rewards,
            next_frames=step.next_observations[:, -channels:],
            terminated=step.terminated,
            truncated=step.truncated,
        )
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

    def save(self, folder: Path) -> None:  # noqa: ARG002 - the data are on disk already
        self.writer.seal()
        self.n_saved += 1
        self.lake.pin(f"{self.n_saved}")


class _TorchRl(ABC):
    """TorchRL's ReplayBuffer on one of its storages."""

    def __init__(self, play: Play, folder: Path) -> None:
        from torchrl.data import ReplayBuffer

        self.folder = folder / "storage"
        self.buffer = ReplayBuffer(storage=self.storage(play.n_vec_steps * play.n_envs))

    @abstractmethod
    def storage(self, capacity: int) -> Any: ...

    @abstractmethod
    def nbytes(self) -> int: ...

    def add(self, step: VecStep) -> None:
        import torch
        from tensordict import TensorDict

        columns = {
            "observation": step.observations,
            "next": step.next_observations,
            "action": step.actions,
            "reward": step.rewards,
            "terminated": step.terminated,
        }
        tensors = {name: torch.from_numpy(values) for name, values in columns.items()}
        self.buffer.extend(TensorDict(tensors, batch_size=[len(step.actions)]))

    def sample(self, batch_size: int) -> Rows:
        found = self.buffer.sample(batch_size)
        return tuple(
            found[name] for name in ("observation", "next", "action", "reward", "terminated")
        )

    def save(self, folder: Path) -> None:
        self.buffer.dumps(folder / "torchrl")


class _TorchRlMemmap(_TorchRl):
    def storage(self, capacity: int) -> Any:
        from torchrl.data import LazyMemmapStorage

        return LazyMemmapStorage(capacity, scratch_dir=str(self.folder))

    def nbytes(self) -> int:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return sum(path.stat().st_blocks * 512 for path in files)


class _TorchRlCompressed(_TorchRl):
    def storage(self, capacity: int) -> Any:
        from torchrl.data import CompressedListStorage

        return CompressedListStorage(capacity)

    def nbytes(self) -> int:
        items = self.buffer._storage._storage
        return sum(_tensor_bytes(item) for item in items if item is not None)


CONTENDERS: dict[str, Callable[[Play, Path], Store]] = {
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


def _object_bytes(array: Any) -> int:
    return array.nbytes + sum(len(item) for item in array.ravel() if item is not None)


def _tensor_bytes(item: Any) -> int:
    """Return the bytes of all tensors in nested dictionaries and lists."""
    if isinstance(item, dict):
        return sum(_tensor_bytes(value) for value in item.values())
    if isinstance(item, list | tuple):
        return sum(_tensor_bytes(value) for value in item)
    return int(getattr(item, "nbytes", 0))
