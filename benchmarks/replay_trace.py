"""A recorded play: what every replay store of the benchmark is filled with."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from game_rl.config.schema import EnvConfig, ObservationConfig
from game_rl.envs.make_env import make_frame_format
from game_rl.envs.packing import FramePacking
from game_rl.games.definition import load_game
from game_rl.playback.policy import open_trained_run
from game_rl.vec_env.make_vec_env import make_vec_env

Array = NDArray[Any]
_COLUMNS = ("actions", "rewards", "terminated", "truncated")


@dataclass(frozen=True)
class VecStep:
    """As SB3's OffPolicyAlgorithm hands timesteps to its replay buffer; row i is env i."""

    observations: Array
    next_observations: Array
    actions: Array
    rewards: Array
    terminated: Array
    truncated: Array

    @property
    def infos(self) -> list[dict[str, Any]]:
        return [{"TimeLimit.truncated": bool(is_cut)} for is_cut in self.truncated]

    def fingerprints(self) -> Iterator[int]:
        """Of each transition."""
        columns = (self.observations, self.next_observations, self.actions, self.rewards)
        for row in zip(*columns, self.terminated, strict=True):
            yield fingerprint(*row)


def fingerprint(
    observation: Array, next_observation: Array, action: Any, reward: Any, terminated: Any
) -> int:
    """Of a transition's every byte; two are alike by chance in one of 2^64."""
    small = np.array([float(action), float(reward), float(terminated)], np.float32)
    first = crc32(np.ascontiguousarray(observation))
    return first << 32 | crc32(np.ascontiguousarray(next_observation), crc32(small.tobytes()))


class Trace:
    """A folder with the packed frames and columns of a play; in memory only as it is read."""

    def __init__(self, folder: Path) -> None:
        described = json.loads((folder / "trace.json").read_text())
        described["packing"]["shape"] = tuple(described["packing"]["shape"])
        self.packing = FramePacking(**described["packing"])
        self.frame_stack: int = described["frame_stack"]
        self.n_actions: int = described["n_actions"]
        self._firsts = np.load(folder / "firsts.npy", mmap_mode="r")
        self._frames = np.load(folder / "frames.npy", mmap_mode="r")
        self._columns = {name: np.load(folder / f"{name}.npy") for name in _COLUMNS}
        self.n_vec_steps, self.n_envs = self._frames.shape[:2]

    def __len__(self) -> int:
        return self.n_vec_steps * self.n_envs

    @property
    def stack_shape(self) -> tuple[int, int, int]:
        channels, height, width = self.packing.shape
        return self.frame_stack * channels, height, width

    def vec_steps(self) -> Iterator[VecStep]:
        """The dumb way: whole stacks, in the order of the play."""
        firsts = iter(self._firsts)
        channels = self.packing.shape[0]
        stacks = np.zeros((self.n_envs, *self.stack_shape), np.uint8)
        for env in range(self.n_envs):
            stacks[env, -channels:] = self.packing.unpack(next(firsts))
        for step, packed in enumerate(self._frames):
            columns = {name: column[step] for name, column in self._columns.items()}
            frames = self.packing.unpack(packed)
            next_stacks = np.concatenate([stacks[:, channels:], frames], axis=1)
            yield VecStep(stacks, next_stacks, **columns)
            stacks = next_stacks.copy()
            for env in np.flatnonzero(columns["terminated"] | columns["truncated"]):
                stacks[env] = 0
                stacks[env, -channels:] = self.packing.unpack(next(firsts))


def record(
    folder: Path, *, game: str, size: str, n_transitions: int, n_envs: int, run: Path | None = None
) -> Trace:
    """Play at random, or as the policy of a run does, with its observations instead of `size`."""
    trained = open_trained_run(run, "latest") if run else None
    played = load_game(game) if trained is None else trained.game
    observation = ObservationConfig(size=size)  # type: ignore[arg-type]
    config = EnvConfig(observation=observation) if trained is None else trained.config.env
    vec_env = make_vec_env(config, played, n_envs=n_envs, seed=0)
    rng = np.random.default_rng(0)
    try:
        space = vec_env.action_space
        policy = trained and trained.policy(vec_env.observation_space, space)
        packing = make_frame_format(config.observation, played).packing
        channels, n_actions = packing.shape[0], int(space.n)  # type: ignore[attr-defined]
        frames: list[Array] = []
        firsts: list[Array] = []
        columns: dict[str, list[Array]] = {name: [] for name in _COLUMNS}
        observations = np.asarray(vec_env.reset())
        firsts += list(packing.pack(observations[:, -channels:]))
        for _ in range(max(2, n_transitions // n_envs)):
            if policy is None:
                actions = rng.integers(n_actions, size=n_envs)
            else:
                actions = policy.predict(observations)[0]
            after, rewards, dones, infos = vec_env.step(actions)
            newest = np.array(np.asarray(after)[:, -channels:])
            for env in np.flatnonzero(dones):
                firsts.append(packing.pack(newest[env]))
                newest[env] = infos[env]["terminal_observation"][-channels:]
            cut = np.array([bool(info.get("TimeLimit.truncated")) for info in infos]) & dones
            frames.append(packing.pack(newest))
            for name, column in zip(_COLUMNS, (actions, rewards, dones & ~cut, cut), strict=True):
                columns[name].append(np.array(column))
            observations = np.asarray(after)
    finally:
        vec_env.close()
    folder.mkdir(parents=True)
    np.save(folder / "frames.npy", np.stack(frames))
    np.save(folder / "firsts.npy", np.stack(firsts))
    for name, values in columns.items():
        np.save(folder / f"{name}.npy", np.stack(values))
    described = {"packing": asdict(packing), "frame_stack": config.frame_stack}
    (folder / "trace.json").write_text(json.dumps({**described, "n_actions": n_actions}))
    return Trace(folder)
