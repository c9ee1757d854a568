"""A job on a node that shares no files with the controller; its files pass through storage.

    CLAIM/000001.json      the run directory at a checkpoint of the attempt
    CLAIM/end.json         how the attempt ended; written once, by node or controller

The node writes the end when it delivers. The controller writes it when it gives the job up, before
it starts another attempt. So exactly one of two attempts counts, whatever the network does, and the
work of the other is discarded.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from game_rl.errors import StorageError
from game_rl.executors.executor import Job
from game_rl.run_dir import RunDir
from game_rl.saved import Saved
from game_rl.storage.blobs import bring_tree, read_tree, send_blobs
from game_rl.storage.faults import Patience
from game_rl.storage.manifest import FolderTree, as_json
from game_rl.storage.object_store import ObjectStore

_PATIENCE_S = 900.0  # for a task that has only to deliver its results
_SAVING_TIMEOUT_S = 30.0  # for one request while the job is training


class GivenUpError(StorageError):
    """Another attempt at the job counts, and this one is void."""


@dataclass(frozen=True)
class Errand:
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


class ErrandEnd(Saved):
    """How an attempt has ended."""

    format: Annotated[int, Field(ge=1, le=1)] = 1
    code: int | None
    """Exit code of the job's process, or None if the controller has given the attempt up."""
    tree: FolderTree
    """The files that it leaves."""


def end_name(claim: str) -> str:
    return f"{claim}/end.json"


def saved_name(claim: str, number: int) -> str:
    return f"{claim}/{number:06d}.json"


class Delivery:
    """The node's side: fetches the files for one attempt, and sends what it leaves.

    Raises (everywhere):
        GivenUpError: another attempt counts.
        StorageError: storage fails, even after retries.
    """

    def __init__(self, errand: Errand, folder: Path) -> None:
        self._errand = errand
        self._folder = folder
        self._saved = self._newest()
        self._count = 0
        self._stored: set[str] = set(errand.tree.blobs())

    def fetch(self) -> None:
        tree = self._errand.tree
        parts = sorted({file.path.split("/")[0] for file in tree.files})
        self._patiently(lambda store: bring_tree(store, tree, self._folder, parts))
        self._saved = self._newest()

    def save(self) -> None:
        """Send the run if it has a new checkpoint; a failure is retried at the next call."""
        newest = self._newest()
        if newest == self._saved or self._errand.run is None:
            return
        try:
            store = ObjectStore(self._errand.address, timeout_s=_SAVING_TIMEOUT_S)
            self._check(store)
            tree, sources = read_tree(self._folder, (self._errand.run,))
            send_blobs(store, sources, self._stored)
            if self._newest() != newest:
                return  # replaced meanwhile, so the tree may mix two checkpoints
            store.put(saved_name(self._errand.claim, self._count + 1), as_json(tree))
        except GivenUpError:
            raise
        except StorageError:
            return
        self._count += 1
        self._saved = newest

    def deliver(self, code: int) -> None:
        """Send what the job has left, then the end of the attempt."""
        tree, sources = read_tree(self._folder, self._errand.writes)
        end, name = as_json(ErrandEnd(code=code, tree=tree)), end_name(self._errand.claim)

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

    def _check(self, store: ObjectStore) -> None:
        if store.find(end_name(self._errand.claim)) is not None:
            raise _given_up()

    def _newest(self) -> tuple[str, bytes] | None:
        """Return the name and the manifest of the newest checkpoint here, or None."""
        if self._errand.run is None:
            return None
        for path in RunDir(self._folder / self._errand.run).checkpoints_newest_first():
            try:
                return path.name, (path / "manifest.json").read_bytes()
            except FileNotFoundError:
                continue
        return None

    def _patiently(self, do: Callable[[ObjectStore], None]) -> None:
        Patience(_PATIENCE_S).ask(lambda: do(ObjectStore(self._errand.address)))


def _given_up() -> GivenUpError:
    return GivenUpError("the controller has restarted this job, so this attempt is discarded")
