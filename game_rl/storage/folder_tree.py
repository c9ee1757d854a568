"""Snapshots of folders: a list of files, whose bytes are blobs named by sha256.

    blobs/ab/abcd…      as for runs; equal content of several folders is stored once

The list and the blobs suffice to restore the folders on another machine. Files that concern one
machine alone (locks, claims, temporary files) are left out.
"""

import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator

from game_rl.checkpoints.checkpoint_files import MANIFEST, read_manifest
from game_rl.errors import CheckpointError
from game_rl.lake.segment import SEALED, SHELVED
from game_rl.run_dir import new_directory, remove_directory, replaced_directory
from game_rl.saved import Saved
from game_rl.storage.contents import PIECE_BYTES, Source, growing_pieces
from game_rl.storage.faults import LostFileError
from game_rl.storage.fetch import fetch_file, is_whole
from game_rl.storage.manifest import Piece, blob_name
from game_rl.storage.object_store import PART_BYTES, ObjectStore
from game_rl.storage.rate_limit import RateLimit

_LEFT_OUT = {"claim", "lock", "upload.jsonl", "upload.lock"}
_OF_CHECKPOINTS = ("checkpoints", "offline")
_SEALED = (SEALED, SHELVED)  # files of a Lake
_SENT_AT_ONCE, _FETCHED_AT_ONCE = 2, 4


def _inside(text: str) -> str:
    """Check that the path stays below the folder, so that no fetched file lands elsewhere."""
    parts = text.split("/")
    if not all(p and not p.startswith(".") and p.isprintable() for p in parts) or "\\" in text:
        raise ValueError("is not a path below the folder")
    return text


class TreeFile(Saved):
    """A file: the concatenation of its blobs."""

    path: Annotated[str, AfterValidator(_inside)]
    pieces: tuple[Piece, ...]

    @property
    def n_bytes(self) -> int:
        return sum(piece.n_bytes for piece in self.pieces)

    @property
    def unit(self) -> str | None:
        """Folder of the file's checkpoint, which appears in one rename; None for other files."""
        folder, _, _ = self.path.rpartition("/")
        parts = folder.split("/")
        is_checkpoint = len(parts) > 1 and parts[-2] in _OF_CHECKPOINTS and parts[-1].isdecimal()
        return folder if is_checkpoint else None


class FolderTree(Saved):
    """Files, with their paths below one folder."""

    format: Literal[1] = 1
    files: tuple[TreeFile, ...]

    def blobs(self) -> dict[str, int]:
        """Return the size in bytes of each blob, by sha256."""
        return {piece.sha256: piece.n_bytes for file in self.files for piece in file.pieces}

    def part(self, name: str) -> "FolderTree":
        """Return the tree of the files at this path or below it."""
        found = (f for f in self.files if f.path == name or f.path.startswith(f"{name}/"))
        return FolderTree(files=tuple(found))


# ---------------------------------------------------------------------- reading here, sending


def read_tree(base: Path, parts: Iterable[str]) -> tuple[FolderTree, dict[str, Source]]:
    """Return the tree of those of these files and folders that exist, and where each blob lies.

    Of a checkpoint, only the manifest is read, since it has the hashes of the other files.

    Args:
        parts: paths below `base`.

    Raises:
        LostFileError: a file vanished or changed meanwhile.
    """
    files, sources = [], dict[str, Source]()
    try:
        for path in (found for part in parts for found in _files_of(base / part)):
            pieces = list(_pieces_of(path))
            sources |= {source.piece.sha256: source for source in pieces}
            name = path.relative_to(base).as_posix()
            files.append(TreeFile(path=name, pieces=tuple(source.piece for source in pieces)))
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


def _pieces_of(path: Path) -> Iterator[Source]:
    known = {}
    if path.name != MANIFEST and (path.parent / MANIFEST).exists():
        try:
            known = dict(read_manifest(path.parent).files)
        except CheckpointError:
            known = {}
    entry = next((entry for name, entry in known.items() if name == path.name), None)
    if entry is None and path.suffix in _SEALED:
        yield _whole(path)
    elif entry is None:
        yield from growing_pieces(path, path.stat().st_size)
    else:
        yield Source(path, 0, Piece(sha256=entry.sha256, n_bytes=entry.bytes))


def _whole(path: Path) -> Source:
    """Return a file that never changes as one blob, however large it is."""
    digest, n_bytes = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(PIECE_BYTES):
            digest.update(chunk)
            n_bytes += len(chunk)
    return Source(path, 0, Piece(sha256=digest.hexdigest(), n_bytes=n_bytes))


def send_blobs(
    store: ObjectStore,
    sources: dict[str, Source],
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

    def send(source: Source) -> int:
        piece, name = source.piece, blob_name(source.piece.sha256)
        found = store.find(name)
        is_there = found is not None and found.n_bytes == piece.n_bytes
        if not is_there and piece.n_bytes <= PART_BYTES:
            store.put(name, b"".join(limit.slowed(source.chunks())))
        elif not is_there:
            store.put_pieces(name, lambda: limit.slowed(source.chunks()))
        stored.add(piece.sha256)
        return 0 if is_there else piece.n_bytes

    missing = [source for sha256, source in sources.items() if sha256 not in stored]
    with ThreadPoolExecutor(_SENT_AT_ONCE) as pool:
        return sum(pool.map(send, missing))


# ---------------------------------------------------------------------- fetching


def bring_tree(store: ObjectStore, tree: FolderTree, base: Path, parts: Iterable[str]) -> None:
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
                _fetch(store, [(f, _moved(f, part), folder) for f in below.files])
        else:
            _fetch(store, [(file, file, base) for file in below.files])


def _moved(file: TreeFile, part: str) -> TreeFile:
    """Return the file with its path relative to the part."""
    return file.model_copy(update={"path": file.path.removeprefix(f"{part}/")})


def _update(store: ObjectStore, tree: FolderTree, base: Path) -> None:
    units: dict[str, list[TreeFile]] = {}
    for file in tree.files:
        if file.unit is not None:
            units.setdefault(file.unit, []).append(file)
    for unit, files in units.items():
        if not _is_same_checkpoint(base / unit, files):
            (base / unit).parent.mkdir(parents=True, exist_ok=True)
            with replaced_directory(base / unit), new_directory(base / unit) as folder:
                _fetch(store, [(file, _moved(file, unit), folder) for file in files])
    _fetch(store, [(file, file, base) for file in tree.files if file.unit is None])


def _is_same_checkpoint(path: Path, files: list[TreeFile]) -> bool:
    """Whether the checkpoint here has the tree's manifest, which hashes all other files."""
    names = {file.path.rpartition("/")[2] for file in files}
    manifest = next((file for file in files if file.path.endswith(f"/{MANIFEST}")), None)
    if manifest is None or not path.is_dir() or {p.name for p in path.iterdir()} != names:
        return False
    return is_whole(path / MANIFEST, manifest)


def _fetch(store: ObjectStore, wanted: list[tuple[TreeFile, TreeFile, Path]]) -> None:
    """Fetch files; of each triple, the second file has the path below the folder."""
    with ThreadPoolExecutor(_FETCHED_AT_ONCE) as pool:
        list(pool.map(lambda item: fetch_file(store, item[1], item[2], lambda _: None), wanted))


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
