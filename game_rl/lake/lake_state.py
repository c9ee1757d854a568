"""The state that a checkpoint keeps of the Lake that a run writes: a mark, and no data."""

import json
from typing import Annotated

import numpy as np
from pydantic import Field
from stable_baselines3.common.base_class import BaseAlgorithm

from game_rl.buffers.replay_buffer import PackedReplayBuffer
from game_rl.config.saved import Saved
from game_rl.lake.feed import LakeFeed
from game_rl.lake.make_feed import SavedStream
from game_rl.lake.mark import NOTHING, Mark
from game_rl.lake.pond_refill import refill_pond

_Count = Annotated[int, Field(ge=0)]


class ReplayPosition(Saved):
    """The state of a Pond without its slots, which are in the Lake."""

    n_slots: _Count
    heads: tuple[_Count, ...]
    n_appended: _Count
    n_held: _Count
    """Number of timesteps that could be drawn."""
    rng: str


class LakeState(Saved):
    """The state of a run's Lake at a checkpoint."""

    stream: str
    """The stream that the run writes."""
    mark: str
    """The mark as JSON, with a checksum of its own."""
    next_transitions: tuple[_Count, ...]
    """Number of each env's next timestep; empty if the Lake did not grow."""
    replay: ReplayPosition | None
    """State of the replay; None if the algorithm has none."""
    ancestors: tuple[str, ...] = ()
    """In a fork, the streams of the runs that it comes from, whose rows are in its replay. The mark
    includes them, and the numbers of the fork's own rows continue theirs."""

    def parsed_mark(self, source: object) -> Mark:
        """Return the mark; raises LakeError if it is damaged."""
        return Mark.from_json(self.mark, source=source)

    def saved_stream(self, source: object) -> SavedStream:
        """Return the stream at the checkpoint; raises LakeError if the mark is damaged."""
        return SavedStream(self.stream, self.parsed_mark(source), self.ancestors)

    def forked(self, stream: str, *, replay_seed: int | None) -> "LakeState":
        """Return the state for a fork that writes `stream` and keeps the replay.

        Args:
            replay_seed: seed of a new generator that draws from the replay; None to keep the
                generator's state.
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
    """Seal the Lake and pin its data for the checkpoint `name`; None if it cannot be read.

    Raises:
        OSError: the mark could not be written.
    """
    replay = _replay(model)
    if replay is not None:
        feed.forget_before(2 * replay.pond.n_slots)  # twice, since gaps in the numbers have no rows
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
    """Return the state of a stream that has not begun."""
    return LakeState(stream=stream, mark=NOTHING.to_json(), next_transitions=(), replay=None)


def refill_replay(model: BaseAlgorithm, feed: LakeFeed, state: LakeState) -> int:
    """Fill the model's replay from the Lake as it was at that checkpoint.

    Returns:
        The number of timesteps that the replay had and the Lake lacks. It is 0 unless the Lake had
        stopped growing for a time.

    Raises:
        CheckpointError: the saved replay has another shape.
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
        pond.n_appended = len(pond)  # so that learning waits for enough timesteps again
    if not len(pond):
        pond.clear()
    return missing


def _replay(model: BaseAlgorithm) -> PackedReplayBuffer | None:
    replay = getattr(model, "replay_buffer", None)
    return replay if isinstance(replay, PackedReplayBuffer) else None
