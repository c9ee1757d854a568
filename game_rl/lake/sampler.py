"""Batches drawn from a view of a Lake, bit for bit as a store of whole stacks would give them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import LakeError
from game_rl.lake.block import Block
from game_rl.lake.schema import LakeSchema
from game_rl.lake.view import BlockCache, Indices, LakeView


@dataclass(frozen=True)
class Batch:
    """Transitions of n steps, in the order in which they were drawn.

    With k the smallest of n, the timesteps until the episode's end and those that the view has:

    Attributes:
        stacks, next_stacks: uint8 [batch, frame_stack * C, H, W] at t and t + k; zeros before an
            episode's first frame; the true last observation where the episode ended.
        actions: [batch, *action_shape] at t.
        rewards: float32 [batch], sum of gamma^i r_{t+i} for i < k, added up in float64.
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
        numbers, places = self._view.places(ranks)
        for number in np.unique(numbers).tolist():
            chosen = np.flatnonzero(numbers == number)
            self._fill(batch, chosen, number, places[chosen])
        return batch

    def _drawn(self, rng: np.random.Generator, n: int) -> Indices:
        if self._shares is None:
            return rng.integers(len(self._view), size=n)
        ends = self._view.stream_edges
        lengths = np.diff(ends, prepend=0)
        streams = rng.choice(len(ends), n, p=self._shares)
        return (ends - lengths)[streams] + rng.integers(lengths[streams])

    def _fill(self, batch: Batch, chosen: Indices, number: int, places: Indices) -> None:
        """Those of one block."""
        block = self._cache[number]
        columns = block.columns
        rows = columns.rows[places]
        batch.actions[chosen] = columns.actions[rows]
        batch.streams[chosen] = self._view.block_sequences[number] >> 32
        batch.envs[chosen] = block.env
        batch.numbers[chosen] = block.first + places
        batch.versions[chosen] = columns.versions[rows]
        trail = self._trail(number)
        lengths = trail.lengths(places, self._n_step)
        batch.rewards[chosen] = trail.sums(places, lengths, self._gamma)
        lasts = places + lengths - 1
        batch.discounts[chosen] = np.where(
            trail.terminated[lasts], 0, self._gamma ** lengths.astype(np.float64)
        )
        is_here = trail.numbers[lasts] == number
        next_rows = trail.rows[lasts] + 1
        stacks = stacks_at(block, np.append(rows, next_rows[is_here]), self._view.schema)
        batch.stacks[chosen] = stacks[: len(rows)]
        batch.next_stacks[chosen[is_here]] = stacks[len(rows) :]
        for later in np.unique(trail.numbers[lasts[~is_here]]).tolist():
            own = trail.numbers[lasts] == later
            batch.next_stacks[chosen[own]] = stacks_at(
                self._cache[later], next_rows[own], self._view.schema
            )

    def _trail(self, number: int) -> "_Trail":
        """The transitions of a block and n - 1 after them, as far as the view has them."""
        numbers = [number]
        missing = self._n_step - 1
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

    def sums(self, places: Indices, lengths: Indices, gamma: float) -> NDArray[np.float64]:
        sums = np.zeros(len(places))
        for step in range(int(lengths.max())):
            still = step < lengths
            sums[still] += gamma**step * self.rewards[places[still] + step].astype(np.float64)
        return sums


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


def stacks_at(block: Block, rows: Indices, schema: LakeSchema) -> NDArray[np.uint8]:
    """uint8 [len(rows), frame_stack * C, H, W] that end at these rows."""
    sources, blank = block.stack_rows(rows, schema.frame_stack)
    distinct, which = np.unique(sources, return_inverse=True)  # neighbours share most frames
    frames = schema.packing.unpack(block.frames[distinct])[which.reshape(sources.shape)]
    frames[blank] = 0
    return frames.reshape(len(rows), *schema.observation_shape)


def _empty(schema: LakeSchema, size: int) -> Batch:
    return Batch(
        np.empty((size, *schema.observation_shape), np.uint8),
        np.empty((size, *schema.action_shape), schema.action_dtype),
        np.empty(size, np.float32),
        np.empty((size, *schema.observation_shape), np.uint8),
        np.empty(size, np.float32),
        *(np.empty(size, np.int64) for _ in range(4)),
    )
