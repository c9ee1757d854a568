"""A dumb Lake: whole stacks in a list, and the play that fills both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.envs.packing import FramePacking
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.sampler import Batch, Sampler
from game_rl.lake.view import LakeView
from game_rl.lake.writer import LakeWriter

Bytes = NDArray[np.uint8]
SCHEMA = LakeSchema(FramePacking((1, 3, 5), bits=2), frame_stack=3, block_frames=7)


@dataclass(frozen=True)
class Transition:
    stack: Bytes
    action: Any
    reward: float
    next_stack: Bytes
    terminated: bool
    truncated: bool
    version: int
    is_cut: bool = False  # a crash came before the next timestep


def some_frames(rng: np.random.Generator, schema: LakeSchema, n: int) -> Bytes:
    """Frames that the schema's packing holds."""
    packing = schema.packing
    codes = rng.integers(0, 256, (n, packing.nbytes)).astype(np.uint8)
    if packing.bits == 4:  # thirteen levels, not sixteen
        codes = (codes // 16 % 13 * 16 + codes % 13).astype(np.uint8)
    return packing.unpack(codes)


@dataclass
class Play:
    """Random episodes of some envs; what a writer is given is also kept whole, by sequence.

    Attributes:
        stored: of each env, all its transitions in order.
    """

    schema: LakeSchema
    rng: np.random.Generator
    n_envs: int = 1
    end_chance: float = 0.15
    stored: list[list[Transition]] = field(default_factory=list)
    version: int = 0

    def __post_init__(self) -> None:
        self.stored = [[] for _ in range(self.n_envs)]
        self.stacks = np.zeros((self.n_envs, *self.schema.observation_shape), np.uint8)
        self.idle = list(range(self.n_envs))

    def _reset(self) -> None:
        if self.idle:
            frames = some_frames(self.rng, self.schema, len(self.idle))
            for env, frame in zip(self.idle, frames, strict=True):
                self.stacks[env] = 0
                self.stacks[env, -len(frame) :] = frame
            self.idle = []

    def step(self, writer: LakeWriter) -> None:
        self._reset()
        n, rng, schema = self.n_envs, self.rng, self.schema
        channels = schema.packing.shape[0]
        actions = rng.integers(0, 200, (n, *schema.action_shape)).astype(schema.action_dtype)
        rewards = rng.normal(size=n).astype(np.float32)
        terminated = rng.random(n) < self.end_chance / 2
        truncated = rng.random(n) < self.end_chance / 2
        frames = some_frames(rng, schema, n)
        writer.append(
            observations=self.stacks,
            frames=self.stacks[:, -channels:],
            actions=actions,
            rewards=rewards,
            next_frames=frames,
            terminated=terminated,
            truncated=truncated,
            version=self.version,
        )
        for env in range(n):
            next_stack = np.concatenate([self.stacks[env, channels:], frames[env]])
            self.stored[env].append(
                Transition(
                    self.stacks[env].copy(),
                    actions[env],
                    float(rewards[env]),
                    next_stack,
                    bool(terminated[env]),
                    bool(truncated[env]),
                    self.version,
                )
            )
            self.stacks[env] = next_stack
        self.idle = np.flatnonzero(terminated | truncated).tolist()

    def steps(self, writer: LakeWriter, n: int) -> None:
        for _ in range(n):
            self.step(writer)


def everything(view: LakeView, **keywords: Any) -> tuple[Batch, list[tuple[str, int]]]:
    """Every transition of the view in order, and of each its sequence and its number there."""
    batch = Sampler(view, **keywords).take(np.arange(len(view)))
    return batch, identities(view, batch)


def identities(view: LakeView, batch: Batch) -> list[tuple[str, int]]:
    """Of each row, its sequence and its number there."""
    rows = zip(batch.streams.tolist(), batch.envs.tolist(), batch.numbers.tolist(), strict=True)
    return [(f"{view.streams[stream]}/{env}", number) for stream, env, number in rows]


def expected(
    rows: Sequence[Transition], known: set[int], at: int, *, n_step: int, gamma: float
) -> tuple[float, Bytes, float]:
    """Reward, next stack and discount of n steps from a list, one step at a time.

    `known`: numbers of those rows that were not evicted; n steps end before one that was.
    """
    total, discount = 0.0, 1.0
    n_known = next(n for n in range(1, n_step + 1) if n == n_step or at + n not in known)
    for row in rows[at : at + n_known]:
        total += discount * row.reward
        discount *= gamma
        if row.terminated or row.truncated:
            return total, row.next_stack, 0.0 if row.terminated else discount
        if row.is_cut:
            return total, row.next_stack, discount
    return total, row.next_stack, discount


def assert_view_holds(
    view: LakeView,
    sequences: Mapping[str, Sequence[Transition]],
    *,
    n_step: int = 1,
    gamma: float = 0.9,
    ends: dict[str, int] | None = None,
    cache_bytes: int = 64 << 20,
) -> set[tuple[str, int]]:
    """Whatever the view has is what the lists have; returns what it has.

    `ends`: of each sequence, how many of its transitions the view may know; all if not given.
    """
    if not len(view):
        return set()
    batch, where = everything(view, n_step=n_step, gamma=gamma, cache_bytes=cache_bytes)
    assert len(set(where)) == len(where), "a transition is there twice"
    known: dict[str, set[int]] = {}
    for sequence, at in where:
        known.setdefault(sequence, set()).add(at)
    for i, (sequence, at) in enumerate(where):
        rows = sequences[sequence][: ends[sequence]] if ends else sequences[sequence]
        row = rows[at]
        reward, next_stack, discount = expected(
            rows, known[sequence], at, n_step=n_step, gamma=gamma
        )
        np.testing.assert_array_equal(batch.stacks[i], row.stack)
        np.testing.assert_array_equal(batch.actions[i], row.action)
        np.testing.assert_array_equal(batch.next_stacks[i], next_stack)
        np.testing.assert_allclose(batch.rewards[i], reward, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(batch.discounts[i], discount, rtol=1e-6)
        assert batch.versions[i] == row.version
    return set(where)
