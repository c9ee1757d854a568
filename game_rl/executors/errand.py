"""A job on a node that shares no files with the controller: what it needs comes from storage, and
what it leaves goes there.

    CLAIM/000001.json      what there was at a checkpoint, meanwhile
    CLAIM/end.json         how it has ended; written once, by whoever comes first

The node writes the end when it delivers. The controller writes it when it gives the job up, before
it starts another attempt: so one of two attempts counts, whatever the network does, and the other
one's work is thrown away.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from game_rl.config.saved import Saved
from game_rl.errors import StorageError
from game_rl.executors.executor import Job
from game_rl.run_dir import RunDir
from game_rl.storage.contents import as_json
from game_rl.storage.folder_tree import FolderTree, bring_tree, read_tree, send_blobs
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.patience import patiently

_PATIENCE_S = 900.0  # of a task that has something to deliver, and nothing else to do
_SAVING_PATIENCE_S = 30.0  # of one request while the job trains beside it


class GivenUpError(StorageError):
    """Another attempt at the job counts."""


@dataclass(frozen=True)
class Errand:
    """What a node gets beside the job, whose paths are below the folder that it runs in.

    Attributes:
        address: of the experiment's folder in storage.
        claim: no other attempt's.
        tree: the files that the job reads.
        run: the run directory that it trains; None: it trains none.
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
    """Of the job's process; None: the controller has given it up."""
    tree: FolderTree
    """What it leaves."""


def end_name(claim: str) -> str:
    return f"{claim}/end.json"


def saved_name(claim: str, number: int) -> str:
    return f"{claim}/{number:06d}.json"


class Delivery:
    """The node's side: brings the files for one attempt, and sends what it leaves.

    Raises (everywhere):
        GivenUpError: another attempt counts.
        StorageError: storage fails, however often it is asked.
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
        """Send what there is if there is a new checkpoint; what fails is tried at the next call."""
        newest = self._newest()
        if newest == self._saved or self._errand.run is None:
            return
        try:
            store = ObjectStore(self._errand.address, patience_s=_SAVING_PATIENCE_S)
            self._check(store)
            tree, sources = read_tree(self._folder, (self._errand.run,))
            send_blobs(store, sources, self._stored)
            if self._newest() != newest:
                return  # it was replaced meanwhile, so what was read may be of both
            store.put(saved_name(self._errand.claim, self._count + 1), as_json(tree))
        except GivenUpError:
            raise
        except StorageError:
            return
        self._count += 1
        self._saved = newest

    def deliver(self, code: int) -> None:
        """Send what the job has left, and that it has ended."""
        tree, sources = read_tree(self._folder, self._errand.writes)
        end, name = as_json(ErrandEnd(code=code, tree=tree)), end_name(self._errand.claim)

        def deliver(store: ObjectStore) -> None:
            found = store.get(name)
            if found is None:
                send_blobs(store, sources, self._stored)
                with suppress(FileExistsError):
                    store.put(name, end, is_new=True)
                found = store.get(name)
            if found != end:  # it is the same if only the answer was lost
                raise _given_up()

        self._patiently(deliver)

    def _check(self, store: ObjectStore) -> None:
        if store.find(end_name(self._errand.claim)) is not None:
            raise _given_up()

    def _newest(self) -> tuple[str, bytes] | None:
        """The newest checkpoint here: its name and its manifest."""
        if self._errand.run is None:
            return None
        for path in RunDir(self._folder / self._errand.run).checkpoints_newest_first():
            try:
                return path.name, (path / "manifest.json").read_bytes()
            except FileNotFoundError:
                continue
        return None

    def _patiently(self, do: Callable[[ObjectStore], None]) -> None:
        patiently(lambda: do(ObjectStore(self._errand.address)), _PATIENCE_S)


def _given_up() -> GivenUpError:
    return GivenUpError("the controller has started this job anew; what this attempt made is void")
