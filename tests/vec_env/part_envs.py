"""Environments whose observations and actions have parts; nothing here imports torch."""
# ruff: noqa: ARG002 - Gymnasium's signatures

from collections import OrderedDict
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.games.parts.part_format import PartFormat, Stretch

SINGLE: dict[str, spaces.Space[Any]] = {
    "picture": spaces.Box(0, 255, (2, 3, 4), np.uint8),
    "numbers": spaces.Box(-1, 1, (5,), np.float32),
    "one number": spaces.Box(-1, 1, (), np.float64),
    "discrete": spaces.Discrete(50, start=-3),
    "discrete in bytes": spaces.Discrete(7, dtype=np.uint8),
    "multidiscrete": spaces.MultiDiscrete([2, 300]),
    "multibinary": spaces.MultiBinary(3),
}
IN_PARTS: dict[str, spaces.Space[Any]] = {
    "dict": spaces.Dict(SINGLE),
    "dict in its own order": spaces.Dict(OrderedDict(reversed(SINGLE.items()))),
    "tuple": spaces.Tuple(tuple(SINGLE.values())),
    "tuple of one": spaces.Tuple((SINGLE["discrete"],)),
}


def drawn(space: spaces.Space[Any], rng: np.random.Generator) -> Any:
    """A value of `space`; dicts come in a random order of their keys."""
    if isinstance(space, spaces.Dict):
        keys = rng.permutation(list(space.spaces)).tolist()
        return {key: drawn(space[key], rng) for key in keys}
    if isinstance(space, spaces.Tuple):
        return tuple(drawn(each, rng) for each in space)
    space.seed(int(rng.integers(2**31)))
    return space.sample()


class PartEpisodes(gym.Env):
    """Random observations, rewards, ends and infos that depend on the seed and on every action."""

    def __init__(self, space: spaces.Space[Any], actions: spaces.Space[Any] | None = None) -> None:
        self.observation_space = space
        self.action_space = actions or spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        super().reset(seed=seed)
        return drawn(self.observation_space, self.np_random), {"first": self._number()}

    def step(self, action: Any) -> tuple:
        assert self.action_space.contains(action), action
        random = self.np_random
        reward = self._number() / 8 + _sum(action)
        ends = bool(random.random() < 0.1), bool(random.random() < 0.1)
        info = {"note": str(action)} if random.random() < 0.2 else {}
        return drawn(self.observation_space, random), reward, *ends, info

    def _number(self) -> int:
        return int(self.np_random.integers(-8, 9))


def _sum(action: Any) -> float:
    parts = action.values() if isinstance(action, dict) else action
    return float(sum(map(np.sum, parts))) if isinstance(action, dict | tuple) else float(action)


FORMAT = ObservationFormat(
    FramePacking((1, 6, 4), bits=2),
    3,
    (
        ("grid", PartFormat.of_indices("grid", (1, 3, 3), 3)),
        ("recent", PartFormat.of_indices("categories", (2,), 300, is_stacked=True)),
        ("status", PartFormat("vector", (10,), 0, (Stretch(2, 32), Stretch(8, 1)))),
    ),
)


class Parts(PartEpisodes):
    """Frames of FORMAT, in arrays that the env uses again."""

    def __init__(self) -> None:
        super().__init__(FORMAT.frame_space)
        space = self.observation_space
        assert isinstance(space, spaces.Dict)
        self._frame = {key: np.zeros(part.shape, part.dtype) for key, part in space.items()}

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        _, info = super().reset(seed=seed)
        return self._drawn(), info

    def step(self, action: Any) -> tuple:
        _, *others = super().step(action)
        return self._drawn(), *others

    def _drawn(self) -> dict[str, Any]:
        row = self.np_random.integers(256, size=FORMAT.row_bytes, dtype=np.uint8)
        row[FORMAT.columns["grid"]] &= 0b10_10_10_10
        row[FORMAT.columns["status"]][:8] = np.float32(self.np_random.random(2)).view(np.uint8)
        row[FORMAT.columns["recent"]][1::2] = 0
        frame = FORMAT.unpack(row)
        assert isinstance(frame, dict)
        for key, array in self._frame.items():
            array[...] = frame[key]
        return self._frame


class Unfit(gym.Env):
    """Gives `wrong` as its first observation, as one of a step, or as the last of an episode."""

    action_space = spaces.Discrete(2)

    def __init__(self, space: spaces.Space[Any], wrong: Any, where: str) -> None:
        self.observation_space = space
        self._wrong, self._where = wrong, where

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        super().reset(seed=seed)
        return self._given("reset"), {}

    def step(self, action: int) -> tuple:
        is_last = self._where == "last"
        return self._given(self._where), 0.0, is_last, False, {}

    def _given(self, where: str) -> Any:
        space = self.observation_space
        return self._wrong if where == self._where else drawn(space, np.random.default_rng(0))


class Stained(Parts):
    """A value of one part cannot be stored: in the first frame, in a later one or in the last."""

    def __init__(self, part: str, value: float, where: str) -> None:
        super().__init__()
        self._part, self._value, self._where = part, value, where

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        frame, info = super().reset(seed=seed)
        return self._stained(frame, "first"), info

    def step(self, action: Any) -> tuple:
        frame, reward, *_, info = super().step(action)
        where = "last" if self._where == "last" else "later"
        return self._stained(frame, where), reward, where == "last", False, info

    def _stained(self, frame: dict[str, Any], where: str) -> dict[str, Any]:
        if where == self._where:
            frame[self._part].flat[-1] = self._value
        return frame


class PartsOfGame(gym.Wrapper):
    """A game's picture with parts that are computed from it."""

    def __init__(self, env: gym.Env, observation_format: ObservationFormat) -> None:
        super().__init__(env)
        self.observation_space = observation_format.frame_space

    def reset(self, **kwargs: Any) -> tuple:
        picture, info = self.env.reset(**kwargs)
        return _parts_of(picture), info

    def step(self, action: Any) -> tuple:
        picture, *others = self.env.step(action)
        return _parts_of(picture), *others


def _parts_of(picture: np.ndarray) -> dict[str, np.ndarray]:
    total, flags = int(picture.sum()), picture[0, :2, :4].ravel() > 128
    numbers = np.array([total / picture.size, picture.var(), *flags], np.float32)
    recent = np.array([total % 300, total // 300 % 300], np.int32)
    grid = (picture[:, 10:13, 10:13] % 3).astype(np.uint8)
    return {"screen": picture, "status": numbers, "recent": recent, "grid": grid}


def of_game(screen: FramePacking | None, stack: int) -> ObservationFormat:
    """The format of PartsOfGame."""
    return ObservationFormat(screen, stack, FORMAT.parts)
