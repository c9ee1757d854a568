"""Reading every blob that manifests name, and comparing it with its sha256."""

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from game_rl.storage.manifest import blob_name
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.remote import RemoteAddress, read_manifest_of, stored_runs

_AT_ONCE = 4


@dataclass(frozen=True)
class Verdict:
    """The result of reading all blobs.

    Attributes:
        damage: what is wrong with each damaged checkpoint, by run and timesteps.
    """

    n_checkpoints: int
    n_blobs: int
    n_bytes: int
    damage: dict[tuple[str, int], str]


def verify(
    store: ObjectStore, address: RemoteAddress, tell: Callable[[int, int], None] = lambda *_: None
) -> Verdict:
    """Read every blob of every manifest that the address matches, once.

    Args:
        tell: called after each blob with the numbers of blobs read and of blobs in all.
    """
    wanted: dict[tuple[str, int], dict[str, int]] = {}
    for run, found in stored_runs(store).items():
        for timesteps in found:
            if address.run in (None, run) and address.timesteps in (None, timesteps):
                manifest = read_manifest_of(store, run, timesteps)
                wanted[run, timesteps] = manifest.blobs()
    blobs = {sha256: n for named in wanted.values() for sha256, n in named.items()}
    wrong: dict[str, str] = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        faults = pool.map(lambda item: blob_fault(store, *item), blobs.items())
        for number, (sha256, fault) in enumerate(zip(blobs, faults, strict=True), start=1):
            tell(number, len(blobs))
            if fault is not None:
                wrong[sha256] = fault
    damage = {
        key: "; ".join(wrong[sha256] for sha256 in named if sha256 in wrong)
        for key, named in wanted.items()
        if any(sha256 in wrong for sha256 in named)
    }
    return Verdict(len(wanted), len(blobs), sum(blobs.values()), damage)


def blob_fault(store: ObjectStore, sha256: str, n_bytes: int) -> str | None:
    """Return what is wrong with a blob, or None if its sha256 is its name."""
    digest, read = hashlib.sha256(), 0
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
