"""Finds a ROM by its hash, so that a game.yaml need not know where a person keeps it."""

import functools
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from game_rl.emulator.rom import LARGEST_ROM_BYTES
from game_rl.errors import RomError

ROMS_VARIABLE = "GAME_RL_ROMS"
"""Environment variable that names a folder of ROMs."""

_ROMS = Path("roms")
_BUNDLED = Path(__file__).parents[1] / "games"
_SUFFIXES = (".gb", ".gbc")


@dataclass(frozen=True)
class RomSearch:
    """The result of a search.

    Attributes:
        path: the first ROM that was found.
        looked_in: the folders that were searched, as a person may read it.
    """

    path: Path | None
    looked_in: tuple[str, ...]


def search_rom(hashes: Mapping[str, str], *, in_current_folder: bool = True) -> RomSearch:
    """Look for a ROM with these hashes in `roms`, in `GAME_RL_ROMS`, and among bundled games.

    Args:
        hashes: hex digest by algorithm, "sha256" or "sha1"; at least one.
        in_current_folder: whether to look in `roms`, which is in the current folder.
    """
    looked_in = []
    for folder, where in _folders(in_current_folder=in_current_folder):
        files = list(_roms_in(folder))
        kind = "1 .gb or .gbc file" if len(files) == 1 else f"{len(files)} .gb or .gbc files"
        looked_in.append(f"{where} ({kind if folder.is_dir() else 'no such folder'})")
        for path in files:
            if _has_hashes(path, hashes):
                return RomSearch(path, tuple(looked_in))
    for path in sorted(_BUNDLED.glob("*/*.gb")):
        if _has_hashes(path, hashes):
            return RomSearch(path, tuple(looked_in))
    if ROMS_VARIABLE not in os.environ:
        looked_in.append(f"{ROMS_VARIABLE} (not set)")
    return RomSearch(None, tuple(looked_in))


def hashes_text(hashes: Mapping[str, str]) -> str:
    """Return the hashes as a message has them: "sha256 01ab… and sha1 23cd…"."""
    return " and ".join(f"{name} {digest.lower()}" for name, digest in hashes.items())


def find_rom(hashes: Mapping[str, str], *, in_current_folder: bool = True) -> Path:
    """Return the ROM that `search_rom` finds.

    Raises:
        RomError: there is none; the message says where it was looked for.
    """
    found = search_rom(hashes, in_current_folder=in_current_folder)
    if found.path is not None:
        return found.path
    here = "put it into a folder roms, " if in_current_folder else ""
    raise RomError(
        f"there is no ROM with {hashes_text(hashes)} in {', '.join(found.looked_in)}; {here}set "
        f"{ROMS_VARIABLE} to the folder that has it, or write its `path`"
    )


def has_rom(hashes: Mapping[str, str]) -> bool:
    """Whether `find_rom` finds a ROM."""
    try:
        find_rom(hashes)
    except RomError:
        return False
    return True


def found_roms() -> Iterator[Path]:
    """Yield the files that `find_rom` looks at, in the same order, each once."""
    seen = set[Path]()
    for folder, _ in _folders(in_current_folder=True):
        for path in _roms_in(folder):
            if path.resolve() not in seen:
                seen.add(path.resolve())
                yield path


def rom_places() -> tuple[str, ...]:
    """Return where `find_rom` looks, as a person may read it."""
    named = os.environ.get(ROMS_VARIABLE)
    return str(_ROMS.absolute()), named or f"the folder that {ROMS_VARIABLE} names"


def _folders(*, in_current_folder: bool) -> Iterator[tuple[Path, str]]:
    if in_current_folder:
        yield _ROMS, f"{_ROMS.absolute()}"
    if named := os.environ.get(ROMS_VARIABLE):
        yield Path(named).expanduser(), f"{ROMS_VARIABLE}={named}"


def _roms_in(folder: Path) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.suffix.lower() in _SUFFIXES and entry.is_file():
            yield entry


def _has_hashes(path: Path, hashes: Mapping[str, str]) -> bool:
    return all(_has_hash(path, name, digest.lower()) for name, digest in hashes.items())


def _has_hash(path: Path, name: str, digest: str) -> bool:
    try:
        status = path.stat()
        if status.st_size > LARGEST_ROM_BYTES:
            return False
        return _digest(path.absolute(), name, status.st_size, status.st_mtime_ns) == digest
    except OSError:  # another user's file, perhaps
        return False


@functools.lru_cache(maxsize=8_192)
def _digest(path: Path, name: str, _size: int, _changed_ns: int) -> str:
    """Return the hash of a file, computed again only if the file's size or time has changed."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, name).hexdigest()
