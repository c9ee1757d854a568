"""What a checkpoint keeps of the Lake that a run writes: a mark of its stream, and no data."""

import json
from typing import Annotated

import numpy as np
from pydantic import Field
from stable_baselines3.common.base_class import BaseAlgorithm

from game_rl.buffers.replay import PackedReplayBuffer
from game_rl.config.saved import Saved
from game_rl.lake.feed import LakeFeed
from game_rl.lake.make_feed import SavedStream
from game_rl.lake.mark import NOTHING, Mark
from game_rl.lake.pond_refill import refill_pond

_Count = Annotated[int, Field(ge=0)]


class ReplayPosition(Saved):
    """A Pond without its slots, which the Lake has."""

    n_slots: _Count
    heads: tuple[_Count, ...]
    n_appended: _Count
    n_held: _Count
    """Timesteps that could be drawn."""
    rng: str


class LakeState(Saved):
    """The Lake at a checkpoint."""

    stream: str
    """The one that the run writes."""
    mark: str
    """The mark as JSON, with a checksum of its own."""
    next_transitions: tuple[_Count, ...]
    """Of each env, the number of the timestep that came next; empty if the Lake did not grow."""
    replay: ReplayPosition | None
    """Of an algorithm that has a replay."""
    ancestors: tuple[str, ...] = ()
    """Of a fork: the streams of the runs that it comes from, whose rows its replay has. The mark
    has them, and the numbers of the fork's own rows follow on theirs."""

    def parsed_mark(self, source: object) -> Mark:
        """Raise LakeError if the mark was changed."""
        return Mark.from_json(self.mark, source=source)

    def saved_stream(self, source: object) -> SavedStream:
        """Raise LakeError if the mark was changed."""
        return SavedStream(self.stream, self.parsed_mark(source), self.ancestors)

    def forked(self, stream: str, *, replay_seed: int | None) -> "LakeState":
        """Of a fork that writes this stream, and takes the replay along.

        Args:
            replay_seed: of a new generator that draws from it; None: it goes on as it was.
        """
        replay = self.replay
        if replay is not None and replay_seed is not None:
            rng = json.dumps(np.random.default_rng(replay_seed).bit_generator.state)
            replay = replay.model_copy(update={"rng": rng})
        return self.model_copy(
            update={
                "stream": stream,
                "ancestors": (*self.ancestors, self.stream),
                "replay": replay,
            }
        )


def save_lake(model: BaseAlgorithm, feed: LakeFeed, name: str) -> LakeState | None:
    """Seal the Lake and keep what it has for this checkpoint; None if it cannot be read.

    Raises:
        OSError: the mark could not be written.
    """
    replay = _replay(model)
    if replay is not None:
        feed.forget_before(2 * replay.pond.n_slots)  # gaps in the numbers have no rows
    mark = feed.pin(name)
    if mark is None:
        return None
    return LakeState(
        stream=feed.stream,
        mark=mark.to_json(),
        next_transitions=tuple(feed.next_transitions),
        replay=None
        if replay is None
        else ReplayPosition.model_validate(replay.pond.position(), strict=False),
        ancestors=feed.before.streams,
    )


def new_stream(stream: str) -> LakeState:
    """Of a stream that has not begun."""
    return LakeState(stream=stream, mark=NOTHING.to_json(), next_transitions=(), replay=None)


def refill_replay(model: BaseAlgorithm, feed: LakeFeed, state: LakeState) -> int:
    """Fill the model's replay from the Lake as it was at that checkpoint.

    Returns:
        How many timesteps the Lake lacks that the replay had: 0 unless it did not always grow.

    Raises:
        CheckpointError: the replay was of another shape.
        LakeError: a file is missing or damaged.
    """
    replay = _replay(model)
    if replay is None or state.replay is None:
        return 0
    pond = replay.pond
    pond.load_position(state.replay.model_dump())
    view = feed.lake.view(state.parsed_mark("the checkpoint"))
    refill_pond(pond, view, next_transitions=state.next_transitions)
    missing = state.replay.n_held - len(pond)
    if missing:
        pond.n_appended = len(pond)  # learning waits until there are enough again
    if not len(pond):
        pond.clear()
    return missing


def _replay(model: BaseAlgorithm) -> PackedReplayBuffer | None:
    replay = getattr(model, "replay_buffer", None)
    return replay if isinstance(replay, PackedReplayBuffer) else None
