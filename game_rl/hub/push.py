"""Sends a packed agent to the Hub in one commit."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from game_rl.errors import StorageError
from game_rl.files.pretrained import PACKAGE_FILE
from game_rl.files.saved import file_sha256
from game_rl.hub.agent_package import LARGEST_MANIFEST_BYTES, parse_package
from game_rl.hub.hub_client import HubRepository, Listing


def packed_files(folder: Path) -> dict[str, Path]:
    """Return all files of a folder, by their paths in it."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path for path in found}


def push_agent(
    repository: HubRepository, folder: Path, *, message: str, private: bool = False
) -> str:
    """Send all files of a folder in one commit, and return its id.

    Files of an agent that the repository had before are replaced or deleted; others stay. The
    commit is read back: if its answer was lost, that tells whether it was made.

    Args:
        private: whether the repository is private, if it is new.

    Raises:
        UsageError: the Hub refuses.
        StorageError: the Hub fails, or another commit was made meanwhile. Nothing is half done.
    """
    files = packed_files(folder)
    before = repository.listing()
    if before is None:
        repository.create(private=private)
        before = repository.listing() or Listing("", {})
    deleted = [path for path in _old_files(repository, before) if path not in files]
    fault: StorageError | None = None
    try:
        repository.commit(files, deleted=deleted, message=message, parent=before.commit)
    except StorageError as error:
        fault = error
    now = repository.listing()
    if now is None or (different := next(_different(now, files), None)) is not None:
        raise fault or StorageError(
            f"{repository.url} does not have {different} as it was sent; push again"
        )
    return now.commit


def _old_files(repository: HubRepository, listing: Listing) -> Iterator[str]:
    """Yield the files of the agent that the repository has, if it has one."""
    manifest = listing.files.get(PACKAGE_FILE)
    if manifest is None or manifest.nbytes > LARGEST_MANIFEST_BYTES:
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / PACKAGE_FILE
        repository.fetch(PACKAGE_FILE, listing.commit, manifest, path)
        with suppress(StorageError):  # of another version
            package = parse_package(path.read_bytes(), PACKAGE_FILE)
            yield from (file.path for file in package.files if file.path in listing.files)


def _different(listing: Listing, files: Mapping[str, Path]) -> Iterator[str]:
    """Yield the files that the Hub does not have as they are here."""
    for name, path in files.items():
        remote = listing.files.get(name)
        if remote is None or not remote.is_of(file_sha256(path), git_sha1(path)):
            yield name


def git_sha1(path: Path) -> str:
    """Return the name that Git gives to a file's content."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while piece := file.read(2**20):
            digest.update(piece)
    return digest.hexdigest()


_TEXTS = (".json", ".jsonl", ".yaml", ".md", ".csv", ".py", ".sym")


def personal_places(folder: Path) -> list[tuple[str, str]]:
    """Return files that name the user's home or the current folder, each with that name."""
    places = dict.fromkeys((str(Path.home()), str(Path.cwd())))
    found = []
    for name, path in packed_files(folder).items():
        if path.suffix in _TEXTS:
            text = path.read_text(encoding="utf-8", errors="replace")
            found += [(name, place) for place in places if len(place) > 1 and place in text]
    return found
