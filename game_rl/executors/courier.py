"""The controller's side of errands: sends the files that a job reads, and fetches what it leaves.

The controller's folder is authoritative and complete: after each attempt it has everything that the
attempt left, as if the job had run there. Storage holds only files in transit, and is emptied at
the end. A note in the folder records each attempt under way; after a kill, the next controller
fetches these attempts first.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from game_rl.config.loader import dump_config, load_config
from game_rl.errors import StorageError
from game_rl.executors.errand import Errand, ErrandEnd, end_name
from game_rl.executors.executor import Job
from game_rl.executors.notes import Note, errands_folder
from game_rl.run_dir import RunDir, standing_claim, write_atomic
from game_rl.storage.blobs import bring_tree, read_tree, send_blobs
from game_rl.storage.faults import Patience
from game_rl.storage.manifest import FolderTree, as_json, blob_name, parse_stored
from game_rl.storage.object_store import ObjectStore

_PATIENCE_S = 300.0

Answer = TypeVar("Answer")


class Courier:
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
        self._notes: dict[str, Note] = {}
        self._stored: set[str] = set()
        self._trees: dict[str, FolderTree] = {}
        errands_folder(root).mkdir(exist_ok=True)

    def begin(self, job: Job) -> Errand:
        """Send the files that the job reads and storage lacks, and note the attempt."""
        note = Note(
            claim=job.claim or uuid.uuid4().hex,
            run=None if job.claim is None else self._below(job.reads[0]),
            writes=tuple(self._below(path) for path in (*job.writes, job.output)),
        )
        parts = tuple(self._below(path) for path in (*job.reads, job.output))
        tree, sources = read_tree(self._root, parts)
        self._patiently(lambda store: send_blobs(store, sources, self._stored))
        write_atomic(self._note_file(note), note.model_dump_json(indent=2) + "\n")
        self._notes[job.name] = note
        self._remember(parts, tree)
        return Errand(self._address, note.claim, self._moved(job), tree, note.run)

    def end(self, job: Job) -> None:
        """Fetch what the attempt has left; give it up if it has not ended."""
        note = self._notes.pop(job.name)
        self._take_home(note)
        if not self._notes:
            self._patiently(self._sweep)

    def take_back(self) -> None:
        """Do as `end` does, for all attempts that a killed controller has noted."""
        for path in sorted(errands_folder(self._root).glob("*.json")):
            self._take_home(Note.model_validate_json(path.read_bytes()))

    def close(self) -> None:
        """Empty the folder in storage, unless an attempt is noted."""
        if any(errands_folder(self._root).iterdir()):
            return
        errands_folder(self._root).rmdir()
        with suppress(StorageError):
            ObjectStore(self._address).clear()

    # ------------------------------------------------------------------ one attempt

    def _take_home(self, note: Note) -> None:
        end = self._patiently(lambda store: _ended(store, note.claim))
        tree = (
            end.tree
            if end.code is not None
            else self._patiently(lambda store: _newest_saved(store, note.claim))
        )
        parts = tuple(part for part in note.writes if tree.part(part).files)
        if parts and self._counts(note):
            self._patiently(lambda store: bring_tree(store, tree, self._root, parts))
            for part in parts:
                self._settle(part)
            self._stored |= set(tree.blobs())
            self._remember(parts, tree)
        self._note_file(note).unlink(missing_ok=True)
        self._patiently(lambda store: _forget(store, note.claim, is_void=end.code is None))

    def _counts(self, note: Note) -> bool:
        """Whether the attempt counts: not if another executor has carried out the job meanwhile."""
        if note.run is not None:
            return standing_claim(RunDir(self._root / note.run)) == note.claim
        return not any((self._root / part).exists() for part in note.writes[:1])

    def _settle(self, part: str) -> None:
        """Write the run's place on this machine into its config."""
        run_dir = RunDir(self._root / part)
        if run_dir.exists():
            config = load_config(run_dir.config, is_saved=True)
            text = dump_config(config.model_copy(update={"run_dir": run_dir.root}))
            write_atomic(run_dir.config, text)

    # ------------------------------------------------------------------ storage

    def _remember(self, parts: tuple[str, ...], tree: FolderTree) -> None:
        for part in parts:
            if (self._root / part).is_dir():
                self._trees[part] = tree.part(part)

    def _sweep(self, store: ObjectStore) -> None:
        """Delete blobs that no run needs any more; only while no attempt is under way."""
        self._trees = {p: t for p, t in self._trees.items() if (self._root / p).is_dir()}
        used = {sha256 for tree in self._trees.values() for sha256 in tree.blobs()}
        for sha256 in self._stored - used:
            store.delete(blob_name(sha256))
        self._stored &= used

    def _patiently(self, do: Callable[[ObjectStore], Answer]) -> Answer:
        patience = Patience(
            _PATIENCE_S,
            tell=lambda fault: self._warn(f"{fault}. It is retried for up to five minutes"),
        )
        return patience.ask(lambda: do(ObjectStore(self._address)))

    # ------------------------------------------------------------------ paths

    def _note_file(self, note: Note) -> Path:
        return errands_folder(self._root) / f"{note.claim}.json"

    def _below(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    def _moved(self, job: Job) -> Job:
        """Return the job with paths relative to the folder that it will run in on the node."""

        def moved(paths: tuple[Path, ...]) -> Iterator[Path]:
            return (Path(self._below(path)) for path in paths)

        return replace(
            job,
            arguments=tuple(
                Path(self._below(word)) if isinstance(word, Path) else word
                for word in job.arguments
            ),
            output=Path(self._below(job.output)),
            claim=None,
            reads=tuple(moved(job.reads)),
            writes=tuple(moved(job.writes)),
        )


def _ended(store: ObjectStore, claim: str) -> ErrandEnd:
    """Return how the attempt has ended; one that has not ended is given up, for good."""
    name, given_up = end_name(claim), ErrandEnd(code=None, tree=FolderTree(files=()))
    with suppress(FileExistsError):
        store.put(name, as_json(given_up), is_new=True)
    content = store.get(name)
    if content is None:
        return given_up
    return parse_stored(ErrandEnd, content, f"{store.address}/{name}")


def _newest_saved(store: ObjectStore, claim: str) -> FolderTree:
    """Return the tree that the attempt sent with its newest checkpoint, or an empty one."""
    saved = sorted(s.name for s in store.list(claim) if s.name != end_name(claim))
    content = store.get(saved[-1]) if saved else None
    return FolderTree(files=()) if content is None else parse_stored(FolderTree, content, saved[-1])


def _forget(store: ObjectStore, claim: str, *, is_void: bool) -> None:
    """Delete what the attempt stored; the end of a void one stays, since its node looks for it."""
    for stored in list(store.list(claim)):
        if not (is_void and stored.name == end_name(claim)):
            store.delete(stored.name)
