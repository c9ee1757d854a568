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
        agents, versions: of the policy that acted at t.
    """

    stacks: NDArray[np.uint8]
    actions: NDArray[np.generic]
    rewards: NDArray[np.float32]
    next_stacks: NDArray[np.uint8]
    discounts: NDArray[np.float32]
    agents: NDArray[np.int64]
    versions: NDArray[np.int64]


@dataclass(frozen=True)
class Weights:
    """How often a transition is drawn beside another; all alike if nothing is said.

    Attributes:
        half_life_versions: a block whose last policy is this much older than the newest of the view
            is drawn half as often. The transitions of a block (64) have one weight.
        agent_shares: part of the draws that each agent gets, whatever it has stored; agents that
            are not named get none.
    """

    half_life_versions: float | None = None
    agent_shares: Mapping[int, float] | None = None

    def of_blocks(self, view: LakeView) -> NDArray[np.float64]:
        """Chance of each block to be drawn.

        Raises:
            LakeError: nothing can be drawn.
        """
        mass = view.n_transitions.astype(np.float64)
        if not len(mass):
            raise LakeError("the Lake has no sealed transitions yet; let the writers seal first")
        if self.half_life_versions is not None:
            versions = view.heads["last_version"].astype(np.float64)
            mass *= 0.5 ** ((versions.max() - versions) / self.half_life_versions)
        if self.agent_shares is not None:
            mass *= self._agent_factors(view, mass)
        chances: NDArray[np.float64] = mass / mass.sum()
        return chances

    def _agent_factors(self, view: LakeView, mass: NDArray[np.float64]) -> NDArray[np.float64]:
        assert self.agent_shares is not None
        factors = np.zeros(len(mass))
        for agent, share in self.agent_shares.items():
            own = view.heads["agent"] == agent
            if share > 0 and not own.any():
                known = sorted(set(view.heads["agent"].tolist()))
                raise LakeError(f"agent {agent} has a share, but the Lake has agents {known}")
            factors[own] = share / mass[own].sum() if share else 0
        if not factors.any():
            raise LakeError("no agent has a share; give at least one a positive share")
        return factors


UNIFORM = Weights()


class Sampler:
    """Draws batches from one view; make a new one for a new view.

    A batch is batch_size / per_block draws of a block, and in each of these `per_block` draws of a
    transition. With per_block = 1 the transitions are independent; with more, fewer blocks are
    decompressed, every transition is drawn as often as before, and those of one block come together
    (a stratified batch: its gradient has a larger variance). All draws are with replacement.
    """

    def __init__(
        self,
        view: LakeView,
        *,
        n_step: int = 1,
        gamma: float = 0.99,
        weights: Weights = UNIFORM,
        per_block: int = 1,
        cache_bytes: int = 64 << 20,
    ) -> None:
        self._view = view
        self._n_step = n_step
        self._gamma = gamma
        self._per_block = per_block
        chances = weights.of_blocks(view)
        self._edges = np.cumsum(chances)
        self._last = int(np.flatnonzero(chances)[-1])
        self._cache = BlockCache(view, cache_bytes)

    def sample(self, rng: np.random.Generator, batch_size: int) -> Batch:
        """Draw transitions.

        Raises:
            EvictedError: a segment is gone; make a new view.
            LakeError: a block is damaged.
        """
        n_draws = -(-batch_size // self._per_block)
        drawn = np.searchsorted(self._edges, rng.random(n_draws) * self._edges[-1], side="right")
        drawn = np.minimum(drawn, self._last)  # rounding may lead past the last edge
        numbers = np.repeat(drawn, self._per_block)[:batch_size]
        return self.take(numbers, rng.integers(self._view.n_transitions[numbers]))

    def take(self, numbers: Indices, places: Indices) -> Batch:
        """The transitions at these places of these blocks.

        Raises:
            EvictedError: a segment is gone; make a new view.
            LakeError: a block is damaged.
        """
        batch = _empty(self._view.schema, len(numbers))
        for number in np.unique(numbers).tolist():
            chosen = np.flatnonzero(numbers == number)
            self._fill(batch, chosen, number, places[chosen])
        return batch

    def _fill(self, batch: Batch, chosen: Indices, number: int, places: Indices) -> None:
        """Those of one block."""
        block = self._cache[number]
        columns = block.columns
        rows = columns.rows[places]
        batch.actions[chosen] = columns.actions[rows]
        batch.agents[chosen] = block.agent
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
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )
