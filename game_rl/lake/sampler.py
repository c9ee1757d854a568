"""Draws batches from a view of a Lake, bit for bit equal to those from a store of whole stacks."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from game_rl.envs.observation import Observation, ObservationFormat, rows_of
from game_rl.errors import LakeError
from game_rl.lake.block import (
    FIRST,
    JUMP,
    TERMINATED,
    TRUNCATED,
    Columns,
    DamagedBlockError,
    FirstFrames,
)
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.view import Indices, LakeView, n_seen
from game_rl.returns import LearnedRewards, discounted_sums


def observation_format_of(schema: LakeSchema) -> ObservationFormat:
    """Return the format of the observations in a Lake of pictures or of parts.

    It is the one from which `LakeSchema.of` made the schema. A function here and no property there,
    because a format needs gymnasium, which the uploader's process does without.
    """
    assert schema.arrays is None
    if schema.parts is None:
        return ObservationFormat(schema.packing, schema.frame_stack)
    return ObservationFormat(schema.parts.screen, schema.frame_stack, schema.parts.parts)


Frames = NDArray[np.uint8]


class BlockCache:
    """Keeps the first blocks that are requested, as long as there is room, and evicts none.

    Draws are uniform, so a block that was requested last is no more likely to be requested again
    than one that was requested first, and keeping the first costs nothing when others are read.
    Blocks that are not kept are decompressed only as far as rows need them, into a buffer that is
    reused. With a new buffer for each block this took up to twice the time, because new memory is
    in no CPU cache.

    Args:
        limit_bytes: the most memory that kept blocks may take.

    Attributes:
        n_bytes: memory that kept blocks take.

    Raises:
        EvictedError: from any method, if the block's segment is gone.
        LakeError: from any method, if the block is damaged.
    """

    def __init__(self, view: LakeView, limit_bytes: int) -> None:
        self._view = view
        self._row_bytes = view.schema.row_bytes
        self._limit_bytes = limit_bytes
        self.n_bytes = 0
        self._kept: dict[int, tuple[Columns, Frames]] = {}
        self._first_frames = FirstFrames(view.schema)
        self._number = -1  # the last block that was requested and is not kept
        self._data = b""  # its bytes
        self._found: tuple[Columns, Frames] | None = None  # its columns, and frames decoded so far

    def columns(self, number: int) -> Columns:
        return self._block(number)[0]

    def frames(self, number: int, end: int) -> Frames:
        """Return at least the first `end` frames of a block, uint8 [rows, packing.nbytes].

        They are valid until another block is requested.
        """
        columns, frames = self._block(number)
        if len(frames) < end:
            head = self._view.record(number)["head"]
            try:
                frames = self._first_frames.decode(head, self._data, end)
            except DamagedBlockError as error:
                raise self._view.damaged_block(number, error) from None
            self._found = columns, frames
        return frames

    def _block(self, number: int) -> tuple[Columns, Frames]:
        if (kept := self._kept.get(number)) is not None:
            return kept
        if self._number == number and self._found is not None:
            return self._found
        if self.n_bytes + self._bytes_of(number) <= self._limit_bytes:
            return self._keep(number)
        self._found = None
        self._data = self._view.whole(number)
        columns = self._view.columns_of(number, self._data)
        self._number = number
        self._found = (columns, np.empty((0, 0), np.uint8))
        return self._found

    def _keep(self, number: int) -> tuple[Columns, Frames]:
        block = self._view.block(number)
        self.n_bytes += block.nbytes
        self._kept[number] = block.columns, block.frames
        return self._kept[number]

    def _bytes_of(self, number: int) -> int:
        """Return what `Block.nbytes` of this block will be."""
        return int(self._view.record(number)["head"]["n_rows"]) * self._row_bytes


_ENDED = TERMINATED | TRUNCATED


@dataclass(frozen=True)
class Batch:
    """n-step transitions, in the order in which they were drawn.

    A transition at timestep t has k steps. k is n, or fewer if the episode or the view's rows end
    before.

    Attributes:
        stacks, next_stacks: uint8 [batch, frame_stack * C, H, W] at t and t + k, or a dict of such
            arrays of parts; zeros before an episode's first frame; the true last observation where
            the episode ended, or the next episode's first one if the Lake was imported without it.
        actions: [batch, *action_shape] at t.
        rewards: float32 [batch], sum of gamma^i r_{t+i} for i < k, as a Pond computes it.
        steps: k of each transition.
        terminated: whether the game was over after the k steps.
        discounts: float32 [batch], the factor of the value of `next_stacks`: gamma^k, or 0 where
            the episode terminated.
        versions: version of the policy that acted at t.
        streams: position of the transition's stream in the view's `streams`.
        envs, numbers: with the stream, the transition's identity in every view of its Lake.
    """

    stacks: Observation
    actions: NDArray[np.generic]
    rewards: NDArray[np.float32]
    next_stacks: Observation
    steps: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    discounts: NDArray[np.float32]
    versions: NDArray[np.int64]
    streams: NDArray[np.int64]
    envs: NDArray[np.int64]
    numbers: NDArray[np.int64]


class Sampler:
    """Draws batches from one view; make a new Sampler for a new view.

    It draws ranks among the view's transitions, which are ordered by stream, env and number. So the
    same generator draws the same transitions, however the Lake was cut into blocks and files. All
    draws are with replacement.

    Args:
        shares: share of the draws that each stream gets, whatever its length; streams that are not
            named get none. If None, all transitions are equally likely.
        cache_bytes: memory for blocks that are kept decompressed.
        learned: is applied to each transition's reward, before they are summed.

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
        learned: LearnedRewards | None = None,
    ) -> None:
        if view.schema.arrays is not None:
            raise LakeError(
                f"the Lake has {view.schema.description}, and samples are drawn from Lakes of "
                "pictures only; `game-rl replay export` turns the Lake into a replay buffer"
            )
        if not len(view):
            raise LakeError("the Lake has no sealed transitions yet; let the writers seal first")
        self._view = view
        self._n_step = n_step
        self._gamma = gamma
        self._learned = learned
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
        """Return the transitions with these ranks.

        Raises:
            EvictedError: a segment is gone; make a new view.
            LakeError: a block is damaged.
        """
        view = self._view
        n = len(ranks)
        stacks = _Stacks(view.schema, 2 * n)
        batch = _empty(view.schema, n)
        numbers, records = view.find(ranks)
        places = ranks - records["edge"] + n_seen(records)
        batch.streams[:] = records["sequence"] >> 32
        batch.envs[:] = records["head"]["env"]
        batch.numbers[:] = records["head"]["first"].astype(np.int64)
        batch.numbers[:] += records["hidden"] + places
        rewards = np.zeros((n, self._n_step), np.float32)
        for i in np.argsort(-ranks, kind="stable").tolist():  # each block once, its last row first
            self._fill(batch, stacks, rewards, i, int(numbers[i]), int(places[i]))
        both = stacks.unpacked()  # all at once, because that is fastest
        if self._learned is not None:
            rewards = self._learned(rewards)
        batch.rewards[:] = discounted_sums(rewards, batch.steps, gamma=self._gamma)
        batch.discounts[:] = _discounts(batch, self._gamma)
        return replace(
            batch, stacks=rows_of(both, slice(None, n)), next_stacks=rows_of(both, slice(n, None))
        )

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
        """Fill row i of the batch.

        This handles single values, not arrays: in a Lake that is larger than the cache, most blocks
        are read for one row, and a NumPy call takes as long for one value as for a hundred.
        """
        columns = self._cache.columns(number)
        row = int(columns.rows[place])
        batch.actions[i] = columns.actions[row]
        batch.versions[i] = columns.versions[row]
        walk = self._walk(number, place)
        rewards[i, : len(walk.rewards)] = walk.rewards
        batch.steps[i] = len(walk.rewards)
        batch.terminated[i] = walk.terminated
        end = walk.next_row if walk.number == number else row
        frames = self._cache.frames(number, end + 1)
        stacks.put(i, columns, frames, row)
        if walk.number != number:
            frames = self._cache.frames(walk.number, walk.next_row + 1)
        stacks.put(len(rewards) + i, walk.columns, frames, walk.next_row)

    def _walk(self, number: int, place: int) -> "_Walk":
        """Walk up to n steps from a transition, until its episode or the view's rows end."""
        columns = self._cache.columns(number)
        flags = 0
        row = 0
        rewards: list[np.float32] = []
        while len(rewards) < self._n_step and not flags & _ENDED:
            if place == len(columns.rows):
                if not self._view.record(number)["is_continued"]:
                    break
                following = self._cache.columns(number + 1)
                if following.begins_episode:
                    break  # the episode was cut off by a crash
                columns = following
                number = number + 1
                place = 0
            row = int(columns.rows[place])
            rewards.append(columns.rewards[row])
            flags = int(columns.flags[row])
            place += 1
        row += 1
        if flags & JUMP:
            if place == len(columns.rows) and self._view.record(number)["is_continued"]:
                columns = self._cache.columns(number + 1)
                number = number + 1
                place = 0
            row = int(columns.rows[place]) if place < len(columns.rows) else row
        return _Walk(rewards, bool(flags & TERMINATED), number, columns, row)


@dataclass(frozen=True)
class _Walk:
    """Consecutive transitions.

    Attributes:
        rewards: reward of each transition.
        terminated: whether the game was over after the last one.
        number, columns, next_row: block and row of the frame that they led to.
    """

    rewards: list[np.float32]
    terminated: bool
    number: int
    columns: Columns
    next_row: int


def _shares_in_order(view: LakeView, shares: Mapping[str, float]) -> NDArray[np.float64]:
    """Return the shares of the view's streams, float64 [streams] with a sum of 1."""
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
    """Stacks from many blocks, which stay packed until all are there."""

    def __init__(self, schema: LakeSchema, size: int) -> None:
        self._schema = schema
        self._packed = np.zeros((size, schema.frame_stack, schema.packing.nbytes), np.uint8)
        self._blank = np.ones((size, schema.frame_stack), np.bool_)

    def put(self, place: int, columns: Columns, frames: Frames, row: int) -> None:
        """Store the stack that ends at this row of a block."""
        n = self._schema.frame_stack
        flags = columns.flags[max(0, row + 1 - n) : row + 1].tolist()
        age = next(
            (age for age, flag in enumerate(reversed(flags)) if flag & FIRST), len(flags) - 1
        )
        self._packed[place, n - 1 - age :] = frames[row - age : row + 1]
        self._blank[place, n - 1 - age :] = False

    def unpacked(self) -> Observation:
        """Return the observations; zeros before an episode's first frame."""
        if self._schema.parts is not None:  # rows of zeros are zeros in every part
            return observation_format_of(self._schema).unpack_stacks(self._packed)
        stacks = np.empty((len(self._packed), *self._schema.observation_shape), np.uint8)
        pixels = stacks.reshape(*self._packed.shape[:2], -1)
        self._schema.packing.unpack_into(self._packed, pixels)
        pixels[self._blank] = 0
        return stacks


def _discounts(batch: Batch, gamma: float) -> NDArray[np.float32]:
    discounts: NDArray[np.float32] = gamma ** batch.steps.astype(np.float32)
    return np.where(batch.terminated, np.float32(0), discounts)


def _empty(schema: LakeSchema, size: int) -> Batch:
    """Allocate a batch without its observations."""
    nothing = np.empty(0, np.uint8)
    return Batch(
        nothing,
        np.empty((size, *schema.action_shape), schema.action_dtype),
        np.empty(size, np.float32),
        nothing,
        np.empty(size, np.int64),
        np.empty(size, np.bool_),
        np.empty(size, np.float32),
        *(np.empty(size, np.int64) for _ in range(4)),
    )
