"""What `game-rl replay` does to a Lake: statistics, verification, compaction."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from game_rl.errors import LakeError
from game_rl.lake.array_lake import missing_rows
from game_rl.lake.horizon import Horizon
from game_rl.lake.lake import Lake, exclusive_lock
from game_rl.lake.mark import Mark
from game_rl.lake.segment import (
    COPY,
    OPEN,
    SEALED,
    SHELVED,
    DamagedFileError,
    SealedSegment,
    SegmentName,
    check_sha256,
    read_header,
    read_index,
    scan,
    superseded,
    write_segment,
)
from game_rl.lake.view import LakeView


@dataclass(frozen=True)
class StreamStatistics:
    """Statistics of one stream.

    Attributes:
        versions: lowest and highest version of the policies that acted.
        n_episodes: episodes that the Lake has from their first frame to their end. The means are
            over these, and None if there are none.
    """

    stream: str
    n_envs: int
    n_transitions: int
    versions: tuple[int, int]
    n_episodes: int
    mean_return: float | None
    mean_length: float | None


@dataclass(frozen=True)
class LakeStatistics:
    """Statistics of a whole Lake.

    Attributes:
        observation: description of an observation for people.
        n_bytes: size of all segments on disk.
        bytes_per_transition: of the sealed segments; None if they are empty.
        raw_bytes_per_transition: size in SB3's ReplayBuffer, with stacks and next stacks.
        ratio: raw_bytes_per_transition divided by bytes_per_transition.
    """

    observation: str
    n_transitions: int
    n_bytes: int
    bytes_per_transition: float | None
    raw_bytes_per_transition: int
    ratio: float | None
    n_segments: int
    n_shelved: int
    n_open: int
    pins: list[str]
    streams: list[StreamStatistics]


def lake_statistics(lake: Lake) -> LakeStatistics:
    """Return the statistics of a Lake, for which the columns of every sealed block are read.

    Raises:
        LakeError: a segment is damaged.
    """
    view = lake.view()
    sealed = sum(segment.n_bytes for segment in view.segments)
    each = sealed / len(view) if len(view) else None
    raw = lake.schema.raw_bytes
    return LakeStatistics(
        observation=lake.schema.description,
        n_transitions=len(view),
        n_bytes=lake.n_bytes(),
        bytes_per_transition=each,
        raw_bytes_per_transition=raw,
        ratio=raw / each if each else None,
        n_segments=len(lake.files(SEALED)),
        n_shelved=len(lake.files(SHELVED)),
        n_open=len(lake.files(OPEN)),
        pins=sorted(pin.stem for pin in (lake.path / "pins").glob("*.json")),
        streams=[
            _stream(view, name, np.flatnonzero(view.block_sequences >> 32 == rank))
            for rank, name in enumerate(view.streams)
        ],
    )


def _stream(view: LakeView, name: str, numbers: Any) -> StreamStatistics:  # noqa: ANN401
    heads = view.heads[numbers]
    returns, lengths = _episodes(view, numbers.tolist())
    return StreamStatistics(
        stream=name,
        n_envs=len(np.unique(heads["env"])),
        n_transitions=int(view.n_transitions[numbers].sum()),
        versions=(int(heads["first_version"].min()), int(heads["last_version"].max())),
        n_episodes=len(returns),
        mean_return=float(np.mean(returns)) if returns else None,
        mean_length=float(np.mean(lengths)) if lengths else None,
    )


def _episodes(view: LakeView, numbers: list[int]) -> tuple[list[float], list[int]]:
    """Returns and lengths of the episodes that are whole in these blocks of a stream."""
    returns: list[float] = []
    lengths: list[int] = []
    total = 0.0
    length = 0
    is_whole = False
    for number in numbers:
        columns = view.columns(number)
        if number == 0 or not view.continued[number - 1]:
            is_whole = False
        for row in columns.rows.tolist():
            if columns.is_first[row]:
                total = 0.0
                length = 0
                is_whole = True
            total += float(columns.rewards[row])
            length += 1
            if columns.ended[row] and is_whole:
                returns.append(total)
                lengths.append(length)
    return returns, lengths


_ADVICE = (
    "delete the damaged files, or restore them from a copy, and the Lake works again; a checkpoint "
    "that needs a deleted file cannot be resumed"
)
_ADVICE_FOR_ARRAYS = (
    "restore the damaged files from a copy, or import the replay buffer again: a Lake of arrays "
    "needs all of its files"
)


@dataclass
class LakeReport:
    """The findings of `verify_lake`.

    Attributes:
        damaged: what is wrong with each damaged file, by its name.
        open_files: bytes of the torn end of each file that is being written or that a crash left,
            by its name.
        advice: what to do about the damage; empty if there is none.
    """

    n_segments: int = 0
    n_transitions: int = 0
    n_bytes: int = 0
    damaged: dict[str, str] = field(default_factory=dict)
    open_files: dict[str, int] = field(default_factory=dict)
    advice: str = ""


def verify_lake(
    path: Path,
    progress: Callable[[int, int], None] = lambda *_: None,
    *,
    decodes: bool = True,
) -> LakeReport:
    """Read a whole Lake and report what is damaged.

    Args:
        progress: is called with the number of files that are done and the number of all.
        decodes: whether blocks are unpacked, too. The checksums of the files show every later
            change without that, and much sooner.

    Raises:
        LakeError: the Lake has no lake.json, or it is damaged.
    """
    lake = Lake.open(path)
    report = LakeReport()
    segments = lake.files(SEALED) + lake.files(SHELVED)
    for number, file in enumerate(segments):
        progress(number, len(segments))
        with _found(file, file.name, report):
            _verify_segment(lake, file, report, decodes=decodes)
    try:
        Horizon(path).firsts()
    except LakeError as error:
        report.damaged["horizon.json"] = str(error)
    if lake.schema.arrays is not None and not report.damaged:
        report.damaged.update(missing_rows(lake.view()))
    for file in lake.files(OPEN):
        with suppress(FileNotFoundError):  # its writer has sealed it
            report.open_files[file.name] = _torn_bytes(file)
    for pin in sorted((path / "pins").glob("*.json")):
        with _found(pin, f"pins/{pin.name}", report):
            lake.view(Mark.from_json(pin.read_text(errors="replace", encoding="utf-8"), source=pin))
    progress(len(segments), len(segments))
    if report.damaged:
        report.advice = _ADVICE if lake.schema.arrays is None else _ADVICE_FOR_ARRAYS
    return report


@contextmanager
def _found(file: Path, name: str, report: LakeReport) -> Iterator[None]:
    """Report a LakeError as damage of the file, unless a writer has deleted it since.

    A finding about another file, which a pin has, is reported once.
    """
    try:
        yield
    except FileNotFoundError:
        if file.exists():
            raise
    except LakeError as error:
        found = error.finding if isinstance(error, DamagedFileError) else str(error)
        if file.exists() and found not in report.damaged.values():
            report.damaged[name] = found if name in found else f"{file}: {found}"


def _verify_segment(lake: Lake, file: Path, report: LakeReport, *, decodes: bool) -> None:
    segment = read_index(file)
    check_sha256(segment)
    if read_header(file)[0] != lake.schema:
        raise LakeError(f"{file}: its schema is not that of lake.json; one of the two was changed")
    view = LakeView(lake.schema, [segment])
    for number in range(len(view.heads) if decodes else 0):
        view.block(number)
    report.n_segments += 1
    report.n_transitions += segment.n_transitions
    report.n_bytes += segment.n_bytes


def _torn_bytes(file: Path) -> int:
    whole = sum(len(data) for data in scan(file))
    return file.stat().st_size - (whole + read_header(file)[1] if whole else 0)


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
    with exclusive_lock(lake.path):
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
    for segment in sorted(lake.view().segments, key=lambda each: SegmentName.of(each.path)):
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


def _follows(before: SealedSegment, after: SealedSegment) -> bool:
    """Whether no segment number is between the two; a shelved segment there could come back."""
    first = SegmentName.of(before.path)
    second = SegmentName.of(after.path)
    return first.stream == second.stream and first.last + 1 == second.first


def _merge(lake: Lake, group: list[SealedSegment]) -> None:
    first = SegmentName.of(group[0].path)
    last = SegmentName.of(group[-1].path)
    path = lake.path / SegmentName(first.stream, first.first, last.last).new(SEALED)
    write_segment(path, _blocks(lake, group), lambda: lake.schema)
    for segment in group:
        segment.path.unlink()


def _blocks(lake: Lake, group: list[SealedSegment]) -> Iterator[bytes]:
    view = LakeView(lake.schema, group)
    for number in range(len(view.heads)):
        view.block(number)  # raises if it is damaged
        yield view.encoded(number)
