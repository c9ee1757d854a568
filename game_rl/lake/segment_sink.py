"""The sink that writes blocks of one stream into segments, and copes with a full disk."""

import errno
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal

from game_rl.errors import LakeError
from game_rl.lake.block import Block, BlockEncoder
from game_rl.lake.lake import Lake, shared_lock
from game_rl.lake.segment import SEALED, SegmentName, SegmentWriter, check_stream, recovered

OnFull = Literal["pause", "evict"]


class SegmentSink:
    """Writes blocks, seals segments and applies the Lake's capacity. It belongs to one thread.

    Until `close` it holds the lock that writers share.

    A full disk is not an error. `pause` drops blocks until there is space again. `evict` first
    deletes the oldest segments that no checkpoint needs. What was sealed stays, and each new block
    tries again. Other OSErrors are raised.

    Args:
        tell: is called with a sentence when growth pauses and when it resumes.

    Attributes:
        is_paused: whether the last block was dropped for lack of space.
        n_dropped: number of transitions that were dropped for lack of space.
    """

    def __init__(
        self,
        lake: Lake,
        stream: str,
        *,
        segment_bytes: int,
        segment_transitions: int | None = None,
        on_full: OnFull,
        tell: Callable[[str], None],
    ) -> None:
        self._lake = lake
        self._stream = check_stream(stream)
        self._segment_bytes = segment_bytes
        self._segment_transitions = segment_transitions or 2**62
        self._on_full = on_full
        self._tell = tell
        self._encoder = BlockEncoder(lake.schema)
        self._segment: SegmentWriter | None = None
        self._n_transitions = 0  # in that segment
        self._unsealed: list[Path] = []
        self.is_paused = False
        self.n_dropped = 0
        self._lock = shared_lock(lake.path)
        try:
            self._index = self._recovered_index()
            self._until_space(lake.evict)  # the capacity may be smaller now; each seal tries again
        except BaseException:
            self._lock.close()
            raise

    def _recovered_index(self) -> int:
        """Seal what a crash left of the stream, and return the index of its next segment."""
        path = self._lake.path
        stream = self._stream
        error = self._until_space(lambda: self._lake.recover(stream))
        if error is not None:
            raise LakeError(
                f"{path}: a crash left data of the stream {stream} that cannot be recovered: "
                f"{error.strerror}; free some space, then start again"
            )
        return 1 + max((SegmentName.of(each).last for each in path.glob(f"{stream}.*")), default=-1)

    def put(self, block: Block) -> None:
        """Append one block."""
        data = self._encoder.encode(block)
        error = self._until_space(lambda: self._append(data))
        if error is not None:
            self.n_dropped += len(block.columns.rows)
        else:
            self._n_transitions += len(block.columns.rows)
        self._pause(error)
        if self._segment and self._is_large(self._segment):
            self.seal()

    def _is_large(self, segment: SegmentWriter) -> bool:
        return (
            segment.n_bytes >= self._segment_bytes
            or self._n_transitions >= self._segment_transitions
        )

    def seal(self) -> bool:
        """Make all blocks durable and visible; returns False if there is no space for some.

        The next call tries again, and so does `Lake.recover` after a crash.
        """
        error = None
        if self._segment is not None and self._segment.n_blocks:
            self._unsealed.append(self._segment.path)
            error = self._until_space(self._seal_segment)
        elif not self._unsealed:
            return not self.is_paused
        for path in list(self._unsealed):
            error = error or self._until_space(partial(self._recover, path))
        error = error or self._until_space(self._lake.evict)
        self._pause(error)
        return error is None

    def close(self) -> bool:
        """Seal and close the file; returns False if there is no space for some blocks."""
        with self._lock:
            try:
                return self.seal()
            finally:
                if self._segment is not None:
                    with suppress(OSError):  # the file is empty, and the next start deletes it
                        self._segment.discard()

    def _append(self, data: bytes) -> None:
        if self._segment is None:
            name = SegmentName(self._stream, self._index, self._index).new(SEALED)
            self._segment = SegmentWriter(self._lake.path / name, self._lake.schema)
            self._index += 1
        self._segment.append(data)

    def _seal_segment(self) -> None:
        """Seal the current segment, once: after a failure, `_recover` seals what it has."""
        segment = self._segment
        self._segment = None
        self._n_transitions = 0
        if segment is not None:
            segment.seal()
            self._unsealed.remove(segment.path)

    def _recover(self, path: Path) -> None:
        recovered(path)
        self._unsealed.remove(path)

    def _until_space(self, write: Callable[[], object]) -> OSError | None:
        """Call `write` until it succeeds or nothing more can be evicted; return the last error."""
        while True:
            try:
                write()
                return None
            except OSError as error:
                if not _is_disk_full(error):
                    raise
                if self._on_full == "pause" or not self._has_evicted():
                    return error

    def _has_evicted(self) -> bool:
        try:
            return self._lake.evict_oldest()
        except OSError as error:
            if not _is_disk_full(error):
                raise
            return False

    def _pause(self, error: OSError | None) -> None:
        if error is not None and not self.is_paused:
            self._tell(
                f"the Lake at {self._lake.path} stops growing: {error.strerror}; free some space, "
                "lower the Lake's capacity, or set on_full to evict"
            )
        if error is None and self.is_paused:
            self._tell(f"the Lake at {self._lake.path} grows again")
        self.is_paused = error is not None


def _is_disk_full(error: OSError) -> bool:
    """Whether waiting or deleting may help: no space, a quota, a file size limit, an I/O error."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
