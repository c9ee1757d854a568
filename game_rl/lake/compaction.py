"""Compaction: merges small segments into a few large ones."""

from collections.abc import Iterator

from game_rl.lake.lake import Lake
from game_rl.lake.lock import alone
from game_rl.lake.segment import COPY, SEALED, SealedSegment, write_segment
from game_rl.lake.segment_names import SegmentName, superseded
from game_rl.lake.view import LakeView


def compact(lake: Lake, *, segment_bytes: int = 32 << 20) -> tuple[int, int]:
    """Merge neighbouring segments of each stream into segments of up to `segment_bytes`.

    Blocks are checked and copied as they are. Segments that a checkpoint keeps are not merged,
    because its mark names the files. A crash at any moment leaves each transition in the Lake
    exactly once: readers ignore the merged segment until it gets its name, and ignore the segments
    in it from then on.

    Returns:
        The number of segments before and after.

    Raises:
        LakeError: a segment is damaged, or another process writes the Lake. The next checkpoint of
            that process would name files that are gone.
        OSError: for example, the disk is full. No row of the Lake is lost.
    """
    with alone(lake.path):
        before = len(lake.files(SEALED))
        for path in [*superseded(lake.files(SEALED)), *lake.files(COPY)]:
            path.unlink()
        for group in list(_groups(lake, segment_bytes)):
            _merge(lake, group)
        return before, len(lake.files(SEALED))


def _groups(lake: Lake, segment_bytes: int) -> Iterator[list[SealedSegment]]:
    """Yield groups of two or more neighbours that are small enough together."""
    pinned = lake.pinned()
    group: list[SealedSegment] = []
    for segment in sorted(lake.view().segments, key=_order):
        total = segment.n_bytes + sum(member.n_bytes for member in group)
        is_kept = segment.path.name in pinned
        if group and (is_kept or total > segment_bytes or not _follows(group[-1], segment)):
            if len(group) > 1:
                yield group
            group = []
        if not is_kept:
            group.append(segment)
    if len(group) > 1:
        yield group


def _order(segment: SealedSegment) -> tuple[str, int]:
    name = SegmentName.of(segment.path)
    return name.stream, name.first


def _follows(before: SealedSegment, after: SealedSegment) -> bool:
    """Whether no segment number is between the two; a shelved segment there could come back."""
    first, second = SegmentName.of(before.path), SegmentName.of(after.path)
    return first.stream == second.stream and first.last + 1 == second.first


def _merge(lake: Lake, group: list[SealedSegment]) -> None:
    first, last = SegmentName.of(group[0].path), SegmentName.of(group[-1].path)
    path = lake.path / SegmentName(first.stream, first.first, last.last).new(SEALED)
    write_segment(path, _blocks(lake, group), lambda: lake.schema)
    for segment in group:
        segment.path.unlink()


def _blocks(lake: Lake, group: list[SealedSegment]) -> Iterator[bytes]:
    view = LakeView(lake.schema, group)
    for number in range(len(view.heads)):
        view.block(number)  # raises if it is damaged
        yield view.encoded(number)
