"""Deletes old checkpoints of a run from storage, and blobs that no manifest of any run names.

Two runs share blobs of equal content, so one run could sweep a blob that another one found there
and has not committed yet. Two rules prevent that: only blobs older than a day are swept, and a run
that finds a blob older than half a day sends it again, which renews it. Ages are measured by the
storage's own clock.
"""

from datetime import datetime, timedelta

from game_rl.errors import StorageError
from game_rl.storage.manifest import (
    manifest_name,
    parse_manifest,
    parse_videos,
    run_folder,
    timesteps_of,
)
from game_rl.storage.object_store import ObjectStore, Stored

_SWEPT_AFTER = timedelta(days=1)
_RENEWED_AFTER = timedelta(hours=12)


def keep_newest(store: ObjectStore, run: str, count: int) -> int:
    """Keep this run's newest `count` manifests, then sweep; return the number of deleted blobs."""
    stored = list(store.list(f"{run_folder(run)}/checkpoints"))
    found = sorted(t for s in stored if (t := timesteps_of(s.name)) is not None)
    old = found[:-count]
    for timesteps in old:
        store.delete(manifest_name(run, timesteps))
    return sweep(store, now=max(s.modified for s in stored)) if old else 0


def sweep(store: ObjectStore, *, now: datetime) -> int:
    """Delete old blobs that no manifest names, and return their number.

    Args:
        now: the time by the storage's clock. An earlier time is safe.

    Raises:
        StorageError: a manifest cannot be read, and nothing has been deleted.
    """
    used = _used(store)
    unused = [
        blob
        for blob in store.list("blobs")
        if blob.name.rpartition("/")[2] not in used and now - blob.modified > _SWEPT_AFTER
    ]
    for blob in unused:
        store.delete(blob.name)
    return len(unused)


def needs_renewal(blob: Stored, *, now: datetime) -> bool:
    """Whether a stored blob is so old that a sweep might soon delete it."""
    return now - blob.modified > _RENEWED_AFTER


def _used(store: ObjectStore) -> set[str]:
    """Return the sha256 of all blobs that any manifest names."""
    used: set[str] = set()
    for stored in store.list("runs"):
        folder, _, name = stored.name.rpartition("/")
        if name == "writer.json":
            continue
        content = store.get(stored.name)
        if content is None:
            continue
        if name == "videos.json":
            files = parse_videos(content, stored.name).files
        elif folder.endswith(("/checkpoints", "/superseded")):
            files = parse_manifest(content, stored.name).files
        else:
            raise StorageError(
                f"{store.address}/{stored.name} is not a file of game_rl, so nothing is deleted; "
                "move it elsewhere"
            )
        used |= {piece.sha256 for file in files for piece in file.pieces}
    return used
