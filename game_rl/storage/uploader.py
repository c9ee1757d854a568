"""Sends a run's checkpoints to storage, the newest first, and journals each step before the next.

    seen → each blob uploaded → verified → manifest committed

Apart from its journal, it only reads the run directory. After a kill at any step it continues from
the journal; every step is idempotent.
"""

import hashlib
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from game_rl.events import Event, Uploaded, UploadProgress, UploadQueued, Warned
from game_rl.files.durable_files import folder_bytes
from game_rl.files.run_dir import RunDir
from game_rl.storage.blobs import BlobSource, RateLimit, find_blob, read_tree, send_blob, send_blobs
from game_rl.storage.claim import Claim
from game_rl.storage.faults import (
    NO_PATIENCE,
    LostFileError,
    Patience,
    SecondWriterError,
    StoreFault,
)
from game_rl.storage.inventory import stored_checkpoints, stored_generations
from game_rl.storage.journal import (
    BlobUploaded,
    BlobVerified,
    Committed,
    Dropped,
    Journal,
    Opened,
    Seen,
    UploadState,
    VideosStored,
)
from game_rl.storage.manifest import (
    GenerationManifest,
    RunManifest,
    StoredFile,
    StoredVideos,
    as_json,
    blobs_of,
    parse_stored,
    run_folder,
)
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.retention import delete_old, keep_newest, needs_renewal
from game_rl.storage.run_contents import checkpoint_contents, video_contents
from game_rl.storage.upload_settings import PushSettings, UploadSettings

_PROGRESS_EVERY_BYTES = 4 << 20
_MOST_TRIES = 3


@dataclass
class _Sending:
    """The checkpoint that is being sent, and the blobs that are known to be stored."""

    checkpoints: tuple[int, ...] = ()
    sent_bytes: int = 0
    left_bytes: int = 0
    n_blobs: int = 0
    confirmed: set[str] = field(default_factory=set)
    """sha256 of blobs that this process knows to be in storage."""


class Uploader:
    """Brings storage up to date, one checkpoint at a time.

    Args:
        emit: receives the events.

    Raises (everywhere):
        StoreFault: storage fails. The call may be repeated later.
        SecondWriterError: another machine or copy writes to the run in storage.
        OSError: the journal cannot be written.
    """

    def __init__(
        self, settings: UploadSettings, journal: Journal, emit: Callable[[Event], None]
    ) -> None:
        self._settings = settings
        self._run_dir = RunDir(settings.run_dir)
        self._journal = journal
        self._emit = emit
        self._limit = RateLimit(settings.upload.limit_mb_s)
        self._sending = _Sending()
        self._lost: Counter[int] = Counter()
        """Number of attempts that ended with a lost file, by timesteps, in this process."""
        self._is_open = False
        self._clock = datetime.now(UTC), time.monotonic()
        writer = journal.state.writer or secrets.token_hex(8)
        journal.write(Opened(to=settings.upload.to, writer=writer))
        self._claim = Claim(settings.run, writer, take_over=settings.take_over)

    @property
    def n_steps(self) -> int:
        """Number of blobs that storage has confirmed so far."""
        return self._sending.n_blobs

    @property
    def state(self) -> UploadState:
        return self._journal.state

    def scan(self) -> list[int]:
        """Return the waiting checkpoints, newest first; announce new ones and drop deleted ones.

        A checkpoint that an earlier process dropped counts as new if it still exists.
        """
        if "checkpoints" not in self._settings.upload.what:
            return []
        state = self.state
        here = {}
        for path in self._run_dir.checkpoints_newest_first():
            here[int(path.name)] = path
        for timesteps in [t for t in state.waiting if t not in here]:
            self._journal.write(Dropped(timesteps=timesteps, reason="a newer one replaced it"))
        for timesteps, path in sorted(here.items()):
            written_ns = path.stat().st_mtime_ns if path.exists() else 0
            is_new = state.seen.get(timesteps) != written_ns
            is_new = is_new or (timesteps in state.dropped and not self._lost[timesteps])
            if is_new and written_ns:
                self._queue(timesteps, written_ns)
        return sorted(state.waiting, reverse=True)

    def _queue(self, timesteps: int, written_ns: int) -> None:
        path = self._run_dir.checkpoint(timesteps)
        n_bytes = folder_bytes(path)
        self._journal.write(Seen(timesteps=timesteps, n_bytes=n_bytes, written_ns=written_ns))
        self._emit(
            UploadQueued(
                timesteps=timesteps,
                checkpoint=path.name,
                n_bytes=n_bytes,
                to=self._settings.address,
            )
        )

    def find_lost(self, store: ObjectStore) -> None:
        """Have what the journal calls stored wait again where storage does not have all of it.

        Checkpoints that `keep_remote_last` deletes there are not missed.
        """
        state = self.state
        here = [int(path.name) for path in self._run_dir.checkpoints_newest_first()]
        kept = here[: self._settings.upload.keep_remote_last]
        uploaded = sorted(timesteps for timesteps in kept if timesteps in state.committed)
        if not uploaded and not state.videos:
            return
        self._open(store)
        sizes = {stored.name.rpartition("/")[2]: stored.n_bytes for stored in store.list("blobs")}

        def is_stored(files: Iterable[StoredFile]) -> bool:
            return all(sizes.get(sha256) == n for sha256, n in blobs_of(files).items())

        self._sending.confirmed &= sizes.keys()
        series = stored_checkpoints(store, self._settings.run)
        found = series.found()
        lost = [t for t in uploaded if t not in found or not is_stored(series.read(t).files)]
        for timesteps in lost:
            self._queue(timesteps, state.seen[timesteps])
        if lost:
            names = ", ".join(f"{timesteps:,}" for timesteps in lost)
            which = "checkpoint" if len(lost) == 1 else "checkpoints"
            text = f"{self._settings.address} no longer has all of {which} {names}"
            self._emit(Warned(text=f"{text}; what is missing is sent again"))
        if state.videos:
            content = store.get(self._videos_name)
            stored = content and parse_stored(StoredVideos, content, self._videos_name)
            if not stored or not is_stored(stored.files):
                self._journal.write(VideosStored(sha256=""))

    def send_checkpoint(self, store: ObjectStore, timesteps: int) -> None:
        """Send every blob of a checkpoint, then its manifest; drop it if it is gone or damaged.

        Files that belong to it may change while they are read: a better checkpoint replaces the
        best, or a resumed training cuts its curves. The checkpoint then stays in the queue and is
        read again; after three such attempts it is dropped.
        """
        started_s = time.monotonic()
        self._begin(timesteps)
        try:
            self._open(store)
            manifest, contents = checkpoint_contents(self._settings, timesteps, self.state.segments)
            self._sending.checkpoints = tuple(  # the manifest names the best, too
                t for t in (timesteps, manifest.best_timesteps) if t is not None
            )
            self._send_blobs(store, contents.sources)
            self._commit(store, manifest)
        except LostFileError as error:
            self._lost[timesteps] += 1
            is_here = self._run_dir.checkpoint(timesteps).is_dir()
            if is_here and self._lost[timesteps] < _MOST_TRIES:
                return
            self._journal.write(Dropped(timesteps=timesteps, reason=str(error)))
            if error.is_damaged:
                self._emit(Warned(text=f"checkpoint {timesteps:,} is not uploaded: {error}"))
            return
        finally:
            self._sending.checkpoints = ()
            self.tell_progress()
        self._emit(
            Uploaded(
                timesteps=timesteps,
                checkpoint=self._run_dir.checkpoint(timesteps).name,
                sent_bytes=self._sending.sent_bytes,
                seconds=round(time.monotonic() - started_s, 3),
                to=self._settings.address,
            )
        )
        if self._settings.upload.keep_remote_last is not None:
            keep_newest(store, self._settings.run, self._settings.upload.keep_remote_last)

    def send_videos(self, store: ObjectStore) -> None:
        """Send the current clips, if they are wanted and have changed since they were sent last."""
        if "videos" not in self._settings.upload.what:
            return
        try:
            contents = video_contents(self._run_dir)
            listed = as_json(StoredVideos(files=tuple(contents.files)))
            sha256 = hashlib.sha256(listed).hexdigest()
            if not contents.files or self.state.videos == sha256:
                return
            self._open(store)
            self._send_blobs(store, contents.sources)
        except (LostFileError, FileNotFoundError):
            return  # a file is being rewritten
        store.put(self._videos_name, listed)
        self._journal.write(VideosStored(sha256=sha256))

    @property
    def _videos_name(self) -> str:
        return f"{run_folder(self._settings.run)}/videos.json"

    def release(self, store: ObjectStore) -> None:
        """Release the claim, since nothing is left to send and the training is over."""
        if self._is_open:
            self._claim.release(store)

    def tell_progress(self, *, is_trying: bool = True) -> None:
        waiting = self.state.waiting
        current = self._sending.checkpoints[:1]
        others = sum(n_bytes for t, n_bytes in waiting.items() if t not in current)
        left = self._sending.left_bytes if current else 0
        self._emit(
            UploadProgress(
                sending=self._sending.checkpoints,
                waiting_checkpoints=len(waiting),
                waiting_bytes=others + left,
                is_trying=is_trying,
            )
        )

    # ------------------------------------------------------------------ one checkpoint

    def _begin(self, timesteps: int) -> None:
        self._sending.checkpoints = (timesteps,)
        self._sending.sent_bytes = 0
        self._sending.left_bytes = self.state.waiting.get(timesteps, 0)
        self.tell_progress()

    def _open(self, store: ObjectStore) -> None:
        """Take the claim and set superseded checkpoints aside; later calls only check the claim."""
        if self._is_open:
            self._claim.check(store)
            return
        self._claim.take(store)
        series = stored_checkpoints(store, self._settings.run)
        found = list(series.found())
        begins_at = self._settings.begins_at
        later = [t for t in found if t > begins_at and not self._is_ours(t)]
        series.set_aside(later, self._claim.epoch)
        kept = [series.name(timesteps) for timesteps in found if timesteps not in later]
        content = store.get(kept[-1]) if kept else None
        if content is not None:
            stored = parse_stored(RunManifest, content, kept[-1])
            self._sending.confirmed = set(blobs_of(stored.files))
        self._clock = self._claim.written(store), time.monotonic()
        self._is_open = True

    def _is_ours(self, timesteps: int) -> bool:
        """Whether the checkpoint at these timesteps on this machine is the one that was stored."""
        path = self._run_dir.checkpoint(timesteps)
        seen = self.state.seen.get(timesteps)
        is_here = path.exists() and path.stat().st_mtime_ns == seen
        return is_here and timesteps in self.state.committed

    def _now(self) -> datetime:
        """Return the time by the storage's clock, since this machine's may be wrong."""
        read, at_s = self._clock
        return read + timedelta(seconds=time.monotonic() - at_s)

    def _send_blobs(self, store: ObjectStore, sources: dict[str, BlobSource]) -> None:
        missing = {s: at for s, at in sources.items() if s not in self._sending.confirmed}
        self._sending.left_bytes = sum(source.piece.n_bytes for source in missing.values())
        self.tell_progress()
        told = self._sending.left_bytes
        for source in missing.values():
            self._send_blob(store, source)
            self._sending.left_bytes -= source.piece.n_bytes
            if told - self._sending.left_bytes > _PROGRESS_EVERY_BYTES:
                told = self._sending.left_bytes
                self.tell_progress()

    def _send_blob(self, store: ObjectStore, source: BlobSource) -> None:
        """Send a blob unless it is stored, and check the length that storage reports."""
        piece = source.piece
        was_sent = send_blob(
            store, source, self._limit, renew=lambda found: needs_renewal(found, now=self._now())
        )
        self._sending.sent_bytes += piece.n_bytes * was_sent
        self._journal.write(
            BlobUploaded(
                sha256=piece.sha256,
                n_bytes=piece.n_bytes,
                was_there=not was_sent,
                segment=source.segment,
            )
        )
        if was_sent and find_blob(store, piece) is None:
            raise StoreFault("busy", self._settings.upload.to)  # it will be sent again
        self._journal.write(BlobVerified(sha256=piece.sha256))
        self._sending.confirmed.add(piece.sha256)
        self._sending.n_blobs += 1

    def _commit(self, store: ObjectStore, manifest: RunManifest) -> None:
        """Write the manifest, last, so that all that a visible manifest names can be fetched."""
        self._claim.check(store)
        name = stored_checkpoints(store, self._settings.run).name(manifest.timesteps)
        try:
            store.put(name, as_json(manifest), is_new=True)
        except FileExistsError:
            content = store.get(name)
            stored = None if content is None else parse_stored(RunManifest, content, name)
            if stored is None:
                raise StoreFault("busy", self._settings.upload.to) from None
            if not manifest.is_same_checkpoint(stored):
                raise SecondWriterError(
                    f"{self._settings.address} has another checkpoint of timestep "
                    f"{manifest.timesteps:,}: another copy of this run was uploaded there; "
                    "continue with only one of the two, with --take-over"
                ) from None
        self._journal.write(Committed(timesteps=manifest.timesteps))
        # the others may be swept, since no manifest names them
        self._sending.confirmed = set(blobs_of(manifest.files))


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
    parts = sorted(p.name for p in settings.folder.iterdir() if not p.name.startswith("."))
    tree, sources = read_tree(settings.folder, parts)
    there = {stored.name.rpartition("/")[2]: stored.n_bytes for stored in store.list("blobs")}
    known = {sha256 for sha256, n in blobs_of(tree.files).items() if there.get(sha256) == n}
    sent = send_blobs(store, sources, known, limit=RateLimit(settings.limit_mb_s))
    claim.check(store)
    manifest = GenerationManifest(
        files=tree.files,
        kind=settings.kind,
        game=settings.game,
        saved=datetime.now(UTC).replace(microsecond=0),
    )
    series = stored_generations(store)
    newest = settings.generation
    store.put(series.name(newest), as_json(manifest))
    series.set_aside([number for number in series.found() if number > newest], claim.epoch)
    delete_old(store, claim, settings.keep)
    if settings.is_last:
        claim.release(store)
    return sent
