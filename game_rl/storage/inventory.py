"""What is at an address: the manifests of runs and experiments, found, listed and verified.

experiments/ID/blobs/ab/abcd…           bytes, named by their sha256; equal content is sent once
experiments/ID/generations/000007.json  a manifest of all files; written after its blobs
experiments/ID/superseded/…             manifests of generations that were trained again
experiments/ID/runs/ID/writer.json      the machine that writes to the experiment
"""

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Generic, TypeVar

from game_rl.errors import StorageError, UsageError
from game_rl.files.saved import Saved
from game_rl.storage.blobs import blob_fault
from game_rl.storage.claim import read_claim
from game_rl.storage.faults import NO_PATIENCE, Patience
from game_rl.storage.manifest import (
    RUN_ID,
    GenerationManifest,
    RunManifest,
    blobs_of,
    parse_stored,
    place_of,
    run_folder,
)
from game_rl.storage.object_store import ObjectStore, Stored

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
            timesteps = int(digits)
            text = text[: found.start()]
        text = text.rstrip("/")
        match = _RUN.fullmatch(text)
        if match is None:
            return cls(text, None, timesteps)
        return cls(match["to"], match["run"], timesteps)


_Numbered = TypeVar("_Numbered", bound=Saved)


@dataclass(frozen=True)
class ManifestSeries(Generic[_Numbered]):
    """The numbered manifests of one run, or of one experiment.

    Attributes:
        place: folder of the run or experiment in the store, with a slash at its end if it is one
            below the store's.
        kind: folder of the manifests in it.
        digits: number of digits in a manifest's name.
        otherwise: what to do about a manifest that is gone.
    """

    store: ObjectStore
    place: str
    kind: str
    digits: int
    model: type[_Numbered]
    otherwise: str

    def name(self, number: int) -> str:
        return f"{self.place}{self.kind}/{number:0{self.digits}}.json"

    def number_of(self, name: str) -> int | None:
        """Return the number in the name of one of these manifests; None for any other name."""
        digits = name.rpartition("/")[2].removesuffix(".json")
        is_one = digits.isdecimal() and name == self.name(int(digits))
        return int(digits) if is_one else None

    def found(self) -> dict[int, Stored]:
        """Return the manifests by their numbers, which are ascending."""
        listed = self.store.list(f"{self.place}{self.kind}")
        numbered = {self.number_of(stored.name): stored for stored in listed}
        return {n: numbered[n] for n in sorted(n for n in numbered if n is not None)}

    def read(self, number: int) -> _Numbered:
        """Return a manifest; raise StorageError if it is gone or damaged."""
        source = f"{self.store.address}/{self.name(number)}"
        content = self.store.get(self.name(number))
        if content is None:
            raise StorageError(f"{source} is gone; {self.otherwise}")
        return parse_stored(self.model, content, source)

    def set_aside(self, numbers: Iterable[int], epoch: int) -> None:
        """Move manifests out of the way of those that will be trained again."""
        for number in numbers:
            content = self.store.get(self.name(number))
            if content is not None:
                aside = f"{self.place}superseded/{number:0{self.digits}}.{epoch}.json"
                self.store.put(aside, content)
                self.store.delete(self.name(number))


def stored_checkpoints(store: ObjectStore, run: str) -> ManifestSeries[RunManifest]:
    place = f"{run_folder(run)}/"
    otherwise = "another checkpoint may be there"
    return ManifestSeries(store, place, "checkpoints", 12, RunManifest, otherwise)


def stored_generations(store: ObjectStore) -> ManifestSeries[GenerationManifest]:
    """Return the generations of the experiment whose folder the store is."""
    return ManifestSeries(store, "", "generations", 6, GenerationManifest, "try again")


def stored_runs(store: ObjectStore) -> dict[str, list[int]]:
    """Return the timesteps of the checkpoints of each run, ascending."""
    runs: dict[str, list[int]] = {}
    for stored in store.list("runs"):
        run = stored.name.split("/")[1]
        timesteps = stored_checkpoints(store, run).number_of(stored.name)
        if timesteps is not None and RUN_ID.fullmatch(run):
            runs.setdefault(run, []).append(timesteps)
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
    run = address.run or next(iter(runs), "a run")
    wanted = _wanted(
        address.timesteps, runs.get(run, []), "checkpoint", of=run, to=address.to, form=","
    )
    return stored_checkpoints(store, run).read(wanted)


def _wanted(
    number: int | None, found: Sequence[int], kind: str, *, of: str, to: str, form: str = ""
) -> int:
    """Return this number, or the newest of those found; raise UsageError if it is not there."""
    if not found:
        raise UsageError(
            f"there is no {kind} of {of} at {to}; `game-rl remote list {to}` shows what there is"
        )
    if number is not None and number not in found:
        shown = ", ".join(format(there, form) for there in found)
        raise UsageError(f"{of} has no {kind} {number:{form}} there; it has {shown}")
    return found[-1] if number is None else number


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
    manifest = stored_checkpoints(store, run).read(found[-1])
    claim = read_claim(store, run)
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


def stored_experiments(store: ObjectStore) -> list[StoredExperiment]:
    """Return all experiments at an address, ordered by id."""
    experiments = []
    for name in store.folders("experiments"):
        below = store.inside(place_of(name))
        found = list(stored_generations(below).found()) if RUN_ID.fullmatch(name) else []
        if found:
            experiments.append(_stored(below, name, found, found[-1]))
    return experiments


def find_stored(address: ExperimentAddress, patience: Patience = NO_PATIENCE) -> StoredExperiment:
    """Return the experiment at the address, with the manifest of the generation it names.

    Raises:
        UsageError: there is no such experiment or generation.
    """
    store = ObjectStore(address.to, patience=patience)
    is_there = address.experiment in store.folders("experiments")
    below = store.inside(place_of(address.experiment)) if is_there else store
    found = list(stored_generations(below).found()) if is_there else []
    wanted = _wanted(address.generation, found, "generation", of=address.experiment, to=address.to)
    return _stored(below, address.experiment, found, wanted)


def _stored(
    below: ObjectStore, experiment: str, generations: list[int], wanted: int
) -> StoredExperiment:
    claim = read_claim(below, experiment)
    return StoredExperiment(
        experiment,
        tuple(generations),
        wanted,
        stored_generations(below).read(wanted),
        None if claim is None else claim.host,
        claim is not None and claim.is_active,
    )


_AT_ONCE = 4

_Tell = Callable[[int, int], None]


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
    store: ObjectStore, address: RemoteAddress, tell: _Tell = lambda *_: None
) -> Verification:
    """Read every blob of every manifest that the address matches, once.

    Args:
        tell: called after each blob with the numbers of blobs read and of blobs in all.
    """
    wanted: dict[tuple[str, int], dict[str, int]] = {}
    for run, found in stored_runs(store).items():
        for timesteps in found:
            if address.run in (None, run) and address.timesteps in (None, timesteps):
                manifest = stored_checkpoints(store, run).read(timesteps)
                wanted[run, timesteps] = blobs_of(manifest.files)
    blobs = {sha256: n for named in wanted.values() for sha256, n in named.items()}
    wrong = _damage(store, blobs, tell)
    damage = {
        key: "; ".join(wrong[sha256] for sha256 in named if sha256 in wrong)
        for key, named in wanted.items()
        if any(sha256 in wrong for sha256 in named)
    }
    return Verification(len(wanted), len(blobs), sum(blobs.values()), damage)


def needed_blobs(store: ObjectStore, stored: StoredExperiment, *only: int) -> dict[str, int]:
    """Return the size in bytes, by sha256, of the blobs that these generations need, or all."""
    below = store.inside(place_of(stored.experiment))
    needed: dict[str, int] = {}
    for number in only or stored.generations:
        needed |= blobs_of(stored_generations(below).read(number).files)
    return needed


def damaged_blobs(
    store: ObjectStore,
    stored: StoredExperiment,
    blobs: dict[str, int],
    tell: _Tell = lambda *_: None,
) -> list[str]:
    """Read blobs of an experiment, and return a description of each missing or damaged one.

    Args:
        blobs: size in bytes of the blobs to read, by sha256.
        tell: called after each blob with the numbers of blobs read and of blobs in all.
    """
    return list(_damage(store.inside(place_of(stored.experiment)), blobs, tell).values())


def _damage(store: ObjectStore, blobs: dict[str, int], tell: _Tell) -> dict[str, str]:
    """Read all blobs, and return what is wrong with those that are missing or damaged."""
    damage = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        faults = pool.map(lambda item: blob_fault(store, *item), blobs.items())
        for number, (sha256, fault) in enumerate(zip(blobs, faults, strict=True), start=1):
            tell(number, len(blobs))
            if fault is not None:
                damage[sha256] = fault
    return damage
