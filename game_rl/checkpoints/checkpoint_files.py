"""A checkpoint as files: names, manifest, hashes, verified reading, expected size.

It appears in one rename, after all its files have reached the disk, and is never changed. Reading a
checkpoint executes no code and trusts nothing: names lead nowhere else, sizes are compared before a
file is read, and hashes before it is parsed. `CheckpointFolder` knows which files there can be.
"""

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from game_rl.errors import CheckpointError
from game_rl.files.durable_files import link_file, new_directory, synced_file, write_synced
from game_rl.files.saved import Saved, Sha256, parse_saved
from game_rl.system.units import MIB

MANIFEST = "manifest.json"
_MANIFEST_LIMIT_BYTES = 64 * 1024
_LARGEST_FILE_BYTES = 64 * 2**30  # more than any network or replay buffer needs

# Beside the space for the next checkpoint: below the first a run stops, so that logs and other
# programs have room while it saves; below the second its Lake pauses, so that the run continues.
STOP_MARGIN_BYTES = 64 * MIB
LAKE_MARGIN_BYTES = 256 * MIB
# A file takes whole blocks of the disk; a checkpoint has up to nine files and a folder.
BLOCK_BYTES = 4096
CHECKPOINT_SLACK_BYTES = 10 * BLOCK_BYTES

FileName = Annotated[str, Field(pattern=r"^[a-z_]+\.(json|safetensors)$")]


class FileEntry(Saved):
    """Size and hash of one file as it was written."""

    bytes: Annotated[int, Field(ge=0, le=_LARGEST_FILE_BYTES)]
    sha256: Sha256


class Manifest(Saved):
    """All files of a checkpoint; written after them."""

    format: Literal[2]
    files: dict[FileName, FileEntry]


def write_files(
    path: Path,
    files: Iterable[tuple[FileName, Iterable[bytes]]],
    *,
    linked: Mapping[FileName, FileEntry] | None = None,
    linked_from: Path | None = None,
) -> None:
    """Write the directory `path`, which must not exist, with these files, given in pieces.

    Args:
        linked: files of the checkpoint `linked_from` that are linked into this one.

    Raises:
        FileExistsError: `path` exists.
        OSError: the disk is full or fails. Nothing is left then.
    """
    entries: dict[FileName, FileEntry] = dict(linked or {})
    with new_directory(path) as directory:
        for name in entries:
            assert linked_from is not None
            link_file(linked_from / name, directory / name)
        for name, pieces in files:
            digest = hashlib.sha256()
            n_bytes = 0
            with synced_file(directory / name) as file:
                for piece in pieces:
                    n_bytes += file.write(piece)
                    digest.update(piece)
            entries[name] = FileEntry(bytes=n_bytes, sha256=digest.hexdigest())
        manifest = Manifest(format=2, files=entries)
        write_synced(directory / MANIFEST, manifest.model_dump_json(indent=2).encode())


def read_manifest(path: Path) -> Manifest:
    """Raise CheckpointError unless `path` is a checkpoint that this version reads."""
    if not path.is_dir():
        raise CheckpointError(f"{path} is not a checkpoint: there is no such directory")
    file = path / MANIFEST
    try:
        if not file.is_file():
            raise CheckpointError(f"{path} is not a checkpoint: it has no {MANIFEST}")
        if file.stat().st_size > _MANIFEST_LIMIT_BYTES:
            raise CheckpointError(f"{file} is too long to be a manifest; the checkpoint is damaged")
        content = file.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} has no readable {MANIFEST} ({error.strerror})") from None
    return parse_saved(
        Manifest,
        content,
        file,
        error=CheckpointError,
        fault="is damaged, or from another version of game_rl",
        way_out="restore it from a copy, or use another checkpoint",
    )


def read_verified(path: Path, manifest: Manifest, name: FileName) -> bytes:
    """Return the content of one file, after comparing it with the manifest.

    Raises:
        CheckpointError: the checkpoint does not have the file, or the file is damaged.
    """
    with _opened(path, manifest, name) as (file, entry):
        content = file.read()
        _compare(hashlib.sha256(content).hexdigest(), entry, path / name)
    return content


@contextmanager
def opened_verified(path: Path, manifest: Manifest, name: FileName) -> Iterator[io.BufferedReader]:
    """Open one file, after comparing it with the manifest in pieces, as it may be large.

    Raises:
        CheckpointError: the checkpoint does not have the file, or the file is damaged or
            unreadable.
    """
    with _opened(path, manifest, name) as (file, entry):
        _compare(hashlib.file_digest(file, "sha256").hexdigest(), entry, path / name)
        file.seek(0)
        yield file


@contextmanager
def _opened(
    path: Path, manifest: Manifest, name: FileName
) -> Iterator[tuple[io.BufferedReader, FileEntry]]:
    file = path / name
    entry = manifest.files.get(name)
    if entry is None:
        raise CheckpointError(f"{path} has no {name}; use another checkpoint of the run")
    try:
        if not file.is_file():  # opening a pipe would block
            raise CheckpointError(f"{path} has no file {name}; use another checkpoint of the run")
        found_bytes = file.stat().st_size
        if found_bytes != entry.bytes:
            raise CheckpointError(
                f"{file} is damaged: it has {found_bytes:,} bytes and {MANIFEST} says "
                f"{entry.bytes:,}; use another checkpoint of the run"
            )
        with file.open("rb") as opened:
            yield opened, entry
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror}") from None


def _compare(sha256: str, entry: FileEntry, file: Path) -> None:
    if sha256 != entry.sha256:
        raise CheckpointError(
            f"{file} is damaged: its sha256 is not the one in {MANIFEST}; "
            "use another checkpoint of the run"
        )


_FLOAT_BYTES = 4
_MOMENTS = 2  # of Adam and RAdam, for each weight

# Bytes of file headers, counters, random numbers and the config.
OVERHEAD_BYTES = 43_000
# Bytes of each env's compressed emulator state; a game with much RAM takes more.
EMULATOR_STATE_BYTES = 10_500


def checkpoint_bytes(
    *,
    policy_weights: int,
    optimized_weights: int,
    n_envs: int,
    observation_bytes: int,
    replay_bytes: int,
) -> int:
    """Return the approximate size of all files of a checkpoint.

    The overheads were measured on checkpoints of the bundled game.

    Args:
        policy_weights: numbers in the policy, including a target network.
        optimized_weights: numbers among them that the optimiser changes.
        observation_bytes: bytes of one env's stack.
        replay_bytes: bytes of the saved replay, or 0 if none is saved.
    """
    numbers = policy_weights + _MOMENTS * optimized_weights
    envs = n_envs * (observation_bytes + EMULATOR_STATE_BYTES)
    return _FLOAT_BYTES * numbers + envs + replay_bytes + OVERHEAD_BYTES
