"""Experiments in storage, generation by generation: names, manifests and listings.

experiments/ID/blobs/ab/abcd…           bytes, named by their sha256; equal content is sent once
experiments/ID/generations/000007.json  a manifest of all files; written after its blobs
experiments/ID/superseded/…             manifests of generations that were trained again
experiments/ID/runs/ID/writer.json      the machine that writes to the experiment
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from game_rl.errors import StorageError, UsageError
from game_rl.storage.claim import read_claim
from game_rl.storage.folder_tree import FolderTree
from game_rl.storage.manifest import RUN_ID, parse_stored
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.patience import NO_PATIENCE, Patience

GENERATIONS, SUPERSEDED = "generations", "superseded"
_ADDRESS = re.compile(rf"(?P<to>.+?)/experiments/(?P<id>{RUN_ID.pattern})/?(@(?P<number>\d+))?")
_NAME = re.compile(rf"{GENERATIONS}/(\d{{6}})\.json")


class GenerationManifest(FolderTree):
    """All of an experiment's folder, as it was after a generation.

    Attributes:
        kind: kind of the experiment, such as population.
        game: the game, as the members' config names it.
        saved: when the generation was sent, by the clock of the machine that sent it.
    """

    kind: str = "population"
    game: str | None = None
    saved: datetime | None = None


@dataclass(frozen=True)
class ExperimentAddress:
    """An address such as `s3://bucket/folder/experiments/ID@7`, or without the generation.

    Attributes:
        to: the part before `/experiments`, as in `upload.to` of a config.
        experiment: id of the experiment.
        generation: number of the generation, or None for the newest.
    """

    to: str
    experiment: str
    generation: int | None = None

    @classmethod
    def parse(cls, url: str) -> "ExperimentAddress | None":
        """Parse an address; return None if it is not an experiment's."""
        found = _ADDRESS.fullmatch(url)
        if found is None:
            return None
        number = found["number"]
        return cls(found["to"], found["id"], None if number is None else int(number))


@dataclass(frozen=True)
class StoredExperiment:
    """An experiment in storage.

    Attributes:
        experiment: id of the experiment.
        generations: stored generations, ascending.
        generation: generation of the manifest: the newest, unless another was asked for.
        tree: the manifest.
        writer_host: machine that wrote last, or None if there is no claim.
        is_active: whether the claim says that this writer has not ended.
    """

    experiment: str
    generations: tuple[int, ...]
    generation: int
    tree: GenerationManifest
    writer_host: str | None
    is_active: bool

    @property
    def n_bytes(self) -> int:
        return sum(file.n_bytes for file in self.tree.files)

    @property
    def saved(self) -> str:
        """When the generation was sent, in UTC; empty if the manifest does not say."""
        return "" if self.tree.saved is None else f"{self.tree.saved:%Y-%m-%d %H:%M:%S}"

    def to_json(self) -> dict[str, object]:
        return {
            "kind": self.tree.kind,
            "experiment": self.experiment,
            "game": self.tree.game,
            "generations": self.generations,
            "newest_saved": self.saved,
            "newest_bytes": self.n_bytes,
            "writer_host": self.writer_host,
            "is_active": self.is_active,
        }


def place_of(experiment: str) -> str:
    """Return the folder of an experiment, below the address."""
    return f"experiments/{experiment}"


def generation_name(generation: int) -> str:
    """Return the name of a generation's manifest, below the experiment's folder."""
    return f"{GENERATIONS}/{generation:06d}.json"


def generations_in(store: ObjectStore) -> list[int]:
    """Return the generations in the folder of one experiment, ascending."""
    names = (_NAME.fullmatch(stored.name) for stored in store.list(GENERATIONS))
    return sorted(int(name[1]) for name in names if name is not None)


def read_generation(store: ObjectStore, generation: int) -> GenerationManifest:
    """Return the manifest of a generation.

    Args:
        store: the experiment's folder.

    Raises:
        StorageError: the manifest is gone or damaged.
    """
    name = generation_name(generation)
    content = store.get(name)
    if content is None:
        raise StorageError(f"{store.address}/{name} is gone; try again")
    return parse_stored(GenerationManifest, content, f"{store.address}/{name}")


def stored_experiments(store: ObjectStore) -> list[StoredExperiment]:
    """Return all experiments at an address, ordered by id."""
    return list(_all_in(store))


def _all_in(store: ObjectStore) -> Iterator[StoredExperiment]:
    for name in store.folders("experiments"):
        below = store.inside(place_of(name))
        found = generations_in(below) if RUN_ID.fullmatch(name) else []
        if found:
            yield _stored(below, name, found, found[-1])


def find_stored(address: ExperimentAddress, patience: Patience = NO_PATIENCE) -> StoredExperiment:
    """Return the experiment at the address, with the manifest of the generation it names.

    Raises:
        UsageError: there is no such experiment or generation.
    """
    store = ObjectStore(address.to, patience=patience)
    is_there = address.experiment in store.folders("experiments")
    below = store.inside(place_of(address.experiment)) if is_there else None
    found, wanted = ([] if below is None else generations_in(below)), address.generation
    if below is None or not found:
        raise UsageError(
            f"there is no generation of {address.experiment} at {address.to}; `game-rl remote list "
            f"{address.to}` shows what there is"
        )
    if wanted is not None and wanted not in found:
        shown = ", ".join(map(str, found))
        raise UsageError(f"{address.experiment} has no generation {wanted} there; it has {shown}")
    return _stored(below, address.experiment, found, found[-1] if wanted is None else wanted)


def _stored(
    below: ObjectStore, experiment: str, generations: list[int], wanted: int
) -> StoredExperiment:
    claim = read_claim(below, experiment)
    return StoredExperiment(
        experiment,
        tuple(generations),
        wanted,
        read_generation(below, wanted),
        None if claim is None else claim.host,
        claim is not None and claim.is_active,
    )
