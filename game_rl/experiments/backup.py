"""The backup of an experiment in storage, from a snapshot of its folder.

While one generation is being uploaded, later ones wait; the newest of them is uploaded next.

Files of checkpoints and Lakes are linked, and files that grow are copied. A snapshot is taken while
no run trains.
"""

import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from shlex import quote

from game_rl.config.experiments.experiment import Experiment, upload_problems
from game_rl.config.output_config import UploadConfig
from game_rl.errors import ExperimentError, Interrupted, UsageError
from game_rl.events import ExperimentBegun, ExperimentEvent, ExperimentWarned, GenerationEnded
from game_rl.events.event_log import ExperimentEventLog
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.jobs.job_files import REQUEST_SUFFIX
from game_rl.files.durable_files import link_file, write_saved
from game_rl.files.saved import Saved, read_saved
from game_rl.storage.background import UPLOAD_PROCESS
from game_rl.storage.upload_settings import PushSettings, RemoteKeeping
from game_rl.system.child_process import LineProcess

_STATE = "upload.json"
_LOOK_EVERY_S = 0.1
_GB = 10**9


class BackupState(Saved):
    """The state of the upload: `upload.json` of the experiment's folder.

    Attributes:
        to: address that the experiment is uploaded to.
        writer: id of this copy of the folder, drawn once.
        generation: the newest generation that can be fetched, or None before the first one.
    """

    to: str
    writer: str
    generation: int | None = None


def write_state(folder: ExperimentDir, state: BackupState) -> None:
    write_saved(folder.root / _STATE, state)


def stored_state(folder: ExperimentDir) -> BackupState | None:
    """Read the state, or return None if nothing was ever uploaded."""
    return read_saved(
        BackupState,
        folder.root / _STATE,
        error=ExperimentError,
        way_out="delete it, and the upload starts over",
    )


def own_state(folder: ExperimentDir, upload: UploadConfig) -> BackupState:
    """Return the state of the upload to this address; a new one if the address has changed."""
    state = stored_state(folder)
    if state is not None and state.to == upload.to:
        return state
    return BackupState(to=upload.to, writer=secrets.token_hex(8))


def uploaded_to(experiment: Experiment, to: UploadConfig | None) -> Experiment:
    """Replace the address that an experiment is uploaded to, unless `to` is None.

    The rest of its section `upload` stays.

    Raises:
        UsageError: the upload would leave out files that the runs need.
    """
    if to is None:
        return experiment
    upload = (experiment.config.upload or to).model_copy(update={"to": to.to})
    has_learner = experiment.learner is not None
    for problem in upload_problems(upload, experiment.run, has_learner=has_learner):
        raise UsageError(f"{'.'.join(problem.key)}: {problem.message}")
    config = experiment.config.model_copy(update={"upload": upload})
    return replace(experiment, config=config)


def push_settings(
    folder: ExperimentDir, experiment: Experiment, state: BackupState, *, generation: int
) -> PushSettings:
    """Return the settings for the process that uploads one generation."""
    config = experiment.config
    upload = experiment.config.upload
    assert upload is not None
    return PushSettings(
        to=upload.to,
        experiment=folder.identity().id,
        folder=snapshot_folder(folder).absolute(),
        generation=generation,
        kind=config.kind,
        game=experiment.run.game,
        keep=RemoteKeeping(last=upload.keep_remote_last, every=config.keep_generations.every),
        writer=state.writer,
        limit_mb_s=upload.limit_mb_s,
        wait_s=upload.wait_s,
    )


class Backup:
    """Uploads an experiment as a Listener of its events; call `close` at the end.

    Args:
        experiment: one with a section `upload`.
        take_over: upload even if another machine uploads this experiment.
        warn: gets warnings for the user, in this thread.
    """

    def __init__(
        self,
        folder: ExperimentDir,
        experiment: Experiment,
        *,
        take_over: bool,
        warn: Callable[[str], None],
    ) -> None:
        assert experiment.config.upload is not None
        self._upload: UploadConfig = experiment.config.upload
        self._folder = folder
        self._experiment = experiment
        self._warn = warn
        self._take_over = take_over
        self._state = own_state(folder, self._upload)
        self._process: LineProcess | None = None
        self._said: SimpleQueue[str] = SimpleQueue()
        self._is_wanted = self._is_over_backlog = False
        self._generation = self._sending = 0

    def on_event(self, event: ExperimentEvent) -> None:
        if isinstance(event, ExperimentWarned):
            return  # it may come from `warn`
        is_free = self._has_ended()
        if isinstance(event, ExperimentBegun | GenerationEnded) and event.generation:
            self._generation = event.generation
            self._is_wanted = True
            if is_free or self._is_given_up():
                self._begin(is_last=False)

    def nothing_stored(self) -> str:
        """Say that no generation has ever arrived; empty if one has."""
        if self._state.generation is not None:
            return ""
        return (
            f"the {self._experiment.config.kind} has completed, but nothing of it is at "
            f"{self._upload.to}; `game-rl remote push {self._folder.root}` uploads it"
        )

    def close(self, wait_s: float) -> None:
        """Upload the current state, for at most `wait_s`; KeyboardInterrupt ends the wait."""
        deadline_s = time.monotonic() + wait_s
        is_safe = False
        with suppress(KeyboardInterrupt):
            if self._waits(deadline_s):
                self._begin(is_last=True)
                is_safe = self._waits(deadline_s) and not self._is_wanted
        self._end()
        remove_snapshot(self._folder)
        if not is_safe:
            push = f"game-rl remote push {quote(str(self._folder.root))}"
            self._warn(
                f"the current state of the {self._experiment.config.kind} is not at "
                f"{self._upload.to} yet; upload it with `{push}`"
            )

    def _waits(self, deadline_s: float) -> bool:
        """Wait until no upload is under way; return False if that takes too long."""
        while not self._has_ended():
            if time.monotonic() > deadline_s:
                return False
            time.sleep(_LOOK_EVERY_S)
        return True

    def _has_ended(self) -> bool:
        """Return whether no upload is under way; record the one that has ended, if any."""
        while not self._said.empty():
            self._warn(self._said.get())
        code = None if self._process is None else self._process.code
        if self._process is not None and code is None:
            return False
        if code == 0:
            self._state = self._state.model_copy(update={"generation": self._sending})
            write_state(self._folder, self._state)
        elif code is not None:
            self._is_wanted = True
        self._end()
        return True

    def _is_given_up(self) -> bool:
        """Give up the upload under way if its snapshot takes too much disk space here."""
        if snapshot_bytes(self._folder) <= self._upload.backlog_gb * _GB:
            return False
        if not self._is_over_backlog:
            self._is_over_backlog = True
            self._warn(
                f"the upload to {self._upload.to} does not keep up: files of generation "
                f"{self._sending} would take more than upload.backlog_gb here, so its upload is "
                "given up, and a newer generation is uploaded instead; train longer between "
                "generations, or raise upload.backlog_gb"
            )
        self._end()
        return True

    def _end(self) -> None:
        """End the process, even if it has more to upload."""
        if self._process is not None:
            self._process.end()  # the next process repeats what was not complete
        self._process = None

    def _begin(self, *, is_last: bool) -> None:
        self._sending = self._generation
        self._is_wanted = False
        settings = push_settings(
            self._folder, self._experiment, self._state, generation=self._generation
        ).model_copy(update={"take_over": self._take_over, "is_last": is_last})
        take_snapshot(self._folder, self._upload.what)
        write_state(self._folder, self._state)
        self._process = LineProcess(
            UPLOAD_PROCESS,
            "experiment",
            settings.model_dump_json(),
            lambda line: self._said.put(line.strip()),
        )


@contextmanager
def backing_up(
    folder: ExperimentDir, experiment: Experiment, events: ExperimentEventLog, *, take_over: bool
) -> Iterator[Backup | None]:
    """Upload generations inside the context, and the last state at its end, if the config says so.

    After an interruption, the end waits no longer than the deadline of the runs' checkpoints.
    """
    upload = experiment.config.upload
    if upload is None:
        yield None
        return
    copy = Backup(folder, experiment, take_over=take_over, warn=events.warn)
    events.add_listener(copy.on_event)
    wait_s = upload.wait_s
    try:
        yield copy
    except (Interrupted, KeyboardInterrupt):
        wait_s = min(wait_s, experiment.run.checkpoints.deadline_s)
        raise
    finally:
        copy.close(wait_s)


_NEVER_CHANGE = ("checkpoints", "offline", "lake", "teacher")
_LEFT_OUT = {"lock", "claim", "errands", "superseded", "upload.json", "upload.lock"}
_OPTIONAL = ("lake", "videos")


def snapshot_folder(folder: ExperimentDir) -> Path:
    return folder.root / ".upload"


def take_snapshot(folder: ExperimentDir, what: Collection[str]) -> None:
    """Snapshot the folder, without files that only concern this machine.

    Args:
        what: the value of `upload.what`; `lake` and `videos` are left out unless it names them.
    """
    snapshot = snapshot_folder(folder)
    left_out = _LEFT_OUT | {name for name in _OPTIONAL if name not in what}
    remove_snapshot(folder)
    for path in sorted(folder.root.rglob("*")):
        parts = path.relative_to(folder.root).parts
        is_left_out = any(part.startswith(".") or part in left_out for part in parts)
        if is_left_out or path.name.endswith(REQUEST_SUFFIX) or not path.is_file():
            continue
        target = snapshot.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        if parts[0] == "generations" or any(part in _NEVER_CHANGE for part in parts[:-1]):
            link_file(path, target)
        else:
            shutil.copyfile(path, target)


def remove_snapshot(folder: ExperimentDir) -> None:
    shutil.rmtree(snapshot_folder(folder), ignore_errors=True)


def snapshot_bytes(folder: ExperimentDir) -> int:
    """Return the disk space that the snapshot alone takes.

    These are its copies, and linked files that the experiment has deleted since.
    """
    total = 0
    for path in snapshot_folder(folder).rglob("*"):
        status = path.lstat()
        total += status.st_size if status.st_nlink == 1 and path.is_file() else 0
    return total
