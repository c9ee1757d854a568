"""A segment: its name, and its file of blocks, which is appended to, then sealed for good.

A writer numbers its segments. A segment that merges others has the numbers of the first and the
last of them. So it is known to contain them, even before they are deleted.

    header   magic, length, crc32, JSON {format, schema}
    blocks
    footer   the head of every block, again | n_blocks, crc32 | sha256 of all before | magic

The suffix of its name is its state:

* `.open`: it is being written and has no footer yet.
* `.segment`: it is sealed. Sealing is footer, fsync, rename, fsync of the directory.
* `.copy`: it is being copied.
* `.shelved`: it is kept for checkpoints alone.

After a crash, an `.open` file is whole up to the first block whose checksum is wrong.
"""

import hashlib
import os
import re
import secrets
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import LakeError
from game_rl.files.durable_files import BINARY, rename, sync_directory
from game_rl.lake import block as blocks
from game_rl.lake.block import HEAD, DamagedBlockError
from game_rl.lake.lake_schema import LakeSchema

_STREAM = re.compile(r"[A-Za-z0-9_-]+")
_NAME = re.compile(r"([A-Za-z0-9_-]+)\.(\d+)-(\d+)-[0-9a-f]+\.\w+")


@dataclass(frozen=True, order=True)
class SegmentName:
    stream: str
    first: int
    last: int

    @classmethod
    def of(cls, path: Path) -> "SegmentName":
        """Parse the name of the file at `path`.

        Raises:
            LakeError: it is not the name of a segment.
        """
        match = _NAME.fullmatch(path.name)
        if match is None:
            raise LakeError(f"{path} does not have a segment's name; move it out of the Lake")
        return cls(match[1], int(match[2]), int(match[3]))

    def new(self, suffix: str) -> str:
        """Return a name that no other file has, not even one of the same numbers before a resume.

        Args:
            suffix: the kind of the file, such as `.segment`.
        """
        token = secrets.token_hex(3)
        return f"{self.stream}.{self.first:08d}-{self.last:08d}-{token}{suffix}"

    def contains(self, other: "SegmentName") -> bool:
        return (
            self != other
            and self.stream == other.stream
            and self.first <= other.first
            and other.last <= self.last
        )


def check_stream(stream: str) -> str:
    if not _STREAM.fullmatch(stream):
        raise LakeError(f"{stream!r} cannot name a stream; use only letters, digits, _ and -")
    return stream


def superseded(paths: list[Path]) -> set[Path]:
    """Return the segments that another of them contains.

    There are some if a compaction was stopped before it deleted them.
    """
    names = {path: SegmentName.of(path) for path in paths}
    merged = [name for name in names.values() if name.first < name.last]
    return {path for path, name in names.items() if any(m.contains(name) for m in merged)}


OPEN = ".open"
COPY = ".copy"
SEALED = ".segment"
SHELVED = ".shelved"
_MAGIC = b"GBLAKE01"
_END = b"GBLAKEND"
_PREAMBLE = struct.Struct("<8sII")  # magic, length and crc32 of the JSON
_MOST_HEADER = 1 << 20  # bytes of the JSON; 500 for pictures, and 200 more for each part
_COUNT = struct.Struct("<II")  # blocks, crc32 of their heads
_TRAILER = _COUNT.size + 32 + len(_END)


class DamagedFileError(LakeError):
    """A file of a Lake is damaged.

    Attributes:
        finding: the file and what is wrong with it, without a way out.
    """

    def __init__(self, path: Path, what: str) -> None:
        self.finding = f"{path}: {what}"
        super().__init__(
            f"{self.finding}; `game-rl replay verify {quote(str(path.parent))}` names every "
            "damaged file and says what to do"
        )


@dataclass(frozen=True)
class SegmentIndex:
    """The heads and positions of a segment's blocks.

    Attributes:
        heads: HEAD [n_blocks].
        offsets: offset of each block in the file, int64.
    """

    heads: NDArray[np.void]
    offsets: NDArray[np.int64]


@dataclass(frozen=True)
class SealedSegment:
    """A reader's description of a sealed segment.

    Attributes:
        ends: number after its last transition of each sequence, by "stream/env".
        sha256: digest of the file without its last 40 bytes, which are the digest and a magic word.
        kept: its index, or None if that is read when needed.
    """

    path: Path
    n_transitions: int
    ends: Mapping[str, int]
    sha256: str
    n_bytes: int
    kept: SegmentIndex | None = field(repr=False, compare=False)

    def index(self) -> SegmentIndex:
        """Return the index of its blocks, which is read if it is not kept.

        Raises:
            FileNotFoundError: the index is not kept, and the file is gone.
            LakeError: the index is not kept, and the file is damaged or was replaced.
        """
        if self.kept is not None:
            return self.kept
        found = read_index(self.path)
        if found.sha256 != self.sha256:
            raise DamagedFileError(self.path, "it was replaced by another file")
        assert found.kept is not None
        return found.kept


class SegmentWriter:
    """Appends blocks to a new file next to `path`, which is renamed to `path` when it is sealed.

    Raises:
        OSError: from any method. Earlier blocks stay, and a torn end is cut off before the next
            block at the latest.
    """

    def __init__(self, path: Path, schema: LakeSchema, *, suffix: str = OPEN) -> None:
        self.path = path.with_suffix(suffix)
        self._sealed_path = path
        self._hash = hashlib.sha256()
        self._heads: list[bytes] = []
        self.n_bytes = 0
        self._is_torn = False
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o644)
        text = schema.to_json().encode()
        try:
            self._write(_PREAMBLE.pack(_MAGIC, len(text), zlib.crc32(text)) + text)
        except OSError:
            self.discard()
            raise

    @property
    def n_blocks(self) -> int:
        return len(self._heads)

    def append(self, encoded: bytes) -> None:
        """Append one encoded block."""
        self._write(encoded)
        self._heads.append(encoded[: HEAD.itemsize])

    def _write(self, data: bytes) -> None:
        self._cut()
        try:
            _write_all(self._file, data)
        except OSError:
            self._is_torn = True
            self._cut()
            raise
        self._hash.update(data)
        self.n_bytes += len(data)

    def _cut(self) -> None:
        """Cut off a torn end after the last whole block."""
        if self._is_torn:
            os.ftruncate(self._file, self.n_bytes)
            os.lseek(self._file, self.n_bytes, os.SEEK_SET)
            self._is_torn = False

    def seal(self) -> SealedSegment:
        """Write the footer and give the file its name; it is closed whether or not this raises.

        After an OSError the file stays, and `recovered` saves its blocks. An fsync that failed is
        not tried again, because the kernel forgets what it could not write.
        """
        footer = _footer(b"".join(self._heads), self._hash)
        try:
            self._cut()
            _write_all(self._file, footer)
            os.fsync(self._file)
        finally:
            self.close()
        rename(self.path, self._sealed_path)
        sync_directory(self._sealed_path.parent)
        return read_index(self._sealed_path)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def discard(self) -> None:
        """Delete the file."""
        self.close()
        self.path.unlink(missing_ok=True)


def _write_all(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]


def _footer(heads: bytes, so_far: "hashlib._Hash") -> bytes:
    body = heads + _COUNT.pack(len(heads) // HEAD.itemsize, zlib.crc32(heads))
    digest = so_far.copy()
    digest.update(body)
    return body + digest.digest() + _END


def read_header(path: Path) -> tuple[LakeSchema, int]:
    """Read the schema of a segment, sealed or open; the number is the header's length in bytes.

    Raises:
        LakeError: the file is not a segment, or its header is damaged.
    """
    with path.open("rb") as file:
        data = file.read(_PREAMBLE.size)
        if len(data) == _PREAMBLE.size:
            magic, length, crc = _PREAMBLE.unpack(data)
            text = file.read(min(length, _MOST_HEADER))
    if len(data) == _PREAMBLE.size and magic == _MAGIC and zlib.crc32(text) == crc:
        schema = LakeSchema.from_json(text.decode(), source=path)
        return schema, _PREAMBLE.size + int(length)
    raise DamagedFileError(path, "its header is cut off or changed")


def read_index(path: Path) -> SealedSegment:
    """Read a segment's footer.

    Raises:
        LakeError: the footer is cut off or damaged.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - _TRAILER))
        trailer = file.read()
        if len(trailer) < _TRAILER or not trailer.endswith(_END):
            raise DamagedFileError(path, "its footer is cut off or changed")
        count, crc = _COUNT.unpack_from(trailer)
        start = size - _TRAILER - count * HEAD.itemsize
        if start < 0:
            raise DamagedFileError(path, "its footer is changed")
        file.seek(start)
        data = file.read(count * HEAD.itemsize)
    if zlib.crc32(data) != crc:
        raise DamagedFileError(path, "its footer is changed")
    heads = np.frombuffer(data, HEAD)
    return SealedSegment(
        path=path,
        n_transitions=int(heads["n_transitions"].sum()),
        ends=_ends(SegmentName.of(path).stream, heads),
        sha256=trailer[_COUNT.size : _COUNT.size + 32].hex(),
        n_bytes=size,
        kept=SegmentIndex(heads, start - np.cumsum(_lengths(heads)[::-1])[::-1]),
    )


def _ends(stream: str, heads: NDArray[np.void]) -> dict[str, int]:
    envs, which = np.unique(heads["env"], return_inverse=True)
    ends = np.zeros(len(envs), np.int64)
    np.maximum.at(ends, which, heads["first"].astype(np.int64) + heads["n_transitions"])
    return {f"{stream}/{env}": end for env, end in zip(envs, ends.tolist(), strict=True)}


def _lengths(heads: NDArray[np.void]) -> NDArray[np.int64]:
    lengths = heads["columns_bytes"].astype(np.int64) + heads["frames_bytes"].astype(np.int64)
    return lengths + HEAD.itemsize


def check_sha256(segment: SealedSegment) -> None:
    """Read the whole file and compare its digest.

    Raises:
        LakeError: a byte is not what was written.
    """
    digest = hashlib.sha256()
    left = segment.n_bytes - 40
    with segment.path.open("rb") as file:
        while left and (data := file.read(min(left, 1 << 20))):
            digest.update(data)
            left -= len(data)
    if left or digest.hexdigest() != segment.sha256:
        raise DamagedFileError(segment.path, "its sha256 is not the one that it was sealed with")


def scan(path: Path) -> Iterator[bytes]:
    """Yield the whole blocks of an `.open` file, up to the first that is torn."""
    with path.open("rb") as file:
        try:
            file.seek(read_header(path)[1])
        except LakeError:
            return  # torn before the first block
        while True:
            data = file.read(HEAD.itemsize)
            try:
                head = blocks.read_head(data)
                data += file.read(blocks.block_bytes(head) - HEAD.itemsize)
                blocks.check_payload(head, data)
            except DamagedBlockError:
                return
            yield data


def recovered(torn: Path) -> SealedSegment | None:
    """Seal the whole blocks of an `.open` file that no process writes, and delete the file.

    The blocks are copied, because after a failed fsync the kernel takes pages for written that are
    not.

    Returns:
        The sealed segment, or None if there is no whole block. None, too, if the segment existed
        already, because a crash came between the copy and the deletion.

    Raises:
        OSError: for example, the disk is full. `torn` is as it was.
    """
    path = torn.with_suffix(SEALED)
    torn.with_suffix(COPY).unlink(missing_ok=True)
    sealed = None
    if path.exists():
        sync_directory(path.parent)
    else:
        sealed = write_segment(path, scan(torn), lambda: read_header(torn)[0])
    torn.unlink(missing_ok=True)
    return sealed


def write_segment(
    path: Path, encoded_blocks: Iterable[bytes], schema: Callable[[], LakeSchema]
) -> SealedSegment | None:
    """Write a sealed segment of these blocks atomically; None if there are no blocks.

    Raises:
        OSError: for example, the disk is full. Nothing is left at `path`.
    """
    writer = None
    try:
        for data in encoded_blocks:
            writer = writer or SegmentWriter(path, schema(), suffix=COPY)
            writer.append(data)
        return writer.seal() if writer else None
    except BaseException:
        if writer:
            writer.discard()
        raise
