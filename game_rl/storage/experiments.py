"""Experiments in storage: all of a folder as it was after a generation.

    experiments/ID/blobs/ab/abcd…           bytes, named by their sha256; equal content goes once
    experiments/ID/generations/000007.json  every file of the folder; written after its blobs
    experiments/ID/runs/ID/writer.json      who writes

Only the newest generation is kept: it has the checkpoints of those that the population keeps.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from game_rl.errors import StorageError, UsageError
from game_rl.run_dir import RunDir
from game_rl.storage.claim import Claim, refuse_active
from game_rl.storage.contents import as_json
from game_rl.storage.folder_tree import (
    FolderTree,
    bring_tree,
    parse_tree,
    read_tree,
    send_blobs,
)
from game_rl.storage.manifest import RUN_ID
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.rate_limit import RateLimit
from game_rl.storage.settings import PushSettings
from game_rl.storage.verify import blob_fault

LAST_FILE = "experiment.yaml"
"""Its presence makes a folder an experiment, so it arrives last."""
_ADDRESS = re.compile(rf"(?P<to>.+?)/experiments/(?P<id>{RUN_ID.pattern})/?")
_GENERATION = re.compile(r"generations/(\d{6})\.json")


def push_experiment(settings: PushSettings) -> int:
    """Send what is not there; bytes that were sent. May be called again, whatever ended it.

    Raises:
        SecondWriterError: another copy of the experiment writes there.
        LostFileError: the folder is gone or has changed.
        StoreFault: storage fails; the same may be tried again.
    """
    store = ObjectStore.below(settings.to, settings.place)
    claim = Claim(settings.experiment, settings.writer, take_over=settings.take_over)
    claim.take(store)
    tree, sources = read_tree(settings.folder, _parts_of(settings.folder))
    sent = send_blobs(store, sources, set(), limit=RateLimit(settings.limit_mb_s))
    claim.check(store)
    name = _name(settings.generation)
    store.put(name, as_json(tree))
    _keep_only(store, name, tree)
    if settings.is_last:
        claim.release(store)
    return sent


def _parts_of(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))


def _name(generation: int) -> str:
    return f"generations/{generation:06d}.json"


def _keep_only(store: ObjectStore, name: str, tree: FolderTree) -> None:
    """Other generations go first, then what only they named."""
    for stored in list(store.list("generations")):
        if stored.name != name:
            store.delete(stored.name)
    used = tree.blobs()
    for stored in list(store.list("blobs")):
        if stored.name.rpartition("/")[2] not in used:
            store.delete(stored.name)


# ---------------------------------------------------------------------- back


@dataclass(frozen=True)
class StoredExperiment:
    """An experiment in storage, as it was after its newest generation there."""

    experiment: str
    generation: int
    tree: FolderTree

    @property
    def n_bytes(self) -> int:
        return sum(file.n_bytes for file in self.tree.files)


def experiment_at(url: str) -> tuple[str, str] | None:
    """The folder and the id in `…/experiments/ID`; None: it is no such address."""
    found = _ADDRESS.fullmatch(url)
    return None if found is None else (found["to"], found["id"])


def stored_experiments(store: ObjectStore) -> list[StoredExperiment]:
    """All at an address, ordered by id."""
    names: dict[str, int] = {}
    for stored in store.list("experiments"):
        _, experiment, *rest = stored.name.split("/")
        found = _GENERATION.fullmatch("/".join(rest))
        if found is not None and RUN_ID.fullmatch(experiment):
            names[experiment] = max(int(found[1]), names.get(experiment, 0))
    return [_stored(store, f"experiments/{e}/", e, names[e]) for e in sorted(names)]


def _stored(store: ObjectStore, prefix: str, experiment: str, generation: int) -> StoredExperiment:
    name = prefix + _name(generation)
    content = store.get(name)
    if content is None:
        raise StorageError(f"{store.address}/{name} is gone; try again")
    return StoredExperiment(experiment, generation, parse_tree(content, name))


def fetch_experiment(
    to: str,
    experiment: str,
    root: Path,
    *,
    take_over: bool = True,
) -> StoredExperiment:
    """Bring an experiment to the folder `root`, which is new, or has a part of it.

    Raises:
        UsageError: `root` has another one or something else, or there is none at the address.
        StorageError: a blob is missing or damaged, somebody writes there, or storage fails.
    """
    found = {one.experiment: one for one in stored_experiments(ObjectStore(to))}.get(experiment)
    if found is None:
        raise UsageError(
            f"there is no generation of {experiment} at {to}; `game-rl remote list {to}` shows "
            "what there is"
        )
    _check_place(root, experiment)
    store = ObjectStore(f"{to}/experiments/{experiment}")
    if not take_over:
        refuse_active(store, experiment)
    parts = sorted({file.path.split("/")[0] for file in found.tree.files})
    parts.sort(key=lambda part: (part == LAST_FILE, part != "run.json"))
    root.mkdir(parents=True, exist_ok=True)
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
    raise UsageError(f"{root} is not empty, and has no part of this one; name one that is new")


def damaged_blobs(
    store: ObjectStore, stored: StoredExperiment, tell: Callable[[], None] = lambda: None
) -> list[str]:
    """What is wrong with what an experiment needs, read byte by byte."""
    below = ObjectStore(f"{store.address}/experiments/{stored.experiment}")
    found = []
    for sha256, n_bytes in stored.tree.blobs().items():
        fault = blob_fault(below, sha256, n_bytes)
        tell()
        if fault is not None:
            found.append(fault)
    return found
