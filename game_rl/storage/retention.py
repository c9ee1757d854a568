"""What is deleted in storage, and when that is safe, for runs and for experiments.

A kill at any step leaves every remaining manifest with all of its blobs, and the next call deletes
the rest. Only the holder of the claim deletes, and it checks its claim repeatedly: blobs that this
writer found unused may be ones that another writer, which took over, is sending.

Two runs share blobs of equal content, so one run could sweep a blob that another one found there
and has not committed yet. Two rules prevent that: only blobs older than a day are swept, and a run
that finds a blob older than half a day sends it again, which renews it. Ages are measured by the
storage's own clock.
"""

from datetime import datetime, timedelta

from game_rl.errors import StorageError
from game_rl.storage.claim import Claim
from game_rl.storage.inventory import generations_in
from game_rl.storage.manifest import (
    GENERATIONS,
    SUPERSEDED,
    GenerationManifest,
    RunManifest,
    StoredVideos,
    blobs_of,
    generation_name,
    manifest_name,
    parse_stored,
    run_folder,
    timesteps_of,
)
from game_rl.storage.object_store import ObjectStore, Stored
from game_rl.storage.upload_settings import RemoteKeeping

_BLOBS_A_CHECK = 20


def doomed(found: list[int], keep: RemoteKeeping) -> list[int]:
    """Return the generations to delete, ascending.

    Args:
        found: all stored generations, ascending.
    """
    if keep.last is None:
        return []
    old, every = found[: -keep.last], keep.every
    return [number for number in old if every is None or number % every]


def set_later_aside(store: ObjectStore, claim: Claim, *, newest: int) -> None:
    """Move the manifests of later generations, which will be trained again, to `superseded/`."""
    for number in generations_in(store):
        content = store.get(generation_name(number)) if number > newest else None
        if content is not None:
            store.put(f"{SUPERSEDED}/{number:06d}.{claim.epoch}.json", content)
            store.delete(generation_name(number))


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
    old = [generation_name(number) for number in doomed(generations_in(store), keep)]
    for name in [*old, *(stored.name for stored in list(store.list(SUPERSEDED)))]:
        store.delete(name)
    used = _used(store)
    unused = [b.name for b in store.list("blobs") if b.name.rpartition("/")[2] not in used]
    for number, name in enumerate(unused):
        if number % _BLOBS_A_CHECK == 0:
            claim.check(store)
        store.delete(name)
    return len(unused)


def _used(store: ObjectStore) -> set[str]:
    """Return the sha256 of all blobs that a manifest names."""
    used: set[str] = set()
    for stored in store.list(GENERATIONS):
        content = store.get(stored.name)
        if content is not None:
            source = f"{store.address}/{stored.name}"
            used |= blobs_of(parse_stored(GenerationManifest, content, source).files).keys()
    return used


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
    used = _used_by_generations(store)
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


def _used_by_generations(store: ObjectStore) -> set[str]:
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
            files = parse_stored(StoredVideos, content, stored.name).files
        elif folder.endswith(("/checkpoints", "/superseded")):
            files = parse_stored(RunManifest, content, stored.name).files
        else:
            raise StorageError(
                f"{store.address}/{stored.name} is not a file of game_rl, so nothing is deleted; "
                "move it elsewhere"
            )
        used |= blobs_of(files).keys()
    return used
