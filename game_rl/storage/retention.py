"""Deletes old generations of an experiment from storage: manifests first, then blobs.

A kill at any step leaves every remaining manifest with all of its blobs, and the next call deletes
the rest. Only the holder of the claim deletes, and it checks its claim repeatedly: blobs that this
writer found unused may be ones that another writer, which took over, is sending.
"""

from game_rl.storage.claim import Claim
from game_rl.storage.generations import (
    GENERATIONS,
    SUPERSEDED,
    GenerationManifest,
    generation_name,
    generations_in,
)
from game_rl.storage.manifest import parse_stored
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.settings import RemoteKeeping

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
            used |= parse_stored(GenerationManifest, content, source).blobs().keys()
    return used
