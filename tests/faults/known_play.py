"""Play that can be recomputed: timestep i of an env is a function of (seed, env, i).

A process that only knows the seed can therefore check bit for bit what a killed process wrote.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from game_rl.envs.packing import FramePacking
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.sampler import Sampler
from game_rl.lake.view import LakeView
from game_rl.lake.writer import LakeWriter

SCHEMA = LakeSchema(FramePacking((1, 36, 40), bits=2), block_frames=32)
_GOES_ON, _TERMINATED, _TRUNCATED = range(3)
_EPISODE = 12  # timesteps on average
_PICTURES = 64

Bytes = NDArray[np.uint8]
Starts = Collection[int]


@dataclass(frozen=True)
class KnownPlay:
    seed: int

    @cached_property
    def _pictures(self) -> Bytes:
        shape = (_PICTURES, SCHEMA.packing.nbytes)
        return np.random.default_rng(self.seed).integers(0, 256, shape).astype(np.uint8)

    def number(self, *of: int) -> int:
        """Return an arbitrary number that depends on the arguments and the seed only."""
        return crc32(np.array([self.seed, *of], np.int64).tobytes())

    def frame(self, env: int, i: int, *, is_last: bool = False) -> Bytes:
        """Return the frame before timestep i, or with `is_last` the one that ends its episode.

        No two frames are equal, because env and i are written into the picture.
        """
        packed = self._pictures[self.number(env, i, is_last, 0) % _PICTURES].copy()
        name = np.array([env * 2 + is_last, i], np.uint32).view(np.uint8)
        packed[: len(name)] = name
        return SCHEMA.packing.unpack(packed)

    def action(self, env: int, i: int) -> int:
        return self.number(env, i, 1) % 256

    def reward(self, env: int, i: int) -> float:
        return float(np.float32(self.number(env, i, 2) / 7))

    def ending(self, env: int, i: int) -> int:
        chance = self.number(env, i, 3) % (2 * _EPISODE)
        return chance if chance in (_TERMINATED, _TRUNCATED) else _GOES_ON

    def next_frame(self, env: int, i: int) -> Bytes:
        if self.ending(env, i):
            return self.frame(env, i, is_last=True)
        return self.frame(env, i + 1)

    def stack(self, env: int, i: int, starts: Starts) -> Bytes:
        """Return the stack before timestep i, with zeros before the first frame of its episode.

        Episodes also begin at the timesteps in `starts`.
        """
        frames = [self.frame(env, i)]
        while len(frames) < SCHEMA.frame_stack and self._goes_on_to(env, i, starts):
            i -= 1
            frames.insert(0, self.frame(env, i))
        blank = np.zeros_like(frames[0])
        return np.concatenate([blank] * (SCHEMA.frame_stack - len(frames)) + frames)

    def _goes_on_to(self, env: int, i: int, starts: Starts) -> bool:
        return i > 0 and i not in starts and not self.ending(env, i - 1)

    def write(self, writer: LakeWriter, at: NDArray[np.int64]) -> None:
        """Write timestep at[env] of each env and advance `at`."""
        envs = range(len(at))
        numbers = at.tolist()
        endings = np.array([self.ending(env, i) for env, i in zip(envs, numbers, strict=True)])
        pairs = list(zip(envs, numbers, strict=True))
        writer.append(
            frames=np.stack([self.frame(*pair) for pair in pairs]),
            actions=np.array([self.action(*pair) for pair in pairs], np.uint8),
            rewards=np.array([self.reward(*pair) for pair in pairs], np.float32),
            next_frames=np.stack([self.next_frame(*pair) for pair in pairs]),
            terminated=endings == _TERMINATED,
            truncated=endings == _TRUNCATED,
        )
        at += 1

    def wrong(self, view: LakeView, starts: Mapping[int, Starts]) -> tuple[int, int]:
        """Return the number of transitions in a view, and how many differ from what was played.

        Args:
            view: view to check.
            starts: for each env, the timesteps at which episodes began after a kill of the process.

        Raises:
            LakeError: a file is damaged, so nothing of it was served.
        """
        wrong = 0
        for n, end in zip(view.n_transitions.tolist(), view.edges.tolist(), strict=True):
            batch = Sampler(view).take(np.arange(end - n, end))
            for place in range(n):
                env, i = int(batch.envs[place]), int(batch.numbers[place])
                stack = self.stack(env, i, starts.get(env, ()))
                is_right = (
                    np.array_equal(batch.stacks[place], stack)
                    and np.array_equal(
                        batch.next_stacks[place],
                        np.concatenate([stack[1:], self.next_frame(env, i)]),
                    )
                    and batch.actions[place] == self.action(env, i)
                    and batch.rewards[place] == np.float32(self.reward(env, i))
                    and (batch.discounts[place] == 0) == (self.ending(env, i) == _TERMINATED)
                )
                wrong += not is_right
        return len(view), wrong
