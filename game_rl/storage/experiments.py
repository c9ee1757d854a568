"""Uploading and fetching an experiment: all of its folder, as it was after a generation."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from game_rl.errors import UsageError
from game_rl.run_dir import RunDir
from game_rl.storage.claim import Claim, refuse_active
from game_rl.storage.contents import as_json
from game_rl.storage.folder_tree import bring_tree, read_tree, send_blobs
from game_rl.storage.generations import (
    ExperimentAddress,
    GenerationManifest,
    StoredExperiment,
    find_stored,
    generation_name,
    place_of,
    read_generation,
)
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.patience import NO_PATIENCE, Patience
from game_rl.storage.rate_limit import RateLimit
from game_rl.storage.retention import delete_old, set_later_aside
from game_rl.storage.settings import PushSettings
from game_rl.storage.verify import blob_fault

LAST_FILE = "experiment.yaml"
"""The file whose presence makes a folder an experiment, so it is fetched last."""
_READ_AT_ONCE = 4


def push_experiment(settings: PushSettings, patience: Patience = NO_PATIENCE) -> int:
    """Send the blobs that storage lacks, then the manifest; return the number of bytes sent.

    The call may be repeated, however an earlier one ended.

    Raises:
        SecondWriterError: another copy of the experiment writes there.
        LostFileError: the folder is gone or has changed.
        StoreFault: storage fails. The call may be repeated.
    """
    store = ObjectStore.below(settings.to, settings.place, patience=patience)
    claim = Claim(settings.experiment, settings.writer, take_over=settings.take_over)
    claim.take(store)
    tree, sources = read_tree(settings.folder, _parts_of(settings.folder))
    there = {stored.name.rpartition("/")[2]: stored.n_bytes for stored in store.list("blobs")}
    known = {sha256 for sha256, n in tree.blobs().items() if there.get(sha256) == n}
    sent = send_blobs(store, sources, known, limit=RateLimit(settings.limit_mb_s))
    claim.check(store)
    manifest = GenerationManifest(
        files=tree.files,
        kind=settings.kind,
        game=settings.game,
        saved=datetime.now(UTC).replace(microsecond=0),
    )
    store.put(generation_name(settings.generation), as_json(manifest))
    set_later_aside(store, claim, newest=settings.generation)
    delete_old(store, claim, settings.keep)
    if settings.is_last:
        claim.release(store)
    return sent


def _parts_of(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))


# ---------------------------------------------------------------------- fetching


def fetch_experiment(
    address: ExperimentAddress,
    root: Path,
    *,
    take_over: bool = True,
    patience: Patience = NO_PATIENCE,
) -> StoredExperiment:
    """Fetch an experiment to the folder `root`, which must be new or hold a part of it.

    Args:
        take_over: whether to fetch it even if another machine writes to it.
        patience: how long to wait while storage fails.

    Raises:
        UsageError: `root` holds a whole experiment or other files, or there is no experiment at
            the address.
        StorageError: a blob is missing or damaged, another machine writes there and `take_over` is
            False, or storage fails.
    """
    found = find_stored(address, patience)
    _check_place(root, address.experiment)
    store = ObjectStore(f"{address.to}/{place_of(address.experiment)}", patience=patience)
    if not take_over:
        refuse_active(store, address.experiment)
    parts = sorted({file.path.split("/")[0] for file in found.tree.files})
    parts.sort(key=lambda part: (part == LAST_FILE, part != "run.json"))
    root.mkdir(parents=True, exist_ok=True)
    for folder in {file.path.split("/")[0] for file in found.tree.files if "/" in file.path}:
        (root / folder).mkdir(exist_ok=True)  # so that what has arrived stays after a kill
    bring_tree(store, found.tree, root, parts)
    return found


def _check_place(root: Path, experiment: str) -> None:
    if (root / LAST_FILE).exists():
        raise UsageError(f"{root} holds an experiment already; name a directory that is new")
    run_dir = RunDir(root)
    if not root.exists() or not any(root.iterdir()):
        return
    if run_dir.identity_file.exists() and run_dir.identity().id == experiment:
        return
    raise UsageError(f"{root} is not empty, and holds no part of it; name a directory that is new")


def needed_blobs(store: ObjectStore, stored: StoredExperiment, *only: int) -> dict[str, int]:
    """Return the size in bytes, by sha256, of the blobs that these generations need, or all."""
    below = store.inside(place_of(stored.experiment))
    needed: dict[str, int] = {}
    for number in only or stored.generations:
        needed |= read_generation(below, number).blobs()
    return needed


def damaged_blobs(
    store: ObjectStore,
    stored: StoredExperiment,
    blobs: dict[str, int],
    tell: Callable[[], None] = lambda: None,
) -> list[str]:
    """Read blobs of an experiment, and return a description of each missing or damaged one.

    Args:
        blobs: size in bytes of the blobs to read, by sha256.
        tell: called after each blob.
    """
    below = store.inside(place_of(stored.experiment))
    found = []
    with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
        for fault in pool.map(lambda item: blob_fault(below, *item), blobs.items()):
            tell()
            if fault is not None:
                found.append(fault)
    return found
