"""What leaves storage after a generation has arrived there: manifests first, then blobs.

Killed at any step, it leaves every manifest that is there with all of its blobs, and the next call
deletes the rest. Only who holds the claim deletes, and asks for it again and again: blobs that this
writer found unused may be what another one, who took over, sends just now.
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
    """Generations to delete, ascending.

    Args:
        found: those that are there, ascending.
    """
    if keep.last is None:
        return []
    old, every = found[: -keep.last], keep.every
    return [number for number in old if every is None or number % every]


def set_later_aside(store: ObjectStore, claim: Claim, *, newest: int) -> None:
    """Manifests of later generations, which are trained again, are no generations any more."""
    for number in generations_in(store):
        content = store.get(generation_name(number)) if number > newest else None
        if content is not None:
            store.put(f"{SUPERSEDED}/{number:06d}.{claim.epoch}.json", content)
            store.delete(generation_name(number))


def delete_old(store: ObjectStore, claim: Claim, keep: RemoteKeeping) -> int:
    """Delete the generations that are not kept, what was set aside, and blobs that nobody needs.

    Returns:
        The number of blobs that went.

    Raises:
        SecondWriterError: another one took over; nothing more is deleted.
        StorageError: a manifest cannot be read; no blob is deleted then.
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
    """sha256 of all blobs that a manifest names."""
    used: set[str] = set()
    for stored in store.list(GENERATIONS):
        content = store.get(stored.name)
        if content is not None:
            source = f"{store.address}/{stored.name}"
            used |= parse_stored(GenerationManifest, content, source).blobs().keys()
    return used
