"""Batches drawn from a view of a Lake, bit for bit as a store of whole stacks would give them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import LakeError
from game_rl.lake.block import FIRST, TERMINATED, TRUNCATED, Columns
from game_rl.lake.block_cache import BlockCache, Frames
from game_rl.lake.block_table import n_seen
from game_rl.lake.schema import LakeSchema
from game_rl.lake.view import Indices, LakeView

_ENDED = TERMINATED | TRUNCATED


@dataclass(frozen=True)
class Batch:
    """Transitions of n steps, in the order in which they were drawn.

    With k the smallest of n, the timesteps until the episode's end and those that the view has:

    Attributes:
        stacks, next_stacks: uint8 [batch, frame_stack * C, H, W] at t and t + k; zeros before an
            episode's first frame; the true last observation where the episode ended.
        actions: [batch, *action_shape] at t.
        rewards: float32 [batch], sum of gamma^i r_{t+i} for i < k, as a Pond computes it.
        steps: k.
        terminated: the game was over then.
        discounts: float32 [batch], gamma^k, or 0 where the episode terminated: what the value of
            `next_stacks` counts.
        versions: of the policy that acted at t.
        streams: whose transition it is, a position in the view's `streams`.
        envs, numbers: with the stream, the transition's identity in every view of its Lake.
    """

    stacks: NDArray[np.uint8]
    actions: NDArray[np.generic]
    rewards: NDArray[np.float32]
    next_stacks: NDArray[np.uint8]
    steps: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    discounts: NDArray[np.float32]
    versions: NDArray[np.int64]
    streams: NDArray[np.int64]
    envs: NDArray[np.int64]
    numbers: NDArray[np.int64]


class Sampler:
    """Draws batches from one view; make a new one for a new view.

    What is drawn is a rank among the view's transitions, ordered by stream, env and number: the
    same generator draws the same transitions, however the Lake was cut into blocks and files. All
    draws are with replacement.

    Args:
        shares: part of the draws that each stream gets, whatever it has stored; streams that are
            not named get none. None: every transition is as likely as any other.

    Raises:
        LakeError: nothing can be drawn.
    """

    def __init__(
        self,
        view: LakeView,
        *,
        n_step: int = 1,
        gamma: float = 0.99,
        shares: Mapping[str, float] | None = None,
        cache_bytes: int = 64 << 20,
    ) -> None:
        if view.schema.arrays is not None:
            raise LakeError(
                f"the Lake has {view.schema.description}, and samples are drawn from Lakes of "
                "pictures alone; `game-rl replay export` makes a replay buffer of it"
            )
        if not len(view):
            raise LakeError("the Lake has no sealed transitions yet; let the writers seal first")
        self._view = view
        self._n_step = n_step
        self._gamma = gamma
        self._shares = None if shares is None else _shares_in_order(view, shares)
        self._cache = BlockCache(view, cache_bytes)

    def sample(self, rng: np.random.Generator, batch_size: int) -> Batch:
        """Draw transitions.

        Raises:
            EvictedError: a segment is gone; make a new view.
            LakeError: a block is damaged.
        """
        return self.take(self._drawn(rng, batch_size))

    def take(self, ranks: Indices) -> Batch:
        """The transitions of these ranks.

        Raises:
            EvictedError: a segment is gone; make a new view.
            LakeError: a block is damaged.
        """
        view, n = self._view, len(ranks)
        stacks = _Stacks(view.schema, 2 * n)
        batch = _empty(view.schema, stacks.pixels)
        numbers, records = view.find(ranks)
        places = ranks - records["edge"] + n_seen(records)
        batch.streams[:] = records["sequence"] >> 32
        batch.envs[:] = records["head"]["env"]
        batch.numbers[:] = records["head"]["first"].astype(np.int64)
        batch.numbers[:] += records["hidden"] + places
        rewards = np.zeros((n, self._n_step), np.float32)
        for i in np.argsort(-ranks, kind="stable").tolist():  # each block once, its last row first
            self._fill(batch, stacks, rewards, i, int(numbers[i]), int(places[i]))
        stacks.unpack()  # all at once, which is what takes the least time
        batch.rewards[:] = discounted_sums(rewards, batch.steps, self._gamma)
        batch.discounts[:] = _discounts(batch, self._gamma)
        return batch

    def _drawn(self, rng: np.random.Generator, n: int) -> Indices:
        if self._shares is None:
            return rng.integers(len(self._view), size=n)
        ends = self._view.stream_edges
        lengths = np.diff(ends, prepend=0)
        streams = rng.choice(len(ends), n, p=self._shares)
        return (ends - lengths)[streams] + rng.integers(lengths[streams])

    def _fill(
        self,
        batch: Batch,
        stacks: "_Stacks",
        rewards: NDArray[np.float32],
        i: int,
        number: int,
        place: int,
    ) -> None:
        """Row i of the batch.

        Single values, not arrays: of a Lake that is larger than the cache, most blocks are read for
        one row, and a call of NumPy takes as long for one value as for a hundred.
        """
        columns = self._cache.columns(number)
        row = int(columns.rows[place])
        batch.actions[i] = columns.actions[row]
        batch.versions[i] = columns.versions[row]
        walk = self._walk(number, place)
        rewards[i, : len(walk.rewards)] = walk.rewards
        batch.steps[i], batch.terminated[i] = len(walk.rewards), walk.terminated
        end = walk.next_row if walk.number == number else row
        frames = self._cache.frames(number, end + 1)
        stacks.put(i, columns, frames, row)
        if walk.number != number:
            frames = self._cache.frames(walk.number, walk.next_row + 1)
        stacks.put(len(rewards) + i, walk.columns, frames, walk.next_row)

    def _walk(self, number: int, place: int) -> "_Walk":
        """Up to n steps from a transition on, as far as its episode and the view go."""
        columns, flags, row = self._cache.columns(number), 0, 0
        rewards: list[np.float32] = []
        while len(rewards) < self._n_step and not flags & _ENDED:
            if place == len(columns.rows):
                if not self._view.record(number)["is_continued"]:
                    break
                following = self._cache.columns(number + 1)
                if following.begins_episode:
                    break  # a crash ended the episode before
                columns, number, place = following, number + 1, 0
            row = int(columns.rows[place])
            rewards.append(columns.rewards[row])
            flags = int(columns.flags[row])
            place += 1
        return _Walk(rewards, bool(flags & TERMINATED), number, columns, row + 1)


@dataclass(frozen=True)
class _Walk:
    """Consecutive transitions.

    Attributes:
        rewards: of each.
        terminated: the game was over after the last.
        number, columns, next_row: block and row of the frame that they led to.
    """

    rewards: list[np.float32]
    terminated: bool
    number: int
    columns: Columns
    next_row: int


def discounted_sums(
    rewards: NDArray[np.float32], lengths: Indices, gamma: float
) -> NDArray[np.float32]:
    """Float32 [batch] of rewards [batch, n_step], of which the first `lengths` count.

    In float32, in the order of `Pond.batch`.
    """
    n_step = rewards.shape[1]
    discounts = gamma ** np.arange(n_step, dtype=np.float32)
    counts = np.arange(n_step) < lengths[:, None]
    summed: NDArray[np.float32] = (rewards * discounts * counts).sum(axis=1)
    return summed


def _shares_in_order(view: LakeView, shares: Mapping[str, float]) -> NDArray[np.float64]:
    """Of the view's streams, float64 [streams] that sum to 1."""
    unknown = [name for name, share in shares.items() if share > 0 and name not in view.streams]
    if unknown:
        raise LakeError(
            f"{unknown[0]} has a share, but the Lake has the streams {', '.join(view.streams)}"
        )
    found = [shares.get(name, 0.0) for name in view.streams]
    if not sum(found) > 0:
        raise LakeError("no stream has a share; give at least one a positive share")
    return np.array([share / sum(found) for share in found])


class _Stacks:
    """Stacks of many blocks, packed until all are there.

    Attributes:
        pixels: uint8 [size, frame_stack * C, H, W], once they are unpacked; zeros before an
            episode's first frame.
    """

    def __init__(self, schema: LakeSchema, size: int) -> None:
        self._schema = schema
        self._packed = np.zeros((size, schema.frame_stack, schema.packing.nbytes), np.uint8)
        self._blank = np.ones((size, schema.frame_stack), np.bool_)
        self.pixels = np.empty((size, *schema.observation_shape), np.uint8)

    def put(self, place: int, columns: Columns, frames: Frames, row: int) -> None:
        """The one that ends at this row of a block."""
        n = self._schema.frame_stack
        flags = columns.flags[max(0, row + 1 - n) : row + 1].tolist()
        age = next(
            (age for age, flag in enumerate(reversed(flags)) if flag & FIRST), len(flags) - 1
        )
        self._packed[place, n - 1 - age :] = frames[row - age : row + 1]
        self._blank[place, n - 1 - age :] = False

    def unpack(self) -> None:
        pixels = self.pixels.reshape(*self._packed.shape[:2], -1)
        self._schema.packing.unpack_into(self._packed, pixels)
        pixels[self._blank] = 0


def _discounts(batch: Batch, gamma: float) -> NDArray[np.float32]:
    discounts: NDArray[np.float32] = gamma ** batch.steps.astype(np.float32)
    return np.where(batch.terminated, np.float32(0), discounts)


def _empty(schema: LakeSchema, pixels: NDArray[np.uint8]) -> Batch:
    """Its stacks are the first half of the pixels, its next stacks the second."""
    size = len(pixels) // 2
    return Batch(
        pixels[:size],
        np.empty((size, *schema.action_shape), schema.action_dtype),
        np.empty(size, np.float32),
        pixels[size:],
        np.empty(size, np.int64),
        np.empty(size, np.bool_),
        np.empty(size, np.float32),
        *(np.empty(size, np.int64) for _ in range(4)),
    )
