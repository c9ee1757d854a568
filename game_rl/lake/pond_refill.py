"""Fills a Pond from the Lake that was given the same timesteps, and so restores a replay."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm

from game_rl.buffers.replay_buffer import packed_replay
from game_rl.buffers.replay_store import (
    GOES_ON,
    LAST_FRAME,
    TERMINATED,
    TRUNCATED,
    ReplayStore,
    Slots,
)
from game_rl.lake.block import Block, Columns
from game_rl.lake.lake_feed import LakeFeed
from game_rl.lake.mark import LakeState, ReplayPosition
from game_rl.lake.view import LakeView


def refill_pond(pond: ReplayStore, view: LakeView, *, next_transitions: Sequence[int]) -> None:
    """Put the newest timesteps of each env into the slots where they were.

    Call `Pond.load_position` before. Timesteps that the Lake lacks, because it had stopped growing,
    cannot be drawn.

    Args:
        view: view of one stream, and of those that it continues, at the moment of that position.
        next_transitions: number of each env's next timestep at that moment; empty if the Lake was
            not growing.

    Raises:
        LakeError: a block is damaged.
    """
    envs = view.block_sequences & 0xFFFFFFFF
    for env in np.unique(envs).tolist():
        numbers = np.flatnonzero(envs == env)
        numbers = numbers[np.argsort(view.heads["first"][numbers], kind="stable")]
        counts = np.cumsum(view.n_transitions[numbers][::-1])
        newest = numbers[::-1][: int(np.searchsorted(counts, pond.n_slots)) + 1][::-1]
        stretch = _Stretch(map(view.block, newest.tolist()), pond.observation_format.stack)
        if not next_transitions or stretch.next_transition != next_transitions[env]:
            stretch.cut()
        slots = stretch.slots()
        if len(slots.frames):
            pond.put(env, slots, is_open=stretch.is_open)


class _Stretch:
    """The slots of a Pond, made from the blocks of one env: see `Pond` and `lake.block`."""

    def __init__(self, blocks: Iterable[Block], frame_stack: int) -> None:
        self._most_age = frame_stack - 1
        self._parts: list[Slots] = []
        self.is_open = False
        self.next_transition = -1
        for block in blocks:
            self._add(block)

    def slots(self) -> Slots:
        """Return all slots, with the frame after the last timestep if the episode goes on."""
        columns = zip(*self._parts, strict=True)
        return Slots._make(np.concatenate(arrays) for arrays in columns)

    def cut(self) -> None:
        """Truncate an episode that went on, because its next timesteps are not in the Lake."""
        if not self.is_open:
            return
        is_timestep = np.flatnonzero(self._parts[-1].endings != LAST_FRAME)
        self._parts[-1].endings[is_timestep[-1:]] = TRUNCATED
        self.is_open = False

    def _add(self, block: Block) -> None:
        columns = block.columns
        first = int(block.columns.rows[0])
        if block.first != self.next_transition:
            self.cut()
        if self.is_open:
            age = int(self._parts[-1].ages[-1])  # the last slot and the first row are the same
            self._parts[-1] = Slots._make(array[:-1] for array in self._parts[-1])
        else:
            seen = block.frames[int(columns.starts[first]) : first]
            age = 0 if columns.is_first[first] else self._add_history(seen)
        rows = np.arange(first, len(columns.flags))
        self._parts.append(
            Slots(
                block.frames[rows],
                columns.actions[rows],
                columns.rewards[rows],
                _endings(columns)[rows],
                self._ages(columns.is_first[rows], age),
            )
        )
        last = int(columns.rows[-1])
        self.is_open = not bool(columns.ended[last])
        self.next_transition = block.first + len(columns.rows)

    def _ages(self, is_first: NDArray[np.bool_], age: int) -> NDArray[np.uint8]:
        """Return the ages of rows of which the first one has this age."""
        numbers = np.arange(len(is_first))
        begins = np.where(is_first & (numbers > 0), numbers, 0)
        starts = np.maximum.accumulate(begins)
        ages = numbers - starts + np.where(starts == 0, age, 0)
        return np.minimum(ages, self._most_age).astype(np.uint8)

    def _add_history(self, frames: NDArray[np.uint8]) -> int:
        """Add frames that only stacks need, and return their number.

        Blank frames at the beginning are left out: they are from before the episode began.
        """
        is_seen = frames.any(axis=1)
        frames = frames[int(np.argmax(is_seen)) if is_seen.any() else len(frames) :]
        frames = frames[max(0, len(frames) - self._most_age) :]
        n = len(frames)
        blank = np.zeros(n, np.uint8)
        last = np.full(n, LAST_FRAME, np.uint8)
        self._parts.append(Slots(frames, blank, blank.astype(np.float32), last, blank))
        return n


def _endings(columns: Columns) -> NDArray[np.uint8]:
    """Return the ending of each row; one without a timestep is a last frame or context."""
    ended = np.where(columns.terminated, TERMINATED, np.where(columns.ended, TRUNCATED, GOES_ON))
    endings = np.full(len(columns.flags), LAST_FRAME, np.uint8)
    endings[columns.rows] = ended[columns.rows]
    return endings


def save_lake(model: BaseAlgorithm, feed: LakeFeed, name: str) -> LakeState | None:
    """Seal the Lake and pin its data for the checkpoint `name`; None if it cannot be read.

    Raises:
        OSError: the mark could not be written.
    """
    replay = packed_replay(model)
    if replay is not None:
        # twice, since gaps in the numbers have no rows
        feed.forget_before(2 * replay.store.n_slots)
    mark = feed.pin(name)
    if mark is None:
        return None
    return LakeState(
        stream=feed.stream,
        mark=mark.to_json(),
        next_transitions=tuple(feed.next_transitions),
        replay=None
        if replay is None
        else ReplayPosition.model_validate(replay.store.position(), strict=False),
        ancestors=feed.before.streams,
    )


def refill_replay(model: BaseAlgorithm, feed: LakeFeed, state: LakeState) -> int:
    """Fill the model's replay from the Lake as it was at that checkpoint.

    Returns:
        The number of timesteps that the replay had and the Lake lacks. It is 0 unless the Lake had
        stopped growing for a time.

    Raises:
        CheckpointError: the saved replay has another shape.
        LakeError: a file is missing or damaged.
    """
    replay = packed_replay(model)
    if replay is None or state.replay is None:
        return 0
    store = replay.store
    store.load_position(state.replay.model_dump())
    view = feed.lake.view(state.parsed_mark("the checkpoint"))
    refill_pond(store, view, next_transitions=state.next_transitions)
    missing = state.replay.n_held - len(store)
    if missing:
        store.n_appended = len(store)  # so that learning waits for enough timesteps again
    if not len(store):
        store.clear()
    return missing
