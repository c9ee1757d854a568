"""Observations with parts: random formats, frames of them, and a vec env that SB3 stacks."""

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from hypothesis import strategies as st
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecEnv,
    VecEnvWrapper,
    VecFrameStack,
)
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from game_rl.envs.observation import SCREEN, ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.games.parts.part_format import PartFormat, Stretch

N_ACTIONS = 5
Frame = dict[str, NDArray[Any]]

stretches = st.lists(
    st.builds(Stretch, st.integers(1, 11), st.sampled_from([1, 2, 4, 8, 16, 32])),
    min_size=1,
    max_size=3,
)
vectors = st.builds(
    lambda parts, stacked: PartFormat(
        "vector", (sum(part.size for part in parts),), 0, tuple(parts), stacked
    ),
    stretches,
    st.booleans(),
)
indices = st.builds(
    lambda shape, n, stacked: PartFormat.of_indices(
        "categories" if len(shape) == 1 else "grid", shape, n, is_stacked=stacked
    ),
    st.sampled_from([(1,), (6,), (1, 3, 5)]),
    st.sampled_from([2, 3, 13, 200, 256, 300, 65_536]),
    st.booleans(),
)
screens = st.builds(
    lambda bits, channels: FramePacking((channels, 3, 5), bits=bits, is_one_plane=bits == 2),
    st.sampled_from([2, 4, 8]),
    st.sampled_from([1, 3]),
)
formats = st.builds(
    lambda screen, stack, parts: ObservationFormat(screen, stack, tuple(sorted(parts.items()))),
    st.one_of(st.none(), screens),
    st.integers(1, 4),
    st.dictionaries(
        st.sampled_from(["events", "party", "status", "tiles"]),
        st.one_of(vectors, indices),
        min_size=1,
        max_size=3,
    ),
)


def some_values(rng: np.random.Generator, part: PartFormat, n: int) -> NDArray[Any]:
    if part.kind != "vector":
        return rng.integers(0, part.n_values, (n, *part.shape)).astype(part.dtype)
    columns = [
        rng.standard_normal((n, each.size))
        if each.bits == 32
        else rng.integers(0, 1 << each.bits, (n, each.size))
        for each in part.stretches
    ]
    return np.concatenate(columns, axis=1).astype(np.float32)


def some_screens(rng: np.random.Generator, packing: FramePacking, n: int) -> NDArray[np.uint8]:
    packed = rng.integers(0, 256, (n, packing.nbytes), dtype=np.uint8)
    if packing.bits == 4:  # thirteen levels, not sixteen
        packed[:] = (packed & 0x0F) % 13 | (packed >> 4) % 13 << 4
    return packing.unpack(packed)


def some_parts(rng: np.random.Generator, form: ObservationFormat, n: int) -> Frame:
    """Frames of a format with parts; an array of zeros, as before an episode, now and then."""
    frames = {name: some_values(rng, part, n) for name, part in form.parts}
    if form.screen is not None:
        frames[SCREEN] = some_screens(rng, form.screen, n)
    return {name: array * array.dtype.type(rng.random() > 0.2) for name, array in frames.items()}


class PartsEnv(gym.Env[Frame, np.int64]):
    """About a third of the timesteps end an episode, half of them by a limit."""

    def __init__(self, form: ObservationFormat, seed: int) -> None:
        self.observation_space: Any = form.frame_space
        self.action_space = spaces.Discrete(N_ACTIONS)
        self._format, self._rng = form, np.random.default_rng(seed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Frame, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        return self._frame(), {}

    def step(self, _action: np.int64) -> tuple[Frame, float, bool, bool, dict[str, Any]]:
        kind = self._rng.integers(6)
        return self._frame(), float(self._rng.normal()), kind == 0, kind == 1, {}

    def _frame(self) -> Frame:
        frames = some_parts(self._rng, self._format, 1)
        return {
            name: array[0].astype(self.observation_space[name].dtype)
            for name, array in frames.items()
        }


class NewestOfTheUnstacked(VecEnvWrapper):
    """VecFrameStack stacks every part; of those that are not to be stacked the newest stays."""

    def __init__(self, venv: VecEnv, form: ObservationFormat) -> None:
        super().__init__(venv, observation_space=form.space)
        self._format = form

    def reset(self) -> Any:
        return self._kept(self.venv.reset())

    def step_wait(self) -> VecEnvStepReturn:
        seen, rewards, dones, infos = self.venv.step_wait()
        for info in infos:
            if "terminal_observation" in info:
                alone = {k: a[None] for k, a in info["terminal_observation"].items()}
                kept = self._kept(alone)
                info["terminal_observation"] = {name: array[0] for name, array in kept.items()}
        return self._kept(seen), rewards, dones, infos

    def _kept(self, seen: Any) -> Frame:
        lengths = {name: space.shape[0] for name, space in self._format.space.items()}
        return {name: array[:, -lengths[name] :].copy() for name, array in seen.items()}


def parts_vec_env(form: ObservationFormat, *, n_envs: int, seed: int = 0) -> VecEnv:
    envs: list[Callable[[], gym.Env[Any, Any]]] = [
        partial(PartsEnv, form, seed + i) for i in range(n_envs)
    ]
    stacked = VecFrameStack(DummyVecEnv(envs), form.stack, channels_order="first")
    return NewestOfTheUnstacked(stacked, form)
