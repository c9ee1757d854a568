"""What is deleted in storage, and when that is safe, for runs and for experiments.

A kill at any step leaves every remaining manifest with all of its blobs, and the next call deletes
the rest. Only the holder of the claim deletes, and it checks its claim repeatedly: blobs that this
writer found unused may be ones that another writer, which took over, is sending.

Two runs share blobs of equal content, so one run could sweep a blob that another one found there
and has not committed yet. Two rules prevent that: only blobs older than a day are swept, and a run
that finds a blob older than half a day sends it again, which renews it. Ages are measured by the
storage's own clock.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from game_rl.errors import StorageError
from game_rl.storage.claim import Claim
from game_rl.storage.inventory import stored_checkpoints, stored_generations
from game_rl.storage.manifest import (
    GenerationManifest,
    RunManifest,
    StoredVideos,
    blobs_of,
    parse_stored,
)
from game_rl.storage.object_store import ObjectStore, Stored
from game_rl.storage.upload_settings import RemoteKeeping

_BLOBS_A_CHECK = 20
_Kind = type[RunManifest | StoredVideos | GenerationManifest]


def doomed(found: list[int], keep: RemoteKeeping) -> list[int]:
    """Return the generations to delete, ascending.

    Args:
        found: all stored generations, ascending.
    """
    if keep.last is None:
        return []
    old = found[: -keep.last]
    every = keep.every
    return [number for number in old if every is None or number % every]


def delete_old(store: ObjectStore, claim: Claim, keep: RemoteKeeping) -> int:
    """Delete old generations, superseded manifests, and blobs that no manifest names.

    Does nothing if `keep.last` is None.

    Returns:
        The number of blobs that were deleted.

    Raises:
        SecondWriterError: another writer took over; nothing more is deleted.
        StorageError: a manifest cannot be read; no blob is deleted.
    """
    if keep.last is None:
        return 0
    claim.check(store)
    series = stored_generations(store)
    old = [series.name(number) for number in doomed(list(series.found()), keep)]
    for name in [*old, *(stored.name for stored in list(store.list("superseded")))]:
        store.delete(name)
    used = _used(store, series.kind, lambda _: GenerationManifest, place=f"{store.address}/")
    unused = [b.name for b in store.list("blobs") if b.name.rpartition("/")[2] not in used]
    for number, name in enumerate(unused):
        if number % _BLOBS_A_CHECK == 0:
            claim.check(store)
        store.delete(name)
    return len(unused)


def _used(
    store: ObjectStore, folder: str, kind_of: Callable[[str], _Kind | None], *, place: str = ""
) -> set[str]:
    """Return the sha256 of all blobs that the manifests below a folder name.

    Args:
        kind_of: returns the kind of the manifest with this name; None if it is no manifest.
        place: what a message puts before the name, such as the address and a slash.
    """
    used: set[str] = set()
    for stored in store.list(folder):
        kind = kind_of(stored.name)
        content = None if kind is None else store.get(stored.name)
        if kind is not None and content is not None:
            used |= blobs_of(parse_stored(kind, content, place + stored.name).files).keys()
    return used


_SWEPT_AFTER = timedelta(days=1)
_RENEWED_AFTER = timedelta(hours=12)


def keep_newest(store: ObjectStore, run: str, count: int) -> int:
    """Keep this run's newest `count` manifests, then sweep; return the number of deleted blobs."""
    series = stored_checkpoints(store, run)
    found = series.found()
    old = doomed(list(found), RemoteKeeping(last=count))
    for timesteps in old:
        store.delete(series.name(timesteps))
    return sweep(store, now=max(stored.modified for stored in found.values())) if old else 0


def sweep(store: ObjectStore, *, now: datetime) -> int:
    """Delete old blobs that no manifest names, and return their number.

    Args:
        now: the time by the storage's clock. An earlier time is safe.

    Raises:
        StorageError: a manifest cannot be read, and nothing has been deleted.
    """
    used = _used(store, "runs", lambda name: _kind_below_runs(store, name))
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


def _kind_below_runs(store: ObjectStore, name: str) -> _Kind | None:
    folder, _, name_in_folder = name.rpartition("/")
    if name_in_folder == "writer.json":
        return None
    if name_in_folder == "videos.json":
        return StoredVideos
    if folder.endswith(("/checkpoints", "/superseded")):
        return RunManifest
    raise StorageError(
        f"{store.address}/{name} is not a file of game_rl, so nothing is deleted; move it elsewhere"
    )
