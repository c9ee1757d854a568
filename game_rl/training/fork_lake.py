"""Link the rows of a fork's replay from the parent's Lake into the fork's."""

from pathlib import Path

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.lake.forked import link_marked
from game_rl.lake.lake import Lake
from game_rl.lake.mark import LakeState, new_stream
from game_rl.lake.origin import take_origins
from game_rl.lake.segment import SegmentName


def forked_lake(
    checkpoint: Checkpoint,
    *,
    source: Path | None,
    target: Path,
    stream: str,
    pin: str,
    replay_seed: int | None,
) -> LakeState:
    """Link the parent's files into the fork's Lake, and return the Lake's state for its checkpoint.

    The fork writes a stream of its own, so two runs never write rows of the same name. The stream
    has no rows yet, and their numbers continue those of the parent.

    Args:
        checkpoint: the parent's checkpoint.
        source: the parent's Lake; None: the fork takes over no replay.
        target: the fork's Lake.
        stream: name of the stream that the fork writes.
        pin: name of the fork's checkpoint.
        replay_seed: see `LakeState.forked`.

    Raises:
        LakeError: a file is missing or damaged.
    """
    state = None if source is None else checkpoint.lake()
    if source is None or state is None or state.replay is None:
        return new_stream(stream)
    mark = state.parsed_mark(checkpoint.path)
    link_marked(Lake.open(source), mark, target, pin=f"{stream}.{pin}")
    streams = {SegmentName.of(Path(each.name)).stream for each in mark.segments}
    take_origins(source, target, streams)
    return state.forked(stream, replay_seed=replay_seed)
