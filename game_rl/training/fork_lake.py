"""What a fork takes along of its parent's Lake: the rows that its replay has."""

from pathlib import Path

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.lake.forked import link_marked
from game_rl.lake.lake import Lake
from game_rl.lake.lake_state import LakeState, new_stream
from game_rl.lake.origin import take_origins
from game_rl.lake.segment_names import SegmentName


def forked_lake(
    checkpoint: Checkpoint,
    *,
    source: Path | None,
    target: Path,
    stream: str,
    pin: str,
    replay_seed: int | None,
) -> LakeState:
    """What the fork's first checkpoint has of its Lake, into which the parent's files are linked.

    The fork writes a stream of its own, so that no two runs ever write rows of one name. It has no
    rows yet, and their numbers follow on the parent's.

    Args:
        checkpoint: the parent's.
        source: the parent's Lake; None: the fork takes no replay from one.
        target: the fork's.
        stream: that the fork writes.
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
