"""Getting a job's files to a node and its results back, through a shared file system or storage.

The controller's folder is authoritative and complete: after each attempt it has everything that the
attempt left, as if the job had run there. Storage holds only files in transit, and is emptied at
the end. A note in the folder records each attempt under way; after a kill, the next controller
fetches these attempts first.

    CLAIM/000001.json      the run directory at a checkpoint of the attempt
    CLAIM/end.json         how the attempt ended; written once, by node or controller

The node writes the end when it delivers. The controller writes it when it gives the job up, before
it starts another attempt. So exactly one of two attempts counts, whatever the network does, and the
work of the other is discarded.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field

from game_rl.config.loader import dump_config, load_config
from game_rl.errors import ExperimentError, StorageError
from game_rl.experiments.executors.executor import Demand, Job
from game_rl.experiments.executors.node_checks import Needs, game_needs, marked, marked_storage
from game_rl.experiments.jobs.job_files import staging_folder
from game_rl.files.durable_files import write_atomic, write_saved
from game_rl.files.run_dir import RunDir, standing_claim
from game_rl.files.saved import Saved, parse_saved
from game_rl.storage.blobs import read_tree, restore_tree, send_blobs
from game_rl.storage.faults import Patience
from game_rl.storage.manifest import FolderTree, as_json, blob_name, blobs_of, parse_stored
from game_rl.storage.object_store import ObjectStore
from game_rl.system.processes import own_niceness


@dataclass(frozen=True)
class StagedJob:
    """The job and the files that a node needs for one attempt.

    Attributes:
        address: address of the experiment's folder in storage.
        claim: unique id of the attempt.
        job: the job, with paths below the folder that it runs in.
        tree: the files that the job reads.
        run: the run directory that it trains, or None.
    """

    address: str
    claim: str
    job: Job
    tree: FolderTree
    run: str | None

    @property
    def writes(self) -> tuple[str, ...]:
        return (*(path.as_posix() for path in self.job.writes), self.job.output.as_posix())


@dataclass(frozen=True)
class RemoteJob:
    """A job on its way to a node.

    Attributes:
        needs: what the node must have.
        niceness: niceness of the controller, which the job gets whatever the cluster's own is.
        has_gpu: whether the cluster gives it a GPU. If not, all GPUs are hidden from it.
        patience_s: time that it may take to save and end when it is asked to stop.
        folder: folder in which the job starts, if the node shares it with the controller.
        staged: files that the job reads and writes, if the node shares none with the controller.
    """

    job: Job
    needs: Needs
    niceness: int
    has_gpu: bool
    patience_s: float
    folder: Path | None = None
    staged: StagedJob | None = None


@dataclass(frozen=True)
class Staging:
    """The parts of an executor that depend on how files are exchanged.

    Attributes:
        needs: what every node must have.
        stage_in: makes the job that a node gets, once the node can read the job's files.
        stage_out: fetches what an attempt at a job has left, once it has ended.
    """

    needs: Needs
    stage_in: Callable[[Job], RemoteJob]
    stage_out: Callable[[Job], None]


@contextmanager
def shared_files(demand: Demand) -> Iterator[Staging]:
    """Exchange files in a file system that all nodes share, at the same paths."""
    with marked(demand.folder) as needs:
        yield Staging(
            needs, lambda job: _remote_job(job, demand, needs, folder=needs.folder), lambda _: None
        )


@contextmanager
def shared_storage(address: str, demand: Demand) -> Iterator[Staging]:
    """Exchange files through a folder in storage, which is emptied unless attempts are under way.

    Raises:
        StorageError: the storage cannot be used.
        GameFileError: a file of the members' game is missing here.
    """
    name = f"errands/{RunDir(demand.folder).identity().id}"
    store = ObjectStore.below(address, name)
    with marked_storage(store, game_needs(demand.game), demand.disk_bytes) as needs:
        storage = StorageStaging(demand.folder, store, demand.warn)
        storage.take_back()
        yield Staging(
            needs,
            lambda job: _remote_job(job, demand, needs, staged=storage.begin(job)),
            storage.end,
        )
    storage.close()


def _remote_job(
    job: Job,
    demand: Demand,
    needs: Needs,
    *,
    folder: Path | None = None,
    staged: StagedJob | None = None,
) -> RemoteJob:
    return RemoteJob(
        job=job,
        needs=needs,
        niceness=own_niceness(),
        has_gpu=demand.gpus > 0,
        patience_s=demand.patience_s,
        folder=folder,
        staged=staged,
    )


_CONTROLLER_PATIENCE_S = 300.0

Answer = TypeVar("Answer")


class StagingNote(Saved):
    """An attempt at a job, with paths below the experiment's folder."""

    claim: str
    """Unique id of the attempt."""
    run: str | None
    """The run directory that it trains, or None."""
    writes: tuple[str, ...]
    """Files and folders that it leaves."""


class StorageStaging:
    """Manages the experiment's folder in storage; `close` empties it.

    Args:
        root: the experiment's folder on this machine.
        store: a folder in storage that only this experiment uses.
        warn: called with the text of a warning for the user.

    Raises (everywhere):
        StorageError: storage keeps failing for several minutes.
    """

    def __init__(self, root: Path, store: ObjectStore, warn: Callable[[str], None]) -> None:
        self._root = root
        self._address = store.address
        self._warn = warn
        self._notes: dict[str, StagingNote] = {}
        self._stored: set[str] = set()
        self._trees: dict[str, FolderTree] = {}
        staging_folder(root).mkdir(exist_ok=True)

    def begin(self, job: Job) -> StagedJob:
        """Send the files that the job reads and storage lacks, and note the attempt."""
        note = StagingNote(
            claim=job.claim or uuid.uuid4().hex,
            run=None if job.claim is None else self._below(job.reads[0]),
            writes=tuple(self._below(path) for path in (*job.writes, job.output)),
        )
        parts = tuple(self._below(path) for path in (*job.reads, job.request, job.output))
        tree, sources = read_tree(self._root, parts)
        self._patiently(lambda store: send_blobs(store, sources, self._stored))
        write_saved(self._note_file(note), note)
        self._notes[job.name] = note
        self._remember(parts, tree)
        return StagedJob(self._address, note.claim, self._moved(job), tree, note.run)

    def end(self, job: Job) -> None:
        """Fetch what the attempt has left; give it up if it has not ended."""
        note = self._notes.pop(job.name)
        self._take_home(note)
        if not self._notes:
            self._patiently(self._sweep)

    def take_back(self) -> None:
        """Do as `end` does, for all attempts that a killed controller has noted."""
        for path in sorted(staging_folder(self._root).glob("*.json")):
            self._take_home(
                parse_saved(StagingNote, path.read_bytes(), path, error=ExperimentError)
            )

    def close(self) -> None:
        """Empty the folder in storage, unless an attempt is noted."""
        if any(staging_folder(self._root).iterdir()):
            return
        staging_folder(self._root).rmdir()
        with suppress(StorageError):
            ObjectStore(self._address).clear()

    # ------------------------------------------------------------------ one attempt

    def _take_home(self, note: StagingNote) -> None:
        end = self._patiently(lambda store: _ended(store, note.claim))
        tree = end.tree
        if end.code is None:
            tree = self._patiently(lambda store: _newest_saved(store, note.claim))
        parts = tuple(part for part in note.writes if tree.part(part).files)
        if parts and self._counts(note):
            self._patiently(lambda store: restore_tree(store, tree, self._root, parts))
            for run_dir in (RunDir(self._root / part) for part in parts):
                if run_dir.exists():  # its config has the place of the run on the node
                    config = load_config(run_dir.config, is_saved=True)
                    text = dump_config(config.model_copy(update={"run_dir": run_dir.root}))
                    write_atomic(run_dir.config, text)
            self._stored |= set(blobs_of(tree.files))
            self._remember(parts, tree)
        self._note_file(note).unlink(missing_ok=True)
        self._patiently(lambda store: _forget(store, note.claim, is_void=end.code is None))

    def _counts(self, note: StagingNote) -> bool:
        """Whether the attempt counts: not if another executor has carried out the job meanwhile."""
        if note.run is not None:
            return standing_claim(RunDir(self._root / note.run)) == note.claim
        return not any((self._root / part).exists() for part in note.writes[:1])

    # ------------------------------------------------------------------ storage

    def _remember(self, parts: tuple[str, ...], tree: FolderTree) -> None:
        for part in parts:
            if (self._root / part).is_dir():
                self._trees[part] = tree.part(part)

    def _sweep(self, store: ObjectStore) -> None:
        """Delete blobs that no run needs any more; only while no attempt is under way."""
        self._trees = {p: t for p, t in self._trees.items() if (self._root / p).is_dir()}
        used = {sha256 for tree in self._trees.values() for sha256 in blobs_of(tree.files)}
        for sha256 in self._stored - used:
            store.delete(blob_name(sha256))
        self._stored &= used

    def _patiently(self, do: Callable[[ObjectStore], Answer]) -> Answer:
        patience = Patience(
            _CONTROLLER_PATIENCE_S,
            tell=lambda fault: self._warn(f"{fault}. It is retried for up to five minutes"),
        )
        return patience.ask(lambda: do(ObjectStore(self._address)))

    # ------------------------------------------------------------------ paths

    def _note_file(self, note: StagingNote) -> Path:
        return staging_folder(self._root) / f"{note.claim}.json"

    def _below(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    def _moved(self, job: Job) -> Job:
        """Return the job with paths relative to the folder that it will run in on the node."""

        def moved(*paths: Path) -> tuple[Path, ...]:
            return tuple(path.relative_to(self._root) for path in paths)

        request, output = moved(job.request, job.output)
        reads = moved(*job.reads)
        writes = moved(*job.writes)
        return replace(job, request=request, output=output, claim=None, reads=reads, writes=writes)


class StagedResult(Saved):
    """How an attempt has ended."""

    format: Annotated[int, Field(ge=1, le=1)] = 1
    code: int | None
    """Exit code of the job's process, or None if the controller has given the attempt up."""
    tree: FolderTree
    """The files that it leaves."""


def _ended(store: ObjectStore, claim: str) -> StagedResult:
    """Return how the attempt has ended; one that has not ended is given up, for good."""
    name = end_name(claim)
    given_up = StagedResult(code=None, tree=FolderTree(files=()))
    with suppress(FileExistsError):
        store.put(name, as_json(given_up), is_new=True)
    content = store.get(name)
    if content is None:
        return given_up
    return parse_stored(StagedResult, content, f"{store.address}/{name}")


def _newest_saved(store: ObjectStore, claim: str) -> FolderTree:
    """Return the tree that the attempt sent with its newest checkpoint, or an empty one."""
    saved = sorted(s.name for s in store.list(claim) if s.name != end_name(claim))
    for name in saved[-1:]:
        content = store.get(name)
        if content is not None:
            return parse_stored(FolderTree, content, name)
    return FolderTree(files=())


def _forget(store: ObjectStore, claim: str, *, is_void: bool) -> None:
    """Delete what the attempt stored; the end of a void one stays, since its node looks for it."""
    for stored in list(store.list(claim)):
        if not (is_void and stored.name == end_name(claim)):
            store.delete(stored.name)


_NODE_PATIENCE_S = 900.0  # for a task that has only to deliver its results
_SAVING_TIMEOUT_S = 30.0  # for one request while the job is training


class GivenUpError(StorageError):
    """Another attempt at the job counts, and this one is void."""


def end_name(claim: str) -> str:
    return f"{claim}/end.json"


class NodeStaging:
    """The node's side: fetches the files for one attempt, and sends what it leaves.

    Raises (everywhere):
        GivenUpError: another attempt counts.
        StorageError: storage fails, even after retries.
    """

    def __init__(self, staged: StagedJob, folder: Path) -> None:
        self._staged = staged
        self._folder = folder
        self._saved = self._newest()
        self._count = 0
        self._stored: set[str] = set(blobs_of(staged.tree.files))

    def fetch(self) -> None:
        tree = self._staged.tree
        parts = sorted({file.path.split("/")[0] for file in tree.files})
        self._patiently(lambda store: restore_tree(store, tree, self._folder, parts))
        self._saved = self._newest()

    def save(self) -> None:
        """Send the run if it has a new checkpoint; a failure is retried at the next call."""
        newest = self._newest()
        if newest == self._saved or self._staged.run is None:
            return
        try:
            store = ObjectStore(self._staged.address, timeout_s=_SAVING_TIMEOUT_S)
            if store.find(end_name(self._staged.claim)) is not None:
                raise _given_up()
            tree, sources = read_tree(self._folder, (self._staged.run,))
            send_blobs(store, sources, self._stored)
            if self._newest() != newest:
                return  # replaced meanwhile, so the tree may mix two checkpoints
            store.put(f"{self._staged.claim}/{self._count + 1:06d}.json", as_json(tree))
        except GivenUpError:
            raise
        except StorageError:
            return
        self._count += 1
        self._saved = newest

    def deliver(self, code: int) -> None:
        """Send what the job has left, then the end of the attempt."""
        tree, sources = read_tree(self._folder, self._staged.writes)
        end = as_json(StagedResult(code=code, tree=tree))
        name = end_name(self._staged.claim)

        def deliver(store: ObjectStore) -> None:
            found = store.get(name)
            if found is None:
                send_blobs(store, sources, self._stored)
                with suppress(FileExistsError):
                    store.put(name, end, is_new=True)
                found = store.get(name)
            if found != end:  # equal if only the reply was lost
                raise _given_up()

        self._patiently(deliver)

    def _newest(self) -> tuple[str, bytes] | None:
        """Return the name and the manifest of the newest checkpoint here, or None."""
        if self._staged.run is None:
            return None
        for path in RunDir(self._folder / self._staged.run).checkpoints_newest_first():
            try:
                return path.name, (path / "manifest.json").read_bytes()
            except FileNotFoundError:
                continue
        return None

    def _patiently(self, do: Callable[[ObjectStore], None]) -> None:
        Patience(_NODE_PATIENCE_S).ask(lambda: do(ObjectStore(self._staged.address)))


def _given_up() -> GivenUpError:
    return GivenUpError("the controller has restarted this job, so this attempt is discarded")
