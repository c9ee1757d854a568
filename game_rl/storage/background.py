"""The training's side of an upload: its settings, and the process that uploads.

This module never imports obstore, and waits for storage only in `finish`. Whatever the other
process does, the training continues.

That process is a fresh interpreter, since obstore hangs in forked children.
"""

import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shlex import quote

from pydantic import ValidationError

from game_rl.config.custom_part import part_files
from game_rl.config.loader import game_path, load_yaml_model
from game_rl.config.schema import RunConfig
from game_rl.errors import GameFileError, UsageError
from game_rl.events import CheckpointSaved, Event, Uploaded, UploadProgress, UploadQueued, Warned
from game_rl.events.event_log import EventLog, parse_event
from game_rl.files.durable_files import folder_bytes
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import GameDefinition
from game_rl.storage.faults import PASSING_FAULTS, StoreFault
from game_rl.storage.journal import UploadState, read_upload_state
from game_rl.storage.upload_settings import FirstAnswer, GameFiles, UploadSettings
from game_rl.system.child_process import LineProcess, started

UPLOAD_PROCESS = "game_rl.storage.upload_process"
_FOLDER = "game"  # in a fetched run
_PARTS = "parts"
_FIRST_ANSWER_WITHIN_S = 60.0
_ENDS_WITHIN_S = 1.0
_LOOK_EVERY_S = 0.1
_GB = 10**9


def upload_settings(
    config: RunConfig, run_dir: RunDir, *, begins_at: int, take_over: bool
) -> UploadSettings | None:
    """Return the settings of the run's uploader, or None if the config has no `upload`.

    The caller holds the run's lock, since this may draw the run's identity.
    """
    if config.upload is None:
        return None
    lake = config.lake
    game = game_files(config.game)
    parts: dict[str, Path] = {}  # modules that are files and not installed
    if config.custom_parts:
        found = part_files(config.custom_parts, Path.cwd())
        parts = {f"{_PARTS}/{name.as_posix()}": file for name, file in found.items()}
    return UploadSettings(
        run_dir=run_dir.root.absolute(),
        run=run_dir.identity().id,
        upload=config.upload,
        lake=None if lake is None else (lake.path or run_dir.lake).absolute(),
        game=game.model_copy(update={"paths": {**game.paths, **parts}}),
        begins_at=begins_at,
        take_over=take_over,
    )


def game_files(game: str) -> GameFiles:
    """Return a game.yaml and the files that it names, but never the ROM, which is not uploaded."""
    path = game_path(game, relative_to=Path())
    if path is None:
        return GameFiles()
    if path.is_dir():
        path /= "game.yaml"
    definition = load_yaml_model(path, GameDefinition, error=GameFileError)
    named: list[Path | None] = [path for _, path in definition.state_files()]
    named += [definition.symbols, definition.place_offsets]
    named += definition.offset_files_of_parts().values()
    if definition.reward is not None:
        named.append(Path(f"{definition.reward.partition(':')[0]}.py"))
    folder = path.parent
    # paths that stay within the game's folder, as they must to work on another machine
    inside = [f for f in named if f is not None and not f.is_absolute() and ".." not in f.parts]
    return GameFiles(
        game_file=f"{_FOLDER}/{path.name}",
        paths={f"{_FOLDER}/{path.name}": path.absolute()}
        | {
            f"{_FOLDER}/{file.as_posix()}": (folder / file).absolute()
            for file in inside
            if (folder / file).is_file()
        },
    )


def ask_once(
    address: str,
    *,
    key: str = "upload.to",
    way_out: str = "to train without uploading, add --set upload=null",
) -> list[str]:
    """Ask storage whether it can be used, and return a warning if it cannot be reached.

    Args:
        key: key of the config that names the address.
        way_out: another way than to mend the storage.

    Raises:
        UsageError: there is no such bucket or folder, or it refuses access.
    """
    process = started(UPLOAD_PROCESS, "first_request")
    try:
        output, _ = process.communicate(f"{address}\n", timeout=_FIRST_ANSWER_WITHIN_S)
        answer = FirstAnswer.model_validate_json(output)
    except (subprocess.TimeoutExpired, ValidationError):
        answer = FirstAnswer(fault="slow", text=str(StoreFault("slow", address)))
    finally:
        process.kill()
        with suppress(subprocess.TimeoutExpired):  # a disk that hangs may hold it for ever
            process.wait(_ENDS_WITHIN_S)
    if answer.fault is None:
        return []
    if answer.fault in PASSING_FAULTS:
        return [f"{answer.text}. The training starts anyway, and uploads as soon as it can"]
    raise UsageError(f"{key}: {answer.text}; {way_out}")


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
            f"the training has completed, but nothing of this run is at {upload.to}; `game-rl "
            f"remote push {root}` uploads it"
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
