"""Environments for the workers of these tests; nothing here imports torch."""
# ruff: noqa: ARG002 - Gymnasium's signatures

import os
import signal
import sys
import threading
from collections.abc import Collection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from game_rl.errors import RomError

SHAPE = (2, 6, 5)


def processes_of(vec_env: Any) -> list[BaseProcess]:
    """The processes of the workers of ours, or of ours in wrappers."""
    found: list[BaseProcess] = vec_env.unwrapped.processes
    return found


class RandomEpisodes(gym.Env):
    """Random pictures, rewards, ends and infos that depend on the seed and on every action.

    Rewards are multiples of 1/8, so that sums are exact in float32 too.
    """

    observation_space = spaces.Box(0, 255, SHAPE, np.uint8)
    action_space = spaces.Discrete(4)

    def __init__(self, shared: object = None) -> None:
        self.render_mode = "rgb_array"
        self.shared_id = id(shared)
        self.reset_calls: list[tuple[int | None, dict | None]] = []
        self.colour = 7
        self.unpicklable = lambda: None

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        super().reset(seed=seed)
        self.reset_calls.append((seed, options))
        return self._picture(0), {"start": int(self.np_random.integers(9)), "options": options}

    def step(self, action: int) -> tuple:
        random = self.np_random
        info = {"note": int(action)} if random.random() < 0.2 else {}
        reward = float(random.integers(-8, 9)) / 8 + int(action)
        terminated, truncated = bool(random.random() < 0.05), bool(random.random() < 0.05)
        return self._picture(action), reward, terminated, truncated, info

    def render(self) -> np.ndarray:
        return np.full((4, 3, 3), self.colour, np.uint8)

    def add(self, first: int, *, second: int) -> int:
        return first + second + self.colour

    def pid(self) -> int:
        return os.getpid()

    def variable(self, name: str) -> str | None:
        return os.environ.get(name)

    def _picture(self, action: int) -> np.ndarray:
        picture = self.np_random.integers(0, 256, SHAPE, dtype=np.uint8)
        picture[0, 0, 0] = action
        return picture


class Numbers(RandomEpisodes):
    """An observation is one number."""

    observation_space: Any = spaces.Discrete(50, start=-3)

    def _picture(self, action: int) -> Any:
        return self.np_random.integers(-3, 47)


class FourShades(RandomEpisodes):
    """Pictures that two bits a pixel can hold."""

    def _picture(self, action: int) -> np.ndarray:
        return (super()._picture(action) % 4 * 85).astype(np.uint8)


class Spotted(FourShades):
    """One pixel of 99 in the first picture, in an episode's last one, or in the one before."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        self._timesteps = 0
        picture, info = super().reset(seed=seed, options=options)
        return self._spotted(picture, "first"), info

    def step(self, action: int) -> tuple:
        self._timesteps += 1
        picture, reward, _, _, info = super().step(action)
        is_last = self._timesteps == 3
        where = "last" if is_last else "before" if self._timesteps == 2 else ""
        return self._spotted(picture, where), reward, is_last, False, info

    def _spotted(self, picture: np.ndarray, where: str) -> np.ndarray:
        picture[1, 3, 2] = 99 if where == self._where else 0
        return picture


class TracedWrapper(gym.Wrapper):
    pass


class NarrowTracedWrapper(TracedWrapper):
    pass


def wrapped() -> gym.Env:
    return gym.wrappers.TimeLimit(NarrowTracedWrapper(RandomEpisodes()), 1_000)


class Continuous(gym.Env):
    """Shows the last action."""

    observation_space = spaces.Box(-1, 1, (3,), np.float32)
    action_space = spaces.Box(-1, 1, (3,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        return np.zeros(3, np.float32), {}

    def step(self, action: np.ndarray) -> tuple:
        return action, 0.0, False, False, {}


class Careless(gym.Env):
    """Gives the same array every time, and ends each episode after three timesteps."""

    observation_space = spaces.Box(0, 255, (1,), np.uint8)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self._picture = np.zeros(1, np.uint8)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        self._picture[:] = 0
        return self._picture, {}

    def step(self, action: int) -> tuple:
        self._picture += 1
        return self._picture, 0.0, bool(self._picture[0] == 3), False, {}


class Wrong(Continuous):
    """Breaks one promise at its first step."""

    def __init__(self, what: str) -> None:
        self._what = what

    def step(self, action: np.ndarray) -> tuple:
        reward = float("nan") if self._what == "reward" else 0.0
        if self._what == "shape":
            action = action[:1]
        if self._what == "dtype":
            action = action.astype(np.float64)
        return action, reward, False, False, {}


def misbehave(fault: str) -> None:
    match fault:
        case "ValueError":
            raise ValueError("the ROM exploded")
        case "EOFError":
            raise EOFError("a truncated file")
        case "SystemExit":
            sys.exit("out of patience")
        case "KeyboardInterrupt":
            raise KeyboardInterrupt
        case "RomError":
            raise RomError("bad.gb is not a ROM")
        case "exit":
            os._exit(7)
        case "SIGKILL" | "SIGSEGV" | "SIGSTOP":
            os.kill(os.getpid(), signal.Signals[fault])
            threading.Event().wait()
        case "hang":
            threading.Event().wait()


class Faulty(RandomEpisodes):
    """Does `fault` in `where`; leaves a file in `trace` when it is closed."""

    def __init__(self, number: int, *, fault: str, where: str, trace: Path) -> None:
        super().__init__()
        self._faults = {where: fault}
        self._trace = trace / f"closed_{number}"
        self._meet("constructor")

    def reset(self, **kwargs: Any) -> tuple:
        self._meet("reset")
        return super().reset(**kwargs)

    def step(self, action: int) -> tuple:
        self._meet("step")
        return super().step(action)

    def ask(self) -> None:
        self._meet("ask")

    def close(self) -> None:
        self._meet("close")
        self._trace.touch()

    def _meet(self, where: str) -> None:
        if where in self._faults:
            misbehave(self._faults[where])


class Mortal(RandomEpisodes):
    """Does `fault` in the `where` of these counts, over all processes that have held it.

    `tally` is a file whose length is the count: it survives the process.
    """

    def __init__(self, *, fault: str, where: str, at: Collection[int], tally: Path) -> None:
        super().__init__()
        self._fault, self._where, self._at, self._tally = fault, where, at, tally
        self._meet("constructor")

    def reset(self, **kwargs: Any) -> tuple:
        self._meet("reset")
        return super().reset(**kwargs)

    def step(self, action: int) -> tuple:
        self._meet("step")
        return super().step(action)

    def ask(self) -> str:
        self._meet("ask")
        return "answer"

    def _meet(self, where: str) -> None:
        if where == self._where:
            with self._tally.open("a", encoding="utf-8") as file:
                file.write("x")
                count = file.tell()
            if count in self._at:
                misbehave(self._fault)


class Interrupting(RandomEpisodes):
    """Sends Ctrl-C to the parent in the third step."""

    def __init__(self, parent: int) -> None:
        super().__init__()
        self._parent = parent
        self.steps = 0

    def step(self, action: int) -> tuple:
        self.steps += 1
        if self.steps == 3:
            os.kill(self._parent, signal.SIGINT)
        return super().step(action)


class Loud(RandomEpisodes):
    """Says on stdout that it hangs, and hangs."""

    def step(self, action: int) -> tuple:
        os.write(1, b"hanging\n")
        threading.Event().wait()
        return super().step(action)
