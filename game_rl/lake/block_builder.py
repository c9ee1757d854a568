"""A builder that collects the rows of one env into blocks."""

import numpy as np
from numpy.typing import NDArray

from game_rl.lake.block import FIRST, TERMINATED, TRANSITION, TRUNCATED, Block, Columns
from game_rl.lake.schema import LakeSchema

Packed = NDArray[np.uint8]


class BlockBuilder:
    """Collects rows until a block is full; the module `block` explains rows.

    Attributes:
        is_underway: whether an episode has begun and not ended.
    """

    def __init__(self, schema: LakeSchema, *, env: int, first: int) -> None:
        self._schema = schema
        self._env = env
        self._first = first
        self.is_underway = False
        self._restart()

    @property
    def next_transition(self) -> int:
        """Number of the transition that comes next."""
        return self._first + int(np.count_nonzero(self._flags[: self._n] & TRANSITION))

    def begin(self, frame: Packed) -> Block | None:
        """Add the first frame of an episode; returns the block before if it was full."""
        assert not self.is_underway
        full = self.cut() if self._n + 2 > self._schema.block_frames else None
        self._add(frame, FIRST)
        self.is_underway = True
        return full

    def go_on(self, stack: Packed) -> Block | None:
        """Continue an episode from its newest frames [frame_stack, nbytes], the oldest first.

        Returns the block that had been started before, if it has a transition.
        """
        assert not self.is_underway
        cut = self.cut()
        for frame in stack:
            self._add(frame, 0)
        self.is_underway = True
        return cut

    def break_off(self) -> Block | None:
        """Abandon an episode that did not end; returns the started block if it has a transition."""
        block = self.cut()
        self.is_underway = False
        self._restart()
        self._first += 1  # a gap: the next transition does not follow from the last one
        return block

    def append(
        self,
        action: NDArray[np.generic],
        reward: float,
        *,
        ending: int,
        next_frame: Packed,
        version: int,
    ) -> Block | None:
        """Add a timestep and the frame that it led to; returns the block if it is full now.

        Args:
            ending: the flags TERMINATED, TRUNCATED and JUMP, or 0.
        """
        row = self._n - 1
        self._flags[row] |= TRANSITION | ending
        self._actions[row] = action
        self._rewards[row] = reward
        self._versions[row] = version
        self.is_underway = not ending & (TERMINATED | TRUNCATED)
        self._add(next_frame, 0)
        return self.cut() if self._n == self._schema.block_frames else None

    def cut(self) -> Block | None:
        """Return the rows so far as a block if they have a transition; the episode goes on."""
        n_transitions = int(np.count_nonzero(self._flags[: self._n] & TRANSITION))
        if n_transitions == 0:
            return None
        starts_here = bool(self._flags[self._n - 1] & FIRST)  # that row has no transition yet
        block = self._block(self._n - starts_here)
        kept = self._context(starts_here=starts_here)
        self._first += n_transitions
        self._restart()
        for frame in kept:
            self._add(frame, FIRST * starts_here)
        return block

    def _block(self, n_rows: int) -> Block:
        return Block(
            env=self._env,
            first=self._first,
            columns=Columns(
                self._flags[:n_rows],
                self._actions[:n_rows],
                self._rewards[:n_rows],
                self._versions[:n_rows],
            ),
            frames=self._frames[:n_rows],
        )

    def _context(self, *, starts_here: bool) -> Packed:
        """Return the newest frame and those that its stack needs."""
        if not self.is_underway:
            return self._frames[:0]
        firsts = np.flatnonzero(self._flags[: self._n] & FIRST)
        episode = int(firsts[-1]) if len(firsts) else 0
        oldest = max(episode, self._n - self._schema.frame_stack)
        return self._frames[self._n - 1 if starts_here else oldest : self._n]

    def _restart(self) -> None:
        """Allocate new arrays, because the old ones belong to the block that was cut."""
        schema, n = self._schema, self._schema.block_frames
        self._n = 0
        self._frames = np.empty((n, schema.packing.nbytes), np.uint8)
        self._flags = np.zeros(n, np.uint8)
        self._actions = np.zeros((n, *schema.action_shape), schema.action_dtype)
        self._rewards = np.zeros(n, np.float32)
        self._versions = np.zeros(n, np.uint32)

    def _add(self, frame: Packed, flags: int) -> None:
        self._frames[self._n] = frame
        self._flags[self._n] = flags
        self._n += 1
