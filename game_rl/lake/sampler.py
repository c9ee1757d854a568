"""Batches drawn from a view of a Lake, bit for bit as a store of whole stacks would give them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import LakeError
from game_rl.lake.block import FIRST, TERMINATED, TRANSITION, TRUNCATED, Block
from game_rl.lake.schema import LakeSchema
from game_rl.lake.view import BlockCache, Indices, LakeView

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
        batch = _empty(self._view.schema, len(ranks))
        stacks = _PackedStacks(self._view.schema, 2 * len(ranks))
        numbers, places = self._view.places(ranks)
        batch.streams[:] = self._view.block_sequences[numbers] >> 32
        rewards = np.zeros((len(ranks), self._n_step), np.float32)
        done = np.zeros(len(ranks), np.bool_)
        for i in np.argsort(numbers, kind="stable").tolist():  # each block once
            number, place = int(numbers[i]), int(places[i])
            done[i] = self._fill_one(batch, stacks, rewards, i, number, place)
        batch.rewards[done] = discounted_sums(rewards[done], batch.steps[done], self._gamma)
        for number in np.unique(numbers[~done]).tolist():
            chosen = np.flatnonzero((numbers == number) & ~done)
            self._fill(batch, stacks, chosen, number, places[chosen])
        pixels = stacks.unpacked()  # of all at once, which is what takes the least time
        batch.stacks[:], batch.next_stacks[:] = pixels[: len(ranks)], pixels[len(ranks) :]
        batch.discounts[:] = _discounts(batch, self._gamma)
        return batch

    def _drawn(self, rng: np.random.Generator, n: int) -> Indices:
        if self._shares is None:
            return rng.integers(len(self._view), size=n)
        ends = self._view.stream_edges
        lengths = np.diff(ends, prepend=0)
        streams = rng.choice(len(ends), n, p=self._shares)
        return (ends - lengths)[streams] + rng.integers(lengths[streams])

    def _fill_one(
        self,
        batch: Batch,
        stacks: "_PackedStacks",
        rewards: NDArray[np.float32],
        i: int,
        number: int,
        place: int,
    ) -> bool:
        """Row i of the batch, if its timesteps are all in one block, as nearly all are.

        Single values, not arrays: of a Lake that is larger than the cache, most blocks are read for
        one row, and a call of NumPy takes as long for one value as for a hundred.
        """
        block = self._cache[number]
        columns = block.columns
        row = int(columns.rows[place])
        flags = columns.flags[row : row + self._n_step].tolist()
        n = next((n for n, flag in enumerate(flags, 1) if flag & _ENDED), self._n_step)
        if n > len(flags) or not all(flag & TRANSITION for flag in flags[:n]):
            return False
        batch.actions[i] = columns.actions[row]
        batch.envs[i], batch.numbers[i] = block.env, block.first + place
        batch.versions[i] = columns.versions[row]
        batch.steps[i], batch.terminated[i] = n, bool(flags[n - 1] & TERMINATED)
        rewards[i, :n] = columns.rewards[row : row + n]
        stacks.put_one(i, block, row)
        stacks.put_one(len(rewards) + i, block, row + n)
        return True

    def _fill(
        self,
        batch: Batch,
        stacks: "_PackedStacks",
        chosen: Indices,
        number: int,
        places: Indices,
    ) -> None:
        """Those of one block."""
        block = self._cache[number]
        columns = block.columns
        rows = columns.rows[places]
        batch.actions[chosen] = columns.actions[rows]
        batch.envs[chosen] = block.env
        batch.numbers[chosen] = block.first + places
        batch.versions[chosen] = columns.versions[rows]
        trail = self._trail(number, int(places.max()) + self._n_step)
        lengths = trail.lengths(places, self._n_step)
        lasts = places + lengths - 1
        batch.steps[chosen] = lengths
        batch.rewards[chosen] = trail.sums(places, lengths, self._n_step, self._gamma)
        batch.terminated[chosen] = trail.terminated[lasts]
        stacks.put(chosen, block, rows)
        owners, next_rows = trail.numbers[lasts], trail.rows[lasts] + 1
        for owner in np.unique(owners).tolist():
            own = owners == owner
            stacks.put(len(batch.rewards) + chosen[own], self._cache[owner], next_rows[own])

    def _trail(self, number: int, end: int) -> "_Trail":
        """The transitions of a block and, as far as the view has them, those up to `end`."""
        numbers = [number]
        missing = end - len(self._cache[number].columns.rows)
        while missing > 0 and self._view.continued[numbers[-1]]:
            if self._cache[numbers[-1] + 1].begins_episode:
                break  # a crash ended the episode before
            numbers.append(numbers[-1] + 1)
            missing -= int(self._view.n_transitions[numbers[-1]])
        parts = [self._cache[n].columns for n in numbers]
        return _Trail(
            np.repeat(numbers, [len(part.rows) for part in parts]),
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.rewards[part.rows] for part in parts]),
            np.concatenate([part.ended[part.rows] for part in parts]),
            np.concatenate([part.terminated[part.rows] for part in parts]),
        )


@dataclass(frozen=True)
class _Trail:
    """Consecutive transitions of a sequence: [n] arrays."""

    numbers: Indices
    rows: Indices
    rewards: NDArray[np.float32]
    ended: NDArray[np.bool_]
    terminated: NDArray[np.bool_]

    def lengths(self, places: Indices, n_step: int) -> Indices:
        """How many timesteps the transitions at `places` have: k of `Batch`."""
        ends = np.flatnonzero(self.ended)
        after = np.searchsorted(ends, places)
        last = np.append(ends, len(self.ended) - 1)[after]
        return np.minimum(n_step, last - places + 1)

    def sums(
        self, places: Indices, lengths: Indices, n_step: int, gamma: float
    ) -> NDArray[np.float32]:
        """In float32, added up as `Pond.batch` does."""
        walked = np.minimum(places[:, None] + np.arange(n_step), len(self.rewards) - 1)
        return discounted_sums(self.rewards[walked], lengths, gamma)


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


class _PackedStacks:
    """Stacks of many blocks, packed until all are there."""

    def __init__(self, schema: LakeSchema, size: int) -> None:
        self._schema = schema
        self._packed = np.zeros((size, schema.frame_stack, schema.packing.nbytes), np.uint8)
        self._blank = np.empty((size, schema.frame_stack), np.bool_)

    def put(self, places: Indices, block: Block, rows: Indices) -> None:
        """Those that end at these rows of the block."""
        sources, blank = block.stack_rows(rows, self._schema.frame_stack)
        self._packed[places], self._blank[places] = block.frames[sources], blank

    def put_one(self, place: int, block: Block, row: int) -> None:
        """One of them."""
        n = self._schema.frame_stack
        flags = block.columns.flags[max(0, row + 1 - n) : row + 1].tolist()
        age = next(
            (age for age, flag in enumerate(reversed(flags)) if flag & FIRST), len(flags) - 1
        )
        self._packed[place, n - 1 - age :] = block.frames[row - age : row + 1]
        self._blank[place, : n - 1 - age] = True
        self._blank[place, n - 1 - age :] = False

    def unpacked(self) -> NDArray[np.uint8]:
        """uint8 [size, frame_stack * C, H, W]; zeros before an episode's first frame."""
        frames = self._schema.packing.unpack(self._packed)
        frames[self._blank] = 0
        return frames.reshape(len(frames), *self._schema.observation_shape)


def _discounts(batch: Batch, gamma: float) -> NDArray[np.float32]:
    discounts: NDArray[np.float32] = gamma ** batch.steps.astype(np.float32)
    return np.where(batch.terminated, np.float32(0), discounts)


def _empty(schema: LakeSchema, size: int) -> Batch:
    return Batch(
        np.empty((size, *schema.observation_shape), np.uint8),
        np.empty((size, *schema.action_shape), schema.action_dtype),
        np.empty(size, np.float32),
        np.empty((size, *schema.observation_shape), np.uint8),
        np.empty(size, np.int64),
        np.empty(size, np.bool_),
        np.empty(size, np.float32),
        *(np.empty(size, np.int64) for _ in range(4)),
    )
