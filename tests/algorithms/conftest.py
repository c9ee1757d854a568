"""Fixtures for algorithms: seeded random numbers, envs in two halves, and a callback's view."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from tests.tiny_env import FRAME, TinyEnv, short_episodes

SIZES = (2, 1)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Reset torch's generator, whose state depends on which tests ran in this process before."""
    torch.manual_seed(0)


@pytest.fixture(
    params=[(TinyEnv, True), (short_episodes, True), (short_episodes, False)],
    ids=["ends", "truncated", "unpacked"],
)
def vec_env(request: pytest.FixtureRequest) -> Iterator[HalvedVecEnv]:
    env_fn, packs = request.param
    packing = ObservationFormat(FramePacking(FRAME), 2) if packs else None
    halves = (
        SharedMemoryVecEnv([env_fn] * n, n_workers=1, frame_stack=2, packing=packing) for n in SIZES
    )
    env = HalvedVecEnv(*halves)
    yield env
    env.close()


class Witness(BaseCallback):
    """A callback that records the events of a rollout in order and the data of each vec step."""

    def __init__(self, last_step: int = 10**9) -> None:
        super().__init__()
        self.seen: list[Any] = []
        self._last_step = last_step

    def _on_rollout_start(self) -> None:
        self.seen.append("start")

    def _on_step(self) -> bool:
        names = ("rewards", "dones", "new_obs")
        self.seen.append([np.array(self.locals[name]) for name in names])
        self.seen.append((self.num_timesteps, [dict(info) for info in self.locals["infos"]]))
        for info in self.seen[-1][1]:
            info.pop("episode", None)  # wall time
        return self.num_timesteps < self._last_step

    def _on_rollout_end(self) -> None:
        self.seen.append("end")
