"""A cache of a view's blocks, for drawing rows from them."""

import numpy as np
import zstandard
from numpy.typing import NDArray

from game_rl.lake import block as blocks
from game_rl.lake.block import Columns, DamagedBlockError, row_bytes
from game_rl.lake.schema import LakeSchema
from game_rl.lake.view import LakeView

Frames = NDArray[np.uint8]


class BlockCache:
    """Keeps the first blocks that are requested, as long as there is room, and evicts none.

    Draws are uniform, so a block that was requested last is no more likely to be requested again
    than one that was requested first, and keeping the first costs nothing when others are read.
    Blocks that are not kept are decompressed only as far as rows need them, into a buffer that is
    reused. With a new buffer for each block this took up to twice the time, because new memory is
    in no CPU cache.

    Args:
        limit_bytes: the most memory that kept blocks may take.

    Attributes:
        n_bytes: memory that kept blocks take.

    Raises:
        EvictedError: from any method, if the block's segment is gone.
        LakeError: from any method, if the block is damaged.
    """

    def __init__(self, view: LakeView, limit_bytes: int) -> None:
        self._view = view
        self._row_bytes = row_bytes(view.schema)
        self._limit_bytes = limit_bytes
        self.n_bytes = 0
        self._kept: dict[int, tuple[Columns, Frames]] = {}
        self._first_frames = FirstFrames(view.schema)
        self._number = -1  # the last block that was requested and is not kept
        self._data = b""  # its bytes
        self._found: tuple[Columns, Frames] | None = None  # its columns, and frames decoded so far

    def columns(self, number: int) -> Columns:
        return self._block(number)[0]

    def frames(self, number: int, end: int) -> Frames:
        """Return at least the first `end` frames of a block, uint8 [rows, packing.nbytes].

        They are valid until another block is requested.
        """
        columns, frames = self._block(number)
        if len(frames) < end:
            head = self._view.record(number)["head"]
            try:
                frames = self._first_frames.decode(head, self._data, end)
            except DamagedBlockError as error:
                raise self._view.damaged_block(number, error) from None
            self._found = columns, frames
        return frames

    def _block(self, number: int) -> tuple[Columns, Frames]:
        if (kept := self._kept.get(number)) is not None:
            return kept
        if self._number == number and self._found is not None:
            return self._found
        if self.n_bytes + self._bytes_of(number) <= self._limit_bytes:
            return self._keep(number)
        self._found = None
        self._data = self._view.whole(number)
        columns = self._view.columns_of(number, self._data)
        self._number, self._found = number, (columns, np.empty((0, 0), np.uint8))
        return self._found

    def _keep(self, number: int) -> tuple[Columns, Frames]:
        block = self._view.block(number)
        self.n_bytes += block.nbytes
        self._kept[number] = block.columns, block.frames
        return self._kept[number]

    def _bytes_of(self, number: int) -> int:
        """Return what `Block.nbytes` of this block will be."""
        return int(self._view.record(number)["head"]["n_rows"]) * self._row_bytes


class FirstFrames:
    """Decompresses the first frames of a block into a buffer that it reuses."""

    def __init__(self, schema: LakeSchema) -> None:
        self._decompressor = zstandard.ZstdDecompressor()
        self._frames = np.empty((schema.block_frames, schema.packing.nbytes), np.uint8)

    def decode(self, head: np.void, data: bytes, n: int) -> Frames:
        """Return the first `n` frames of a block, whose bytes are all in `data`.

        They are valid until the next call.

        Raises:
            DamagedBlockError: it has fewer frames.
        """
        if n > len(self._frames):
            self._frames = np.empty((n, self._frames.shape[1]), np.uint8)
        frames = self._frames[:n]
        reader = self._decompressor.stream_reader(blocks.frames_payload(head, data))
        try:
            n_bytes = reader.readinto(frames)
        except zstandard.ZstdError as error:
            raise DamagedBlockError(str(error)) from None
        if n_bytes != frames.nbytes:
            raise DamagedBlockError(f"{n_bytes} bytes where {frames.nbytes} were expected")
        return blocks.without_delta(frames) if head["is_delta"] else frames
