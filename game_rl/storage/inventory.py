"""What is at an address: the manifests of runs and experiments, found, listed and verified.

experiments/ID/blobs/ab/abcd…           bytes, named by their sha256; equal content is sent once
experiments/ID/generations/000007.json  a manifest of all files; written after its blobs
experiments/ID/superseded/…             manifests of generations that were trained again
experiments/ID/runs/ID/writer.json      the machine that writes to the experiment
"""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from game_rl.errors import StorageError, UsageError
from game_rl.storage.blobs import blob_fault
from game_rl.storage.claim import read_claim
from game_rl.storage.faults import NO_PATIENCE, Patience
from game_rl.storage.manifest import (
    GENERATIONS,
    RUN_ID,
    GenerationManifest,
    RunManifest,
    blobs_of,
    generation_name,
    manifest_name,
    parse_stored,
    place_of,
    run_folder,
    timesteps_of,
)
from game_rl.storage.object_store import ObjectStore

_RUN = re.compile(rf"(?P<to>.+?)/runs/(?P<run>{RUN_ID.pattern})")
_TIMESTEPS = re.compile(r"@([\d_,]+)$")


@dataclass(frozen=True)
class RemoteAddress:
    """The address of a folder with runs, of a run, or of one of its checkpoints.

    Attributes:
        to: address of the folder, as in `upload.to` of a config.
        run: id of the run; None means the only one there.
        timesteps: timesteps of the checkpoint; None means the newest.
    """

    to: str
    run: str | None = None
    timesteps: int | None = None

    @classmethod
    def parse(cls, text: str) -> "RemoteAddress":
        """Parse `s3://bucket/folder/runs/ID@301056`, where the parts after the folder are optional.

        Raises:
            UsageError: there is no number after the `@`.
        """
        timesteps = None
        if found := _TIMESTEPS.search(text):
            digits = re.sub("[_,]", "", found[1])
            if not digits:
                raise UsageError("@ needs a number of timesteps after it, as in …/runs/ID@301056")
            timesteps, text = int(digits), text[: found.start()]
        text = text.rstrip("/")
        match = _RUN.fullmatch(text)
        if match is None:
            return cls(text, None, timesteps)
        return cls(match["to"], match["run"], timesteps)


def stored_runs(store: ObjectStore) -> dict[str, list[int]]:
    """Return the timesteps of the checkpoints of each run, ascending."""
    runs: dict[str, list[int]] = {}
    for stored in store.list("runs"):
        timesteps = timesteps_of(stored.name)
        if timesteps is not None:
            runs.setdefault(stored.name.split("/")[1], []).append(timesteps)
    return {run: sorted(found) for run, found in sorted(runs.items())}


def find_manifest(store: ObjectStore, address: RemoteAddress) -> RunManifest:
    """Return the manifest of the checkpoint that the address names.

    Raises:
        UsageError: the address matches no checkpoint, or several runs.
    """
    runs = stored_runs(store)
    if address.run is None and len(runs) > 1:
        raise UsageError(
            f"{address.to} has {len(runs)} runs; name one: "
            + ", ".join(f"{address.to}/{run_folder(run)}" for run in list(runs)[:8])
        )
    run = address.run or next(iter(runs), None)
    found = runs.get(run or "", [])
    if run is None or not found:
        raise UsageError(
            f"there is no checkpoint of {'a run' if run is None else run} at {address.to}; "
            f"`game-rl remote list {address.to}` shows what there is"
        )
    timesteps = found[-1] if address.timesteps is None else address.timesteps
    if timesteps not in found:
        shown = ", ".join(f"{there:,}" for there in found)
        raise UsageError(f"{run} has no checkpoint {timesteps:,} there; it has {shown}")
    return read_manifest_of(store, run, timesteps)


def read_manifest_of(store: ObjectStore, run: str, timesteps: int) -> RunManifest:
    """Return the manifest of a checkpoint; raise StorageError if it is gone or damaged."""
    name = manifest_name(run, timesteps)
    content = store.get(name)
    if content is None:
        raise StorageError(f"{store.address}/{name} is gone; another checkpoint may be there")
    return parse_stored(RunManifest, content, f"{store.address}/{name}")


@dataclass(frozen=True)
class StoredRun:
    """A run in storage.

    Attributes:
        run: id of the run.
        checkpoints: timesteps of the stored checkpoints, ascending.
        newest_saved: when the newest checkpoint was written, in UTC.
        newest_bytes: bytes of all files that a fetch of that checkpoint brings.
        writer_host: machine that wrote last, or None if there is no claim.
        is_active: whether the claim says that this writer has not ended.
    """

    run: str
    game: str
    checkpoints: tuple[int, ...]
    newest_saved: str
    newest_bytes: int
    writer_host: str | None
    is_active: bool

    def to_json(self) -> dict[str, object]:
        return {"kind": "run"} | asdict(self)


def list_runs(store: ObjectStore) -> list[StoredRun]:
    """Return all runs at an address, ordered by id."""
    return [_stored_run(store, run, found) for run, found in stored_runs(store).items()]


def _stored_run(store: ObjectStore, run: str, found: list[int]) -> StoredRun:
    manifest, claim = read_manifest_of(store, run, found[-1]), read_claim(store, run)
    return StoredRun(
        run=run,
        game=str(manifest.config.get("game")),
        checkpoints=tuple(found),
        newest_saved=f"{manifest.saved:%Y-%m-%d %H:%M:%S}",
        newest_bytes=manifest.n_bytes,
        writer_host=None if claim is None else claim.host,
        is_active=claim is not None and claim.is_active,
    )


_ADDRESS = re.compile(rf"(?P<to>.+?)/experiments/(?P<id>{RUN_ID.pattern})/?(@(?P<number>\d+))?")
_NAME = re.compile(rf"{GENERATIONS}/(\d{{6}})\.json")


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


_AT_ONCE = 4


@dataclass(frozen=True)
class Verification:
    """The result of reading all blobs.

    Attributes:
        damage: what is wrong with each damaged checkpoint, by run and timesteps.
    """

    n_checkpoints: int
    n_blobs: int
    n_bytes: int
    damage: dict[tuple[str, int], str]


def verify_stored(
    store: ObjectStore, address: RemoteAddress, tell: Callable[[int, int], None] = lambda *_: None
) -> Verification:
    """Read every blob of every manifest that the address matches, once.

    Args:
        tell: called after each blob with the numbers of blobs read and of blobs in all.
    """
    wanted: dict[tuple[str, int], dict[str, int]] = {}
    for run, found in stored_runs(store).items():
        for timesteps in found:
            if address.run in (None, run) and address.timesteps in (None, timesteps):
                manifest = read_manifest_of(store, run, timesteps)
                wanted[run, timesteps] = blobs_of(manifest.files)
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
    return Verification(len(wanted), len(blobs), sum(blobs.values()), damage)


_READ_AT_ONCE = 4


def needed_blobs(store: ObjectStore, stored: StoredExperiment, *only: int) -> dict[str, int]:
    """Return the size in bytes, by sha256, of the blobs that these generations need, or all."""
    below = store.inside(place_of(stored.experiment))
    needed: dict[str, int] = {}
    for number in only or stored.generations:
        needed |= blobs_of(read_generation(below, number).files)
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
