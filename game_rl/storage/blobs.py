"""The content-addressed tree: files cut into pieces, sent, fetched, verified and restored.

    blobs/ab/abcd…      a file, named by its sha256; equal content of several runs is stored once

A folder is a list of files, and the list and the blobs suffice to restore it elsewhere. Files that
concern one machine alone (locks, claims, temporary files) are left out.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from game_rl.checkpoints.checkpoint_files import MANIFEST, FileEntry, read_manifest
from game_rl.errors import CheckpointError, StorageError
from game_rl.files.durable_files import (
    new_directory,
    remove_directory,
    replaced_directory,
    sync_directory,
    synced_file,
)
from game_rl.files.saved import file_sha256
from game_rl.lake.segment import SEALED, SHELVED
from game_rl.storage.faults import LostFileError
from game_rl.storage.manifest import _OF_CHECKPOINTS, FolderTree, Piece, StoredFile, blob_name
from game_rl.storage.object_store import CHUNK_BYTES, PART_BYTES, ObjectStore, Stored

_LEFT_OUT = {"claim", "lock", "upload.jsonl", "upload.lock"}
_SEALED = (SEALED, SHELVED)  # files of a Lake
_SENT_AT_ONCE = 2
_FETCHED_AT_ONCE = 4


@dataclass(frozen=True)
class BlobSource:
    """Where a piece lies on this machine.

    Attributes:
        segment: name of the Lake's file, if the piece is a whole segment.
        was_read: whether the piece was checked against its sha256 a moment ago, so that `chunks`
            does not check it again.
    """

    path: Path
    offset: int
    piece: Piece
    segment: str | None = None
    was_read: bool = False

    def chunks(self) -> Iterator[bytes]:
        """Yield the piece's bytes, the last chunk only if the sha256 of all of them is right.

        Raises:
            LostFileError: the sha256 is wrong, or the file is gone.
        """
        digest = hashlib.sha256()
        left = self.piece.n_bytes
        is_wrong = False
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                while left:
                    chunk = file.read(min(left, CHUNK_BYTES))
                    left -= len(chunk)
                    if not self.was_read:
                        digest.update(chunk)
                        is_wrong = not left and digest.hexdigest() != self.piece.sha256
                    if not chunk or is_wrong:
                        raise LostFileError(f"{self.path} is damaged", is_damaged=True)
                    yield chunk
        except OSError as error:
            raise LostFileError(f"{self.path} cannot be read: {error.strerror}") from None


# ---------------------------------------------------------------------- reading here, sending


def read_tree(base: Path, parts: Iterable[str]) -> tuple[FolderTree, dict[str, BlobSource]]:
    """Return the tree of those of these files and folders that exist, and where each blob lies.

    Of a checkpoint, only the manifest is read, since it has the hashes of the other files.

    Args:
        parts: paths below `base`.

    Raises:
        LostFileError: a file vanished or changed meanwhile.
    """
    files = []
    sources = dict[str, BlobSource]()
    try:
        for path in (found for part in parts for found in _files_of(base / part)):
            pieces = list(_pieces_of(path))
            sources |= {source.piece.sha256: source for source in pieces}
            name = path.relative_to(base).as_posix()
            files.append(StoredFile(path=name, pieces=tuple(source.piece for source in pieces)))
    except OSError as error:
        raise LostFileError(f"{error.filename}: {error.strerror}") from None
    return FolderTree(files=tuple(files)), sources


def _files_of(path: Path) -> Iterator[Path]:
    if path.is_dir():
        for inside in sorted(path.iterdir()):
            if not inside.name.startswith(".") and inside.name not in _LEFT_OUT:
                yield from _files_of(inside)
    elif path.is_file():
        yield path


def _pieces_of(path: Path) -> Iterator[BlobSource]:
    known: dict[str, FileEntry] = {}
    if path.name != MANIFEST and (path.parent / MANIFEST).exists():
        with suppress(CheckpointError):
            known |= {str(name): entry for name, entry in read_manifest(path.parent).files.items()}
    if (entry := known.get(path.name)) is not None:
        yield BlobSource(path, 0, Piece(sha256=entry.sha256, n_bytes=entry.bytes))
    elif path.suffix in _SEALED:  # never changes, so it is one blob, however large it is
        sha256 = file_sha256(path)
        yield BlobSource(path, 0, Piece(sha256=sha256, n_bytes=path.stat().st_size))
    else:
        yield from growing_pieces(path, path.stat().st_size)


class RateLimit:
    """A token bucket, shared by all threads that send.

    Args:
        mb_s: limit in 10^6 bytes per second, or None for no limit.
    """

    def __init__(self, mb_s: float | None) -> None:
        self._bytes_s = None if mb_s is None else mb_s * 1e6
        self._free_at_s = time.monotonic()
        self._lock = threading.Lock()

    def slowed(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the chunks no faster than the limit allows."""
        for chunk in chunks:
            self._wait(len(chunk))
            yield chunk

    def _wait(self, n_bytes: int) -> None:
        if self._bytes_s is None:
            return
        with self._lock:
            now = time.monotonic()
            self._free_at_s = max(self._free_at_s, now - _BURST_S) + n_bytes / self._bytes_s
            pause_s = self._free_at_s - now
        if pause_s > 0:
            time.sleep(pause_s)


def find_blob(store: ObjectStore, piece: Piece) -> Stored | None:
    """Return the stored blob, if it has the right length."""
    found = store.find(blob_name(piece.sha256))
    return found if found is not None and found.n_bytes == piece.n_bytes else None


def send_blob(
    store: ObjectStore,
    source: BlobSource,
    limit: RateLimit,
    *,
    renew: Callable[[Stored], bool] = lambda _: False,
) -> bool:
    """Send a blob unless it is in storage; return whether it was sent.

    Args:
        renew: whether to send a blob again although it is there.
    """
    piece = source.piece
    name = blob_name(source.piece.sha256)
    found = find_blob(store, piece)
    if found is not None and not renew(found):
        return False
    if piece.n_bytes <= PART_BYTES:
        store.put(name, b"".join(limit.slowed(source.chunks())))
    else:
        store.put_pieces(name, lambda: limit.slowed(source.chunks()))
    return True


def send_blobs(
    store: ObjectStore,
    sources: dict[str, BlobSource],
    stored: set[str],
    *,
    limit: RateLimit | None = None,
) -> int:
    """Send the blobs that are not in storage yet, and return the number of bytes sent.

    Args:
        stored: blobs that are known to be in storage. The others are added as they arrive.
        limit: limit of bytes per second.

    Raises:
        LostFileError: a file vanished or changed meanwhile.
        StoreFault: storage fails. The call may be repeated.
    """
    limit = limit or RateLimit(None)

    def send(source: BlobSource) -> int:
        was_sent = send_blob(store, source, limit)
        stored.add(source.piece.sha256)
        return source.piece.n_bytes * was_sent

    missing = [source for sha256, source in sources.items() if sha256 not in stored]
    with ThreadPoolExecutor(_SENT_AT_ONCE) as pool:
        return sum(pool.map(send, missing))


# ---------------------------------------------------------------------- fetching


def restore_tree(store: ObjectStore, tree: FolderTree, base: Path, parts: Iterable[str]) -> None:
    """Make these paths below `base` match the tree; the rest of `base` stays as it is.

    A part that is a new folder appears in one rename, as does each checkpoint. Other files are
    replaced one by one. After a kill, the same call completes the work.

    Raises:
        StorageError: a blob is missing or damaged, or storage fails.
    """
    for part in parts:
        below = tree.part(part)
        target = base / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            _update(store, below, base)
            _remove_others(target, below, base)
        elif below.files and below.files[0].path != part:
            with new_directory(target) as folder:
                _fetch(store, [_moved(file, part) for file in below.files], folder)
        else:
            _fetch(store, below.files, base)


def _moved(file: StoredFile, part: str) -> StoredFile:
    """Return the file with its path relative to the part."""
    return file.model_copy(update={"path": file.path.removeprefix(f"{part}/")})


def _update(store: ObjectStore, tree: FolderTree, base: Path) -> None:
    units: dict[str, list[StoredFile]] = {}
    for file in tree.files:
        if file.unit is not None:
            units.setdefault(file.unit, []).append(file)
    for unit, files in units.items():
        if not _is_same_checkpoint(base / unit, files):
            (base / unit).parent.mkdir(parents=True, exist_ok=True)
            with replaced_directory(base / unit), new_directory(base / unit) as folder:
                _fetch(store, [_moved(file, unit) for file in files], folder)
    _fetch(store, [file for file in tree.files if file.unit is None], base)


def _is_same_checkpoint(path: Path, files: list[StoredFile]) -> bool:
    """Whether the checkpoint here has the tree's manifest, which hashes all other files."""
    names = {file.path.rpartition("/")[2] for file in files}
    manifest = next((file for file in files if file.path.endswith(f"/{MANIFEST}")), None)
    if manifest is None or not path.is_dir() or {p.name for p in path.iterdir()} != names:
        return False
    return is_whole(path / MANIFEST, manifest)


def _fetch(store: ObjectStore, files: Iterable[StoredFile], folder: Path) -> None:
    with ThreadPoolExecutor(_FETCHED_AT_ONCE) as pool:
        list(pool.map(lambda file: fetch_file(store, file, folder, lambda _: None), files))


def _remove_others(target: Path, tree: FolderTree, base: Path) -> None:
    """Delete what the tree lacks, except for files that trees leave out, such as locks."""
    units = {file.unit for file in tree.files}
    for path in [p for name in _OF_CHECKPOINTS for p in target.rglob(f"{name}/*") if p.is_dir()]:
        if path.name.isdecimal() and path.relative_to(base).as_posix() not in units:
            remove_directory(path)
    wanted = {file.path for file in tree.files}
    for path in list(_files_of(target)):
        if path.relative_to(base).as_posix() not in wanted:
            path.unlink()


_BURST_S = 0.25

PIECE_BYTES = 1 << 20
"""Size of a growing file's pieces. Full pieces never change, so only the last one is resent."""


def growing_pieces(file: Path, n_bytes: int) -> Iterator[BlobSource]:
    """Yield the pieces of the first `n_bytes` of a file that only grows."""
    with file.open("rb") as opened:
        for offset in range(0, n_bytes, PIECE_BYTES):
            content = opened.read(min(PIECE_BYTES, n_bytes - offset))
            sha256 = hashlib.sha256(content).hexdigest()
            yield BlobSource(file, offset, Piece(sha256=sha256, n_bytes=len(content)))


_PART = ".part"

Tell = Callable[[int], None]
"""Called with the number of bytes that arrived since the last call."""


def fetch_file(store: ObjectStore, file: StoredFile, root: Path, tell: Tell) -> int:
    """Fetch a file unless it is here with the right content; return the number of fetched bytes."""
    path = root / file.path
    if path.is_file() and path.stat().st_size == file.n_bytes and is_whole(path, file):
        tell(file.n_bytes)
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + _PART)
    with synced_file(part) as output:
        for chunk in verified_chunks(store, file):
            output.write(chunk)
            tell(len(chunk))
    part.replace(path)
    sync_directory(path.parent)
    return file.n_bytes


def verified_chunks(store: ObjectStore, file: StoredFile) -> Iterator[bytes]:
    """Yield the content of a stored file.

    Raises:
        StorageError: a blob is missing, or its sha256 is wrong. The caller must discard the chunks
            before it.
    """
    for piece in file.pieces:
        digest = hashlib.sha256()
        name = blob_name(piece.sha256)
        try:
            for chunk in store.pieces(name):
                digest.update(chunk)
                yield chunk
        except FileNotFoundError:
            raise StorageError(
                f"{store.address}/{name}, a part of {file.path}, is missing; fetch another "
                "checkpoint, as in …/runs/ID@TIMESTEPS"
            ) from None
        if digest.hexdigest() != piece.sha256:
            raise StorageError(
                f"{store.address}/{name}, a part of {file.path}, is damaged: its sha256 is "
                "not its name; fetch another checkpoint, as in …/runs/ID@TIMESTEPS"
            )


def is_whole(path: Path, file: StoredFile) -> bool:
    """Whether an existing file has the right content."""
    with path.open("rb") as opened:
        for piece in file.pieces:
            digest = hashlib.sha256()
            left = piece.n_bytes
            while left and (chunk := opened.read(min(left, CHUNK_BYTES))):
                digest.update(chunk)
                left -= len(chunk)
            if digest.hexdigest() != piece.sha256:
                return False
    return True


def blob_fault(store: ObjectStore, sha256: str, n_bytes: int) -> str | None:
    """Return what is wrong with a blob, or None if its sha256 is its name."""
    digest = hashlib.sha256()
    read = 0
    try:
        for chunk in store.pieces(blob_name(sha256)):
            digest.update(chunk)
            read += len(chunk)
    except FileNotFoundError:
        return f"blob {sha256} is missing"
    if digest.hexdigest() != sha256:
        length = f"{read:,} of {n_bytes:,} bytes" if read != n_bytes else "other content"
        return f"blob {sha256} is damaged: {length}"
    return None
