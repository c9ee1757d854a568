"""The blocks of a view as rows are drawn from them."""

import numpy as np
import zstandard
from numpy.typing import NDArray

from game_rl.lake import block as blocks
from game_rl.lake.block import Columns, DamagedBlockError, row_bytes
from game_rl.lake.schema import LakeSchema
from game_rl.lake.view import LakeView

Frames = NDArray[np.uint8]


class BlockCache:
    """Keeps the blocks that are asked for first, as long as there is room for them.

    Draws are even: a block that was asked for last is no more likely to be asked for again than one
    that was asked for first, and to keep the first costs nothing when others are read. Those are
    decompressed no further than rows need them, into memory that is used again and again: memory
    that changes takes up to twice the time, as no cache of the CPU has it.

    Every method raises
        EvictedError: the block's segment is gone.
        LakeError: it is damaged.

    Args:
        limit_bytes: of the blocks that are kept.

    Attributes:
        n_bytes: of those that are.
    """

    def __init__(self, view: LakeView, limit_bytes: int) -> None:
        self._view = view
        self._row_bytes = row_bytes(view.schema)
        self._limit_bytes = limit_bytes
        self.n_bytes = 0
        self._kept: dict[int, tuple[Columns, Frames]] = {}
        self._first_frames = FirstFrames(view.schema)
        self._number = -1  # of the block that was asked for last and is not kept, its bytes,
        self._data = b""
        self._found: tuple[Columns, Frames] | None = None  # and what they hold, as far as is known

    def columns(self, number: int) -> Columns:
        return self._block(number)[0]

    def frames(self, number: int, end: int) -> Frames:
        """The first `end` frames of a block or more of them, uint8 [rows, packing.nbytes].

        Valid until another block is asked for.
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
        """As `Block.nbytes`."""
        return int(self._view.record(number)["head"]["n_rows"]) * self._row_bytes


class FirstFrames:
    """Decompresses the first frames of a block, into the memory where those before were."""

    def __init__(self, schema: LakeSchema) -> None:
        self._decompressor = zstandard.ZstdDecompressor()
        self._frames = np.empty((schema.block_frames, schema.packing.nbytes), np.uint8)

    def decode(self, head: np.void, data: bytes, n: int) -> Frames:
        """The first `n` frames of a whole block; valid until the next call.

        Raises:
            DamagedBlockError: it has fewer.
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
