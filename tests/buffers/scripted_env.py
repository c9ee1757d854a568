"""Episodes of random pictures that end when and how a seed says."""

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecFrameStack

from game_rl.envs.packing import FramePacking

N_ACTIONS = 5
Frame = NDArray[np.uint8]


class ScriptedEnv(gym.Env[Frame, np.int64]):
    """About a third of the timesteps end an episode, half of them by a limit."""

    def __init__(self, packing: FramePacking, seed: int) -> None:
        self.observation_space = spaces.Box(0, 255, packing.shape, np.uint8)
        self.action_space = spaces.Discrete(N_ACTIONS)
        self._packing = packing
        self._rng = np.random.default_rng(seed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Frame, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        return self._frame(), {}

    def step(self, _action: np.int64) -> tuple[Frame, float, bool, bool, dict[str, Any]]:
        kind = self._rng.integers(6)
        return self._frame(), float(self._rng.normal()), kind == 0, kind == 1, {}

    def _frame(self) -> Frame:
        """Any picture that the packing can hold."""
        packed = self._rng.integers(0, 256, self._packing.nbytes, dtype=np.uint8)
        if self._packing.bits == 4:
            packed[:] = (packed & 0x0F) % 13 | (packed >> 4) % 13 << 4
        return self._packing.unpack(packed)


def scripted_vec_env(
    packing: FramePacking, *, n_envs: int, frame_stack: int, seed: int = 0
) -> VecEnv:
    envs: list[Callable[[], gym.Env[Any, Any]]] = [
        partial(ScriptedEnv, packing, seed + i) for i in range(n_envs)
    ]
    return VecFrameStack(DummyVecEnv(envs), frame_stack, channels_order="first")
