"""The training's side of an upload: starting, telling and ending the process that uploads.

This module never imports obstore, and waits for storage only in `finish`. Whatever the other
process does, the training continues.

That process is a fresh interpreter, since obstore hangs in forked children.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from shlex import quote

from game_rl.events import CheckpointSaved, Event, Uploaded, UploadProgress, UploadQueued, Warned
from game_rl.events.event_log import EventLog, parse_event
from game_rl.files.durable_files import folder_bytes
from game_rl.files.run_dir import RunDir
from game_rl.storage.journal import UploadState, read_upload_state
from game_rl.storage.upload_settings import UploadSettings
from game_rl.system.line_process import LineProcess

_GB = 10**9
_LOOK_EVERY_S = 0.1
UPLOAD_PROCESS = "game_rl.storage.upload_process"


class BackgroundUpload:
    """Sends a run's checkpoints while it trains; close it at the end.

    Args:
        settings: the run and where it goes.
        events: log that receives the uploader's events.
    """

    def __init__(self, settings: UploadSettings, events: EventLog) -> None:
        self._settings = settings
        self._events = events
        self._progress = UploadProgress(waiting_checkpoints=0, waiting_bytes=0)
        self._is_over_backlog = False
        self._process = self._started()

    @property
    def waiting_bytes(self) -> int:
        """Bytes that still have to be sent."""
        return self._progress.waiting_bytes

    def nothing_stored(self) -> str:
        """Say that no checkpoint of this run has ever arrived; empty if one has, or none should."""
        root = self._settings.run_dir
        upload = self._settings.upload
        state = UploadState()
        with suppress(OSError):  # the disk fails, which the upload has said
            state = read_upload_state(RunDir(root).upload_journal)
        has_some = state.to == upload.to and state.committed
        if has_some or "checkpoints" not in upload.what:
            return ""
        return (
            f"the training has ended well, but nothing of this run is at {upload.to}; "
            f"`game-rl remote push {root}` uploads it"
        )

    def on_event(self, event: Event) -> None:
        """Have the uploader look at each new checkpoint; a Listener of the training's events."""
        if isinstance(event, CheckpointSaved):
            self._revive()
            self._process.tell("look")

    def held(self) -> set[int]:
        """Return the timesteps of checkpoints that are being sent and must not be deleted.

        The set is empty if they take more than `upload.backlog_gb`, and their upload is given up.
        A checkpoint whose upload begins just after this call may be deleted; the uploader drops
        it.
        """
        sending = set(self._progress.sending) if self._process.code is None else set()
        limit = self._settings.upload.backlog_gb * _GB
        if sending and self._held_bytes(sending) > limit:
            if not self._is_over_backlog:
                self._is_over_backlog = True
                self._events.warn(
                    f"the upload to {self._settings.upload.to} does not keep up: old checkpoints "
                    "would take more than upload.backlog_gb here, so they are deleted unsent, and "
                    "newer ones are uploaded instead; save less often, or raise upload.backlog_gb"
                )
            return set()
        return sending

    def finish(self, wait_s: float, *, is_given_up: Callable[[], bool] = lambda: False) -> None:
        """Wait at most `wait_s` for the remaining uploads, then end the process.

        Args:
            is_given_up: whether to stop waiting; a KeyboardInterrupt also stops it.
        """
        deadline_s = time.monotonic() + wait_s
        self._revive()
        self._process.tell(f"finish {wait_s}")
        try:
            while self._process.code is None and time.monotonic() < deadline_s:
                if is_given_up():
                    break
                self._events.emit(self._progress.model_copy(update={"is_ending": True}))
                time.sleep(_LOOK_EVERY_S)
        except KeyboardInterrupt:
            pass
        self.close()
        count = self._progress.waiting_checkpoints
        to = self._settings.upload.to
        if count:
            checkpoints = f"{count} checkpoint{'s' if count > 1 else ''}"
            text = f"{checkpoints} of this run could not be uploaded to {to} yet"
        elif self._process.code != 0:
            text = f"the upload could not report whether all checkpoints of this run are at {to}"
        else:
            return
        push = f"game-rl remote push {quote(str(self._settings.run_dir))}"
        self._events.warn(f"{text}; `{push}` sends what is left")

    def close(self) -> None:
        """End the process, even if it has more to send; may be called twice."""
        self._process.end()  # its journal is whole at any moment

    def _started(self) -> LineProcess:
        settings = self._settings.model_dump_json()
        return LineProcess(
            UPLOAD_PROCESS, "run", settings, lambda line: self._hear(parse_event(line))
        )

    def _revive(self) -> None:
        """Replace a process that was killed, for example by the kernel's out-of-memory killer."""
        if (self._process.code or 0) < 0:
            self._events.warn("the upload's process was killed; a new one continues")
            self.close()
            newest = RunDir(self._settings.run_dir).checkpoints_newest_first()
            if newest:  # checkpoints that are stored up to here are from this training
                begins_at = int(newest[0].name)
                self._settings = self._settings.model_copy(update={"begins_at": begins_at})
            self._process = self._started()

    def _hear(self, event: Event | None) -> None:
        match event:
            case UploadProgress():
                self._progress = event
            case UploadQueued() | Uploaded() | Warned():
                now = {"timesteps": self._events.timesteps}
                with suppress(OSError):  # a full disk ends the training elsewhere
                    self._events.emit(event.model_copy(update=now))

    def _held_bytes(self, sending: set[int]) -> int:
        """Return an upper bound of the bytes that deleting them would free here."""
        run_dir = RunDir(self._settings.run_dir)
        lake = self._settings.lake
        folders = sum(folder_bytes(run_dir.checkpoint(t)) for t in sending)
        shelved = 0
        if lake is not None:
            for path in list(lake.glob("*.shelved")):
                with suppress(OSError):
                    shelved += path.stat().st_size
        return folders + shelved
