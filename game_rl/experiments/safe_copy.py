"""An experiment's copy in storage: after each generation, all of its folder, beside the training.

While one generation is being sent, others that end wait; the newest one is next.
"""

import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from queue import SimpleQueue

from game_rl.config.experiments.experiment_files import Experiment
from game_rl.config.experiments.population import KeepGenerationsConfig
from game_rl.config.experiments.safe_copy import upload_problems
from game_rl.config.saved import Saved
from game_rl.config.upload import UploadConfig
from game_rl.errors import Interrupted, UsageError
from game_rl.experiments.account import (
    Account,
    ExperimentBegun,
    ExperimentEvent,
    GenerationEnded,
    Warned,
)
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.picture import forget_picture, held_bytes, picture_of, take_picture
from game_rl.run_dir import write_atomic
from game_rl.storage.own_process import started
from game_rl.storage.settings import PushSettings, RemoteKeeping

_STATE = "upload.json"
_LOOK_EVERY_S = 0.1
_GB = 10**9


class StoredState(Saved):
    """`upload.json` of the experiment's folder: what of it is safe where.

    Attributes:
        writer: drawn once for this copy of the folder.
        generation: the newest that can be fetched; None: none yet.
    """

    to: str
    writer: str
    generation: int | None = None


def write_state(folder: ExperimentDir, state: StoredState) -> None:
    write_atomic(folder.root / _STATE, state.model_dump_json(indent=2) + "\n")


def stored_state(folder: ExperimentDir) -> StoredState | None:
    """None: nothing was ever uploaded."""
    file = folder.root / _STATE
    return StoredState.model_validate_json(file.read_bytes()) if file.exists() else None


def own_state(folder: ExperimentDir, upload: UploadConfig) -> StoredState:
    """What this copy of the folder has at the address; another address begins anew."""
    state = stored_state(folder)
    if state is not None and state.to == upload.to:
        return state
    return StoredState(to=upload.to, writer=secrets.token_hex(8))


def uploaded_to(experiment: Experiment, to: UploadConfig | None) -> Experiment:
    """With another address, if there is one; the rest of the section stays.

    Raises:
        UsageError: its runs need what is elsewhere.
    """
    if to is None:
        return experiment
    upload = (experiment.config.upload or to).model_copy(update={"to": to.to})
    has_learner = experiment.learner is not None
    for problem in upload_problems(upload, experiment.run, has_learner=has_learner):
        raise UsageError(f"{'.'.join(problem.key)}: {problem.message}")
    config = experiment.config.model_copy(update={"upload": upload})
    return replace(experiment, config=config)  # type: ignore[arg-type]  # of its own kind


def push_settings(
    folder: ExperimentDir, experiment: Experiment, state: StoredState, *, generation: int
) -> PushSettings:
    """Of an experiment that is uploaded."""
    config, upload = experiment.config, experiment.config.upload
    assert upload is not None
    every = _keep_locally(experiment).every
    return PushSettings(
        to=upload.to,
        experiment=folder.identity().id,
        folder=picture_of(folder).absolute(),
        generation=generation,
        kind=config.kind,
        game=experiment.run.game,
        keep=RemoteKeeping(last=upload.keep_remote_last, every=every),
        writer=state.writer,
        limit_mb_s=upload.limit_mb_s,
        wait_s=upload.wait_s,
    )


def _keep_locally(experiment: Experiment) -> KeepGenerationsConfig:
    config = experiment.config
    return config.keep_rounds if config.kind == "mixture" else config.keep_generations


class SafeCopy:
    """Sends an experiment; a Listener of its account. Close it.

    Args:
        experiment: with an `upload`.
        warn: gets what the user should know, in this thread.
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
        self._folder, self._experiment, self._warn = folder, experiment, warn
        self._take_over = take_over
        self._state = own_state(folder, self._upload)
        self._process: subprocess.Popen[str] | None = None
        self._said: SimpleQueue[str] = SimpleQueue()
        self._is_wanted = self._is_over_backlog = False
        self._generation = self._sending = 0

    def on_event(self, event: ExperimentEvent) -> None:
        if isinstance(event, Warned):
            return  # it may be ours
        is_free = self._has_ended()
        if isinstance(event, ExperimentBegun | GenerationEnded) and event.generation:
            self._generation, self._is_wanted = event.generation, True
            if is_free or self._is_given_up():
                self._begin(is_last=False)

    def close(self, wait_s: float) -> None:
        """Send what there is now, for at most so long; KeyboardInterrupt ends that."""
        deadline_s = time.monotonic() + wait_s
        is_safe = False
        with suppress(KeyboardInterrupt):
            if self._waits(deadline_s):
                self._begin(is_last=True)
                is_safe = self._waits(deadline_s) and not self._is_wanted
        self._end()
        forget_picture(self._folder)
        if not is_safe:
            self._warn(
                f"what the {self._experiment.config.kind} is now is not at {self._upload.to} yet; "
                f"`game-rl remote push {self._folder.root}` sends it"
            )

    def _waits(self, deadline_s: float) -> bool:
        """Until nothing is being sent; False if that takes too long."""
        while not self._has_ended():
            if time.monotonic() > deadline_s:
                return False
            time.sleep(_LOOK_EVERY_S)
        return True

    def _has_ended(self) -> bool:
        """Of the process, if there is one; what it has sent is safe then."""
        while not self._said.empty():
            self._warn(self._said.get())
        code = None if self._process is None else self._process.poll()
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
        """Whether what is being sent would hold too much here, and so is not sent any more."""
        if held_bytes(self._folder) <= self._upload.backlog_gb * _GB:
            return False
        if not self._is_over_backlog:
            self._is_over_backlog = True
            self._warn(
                f"the upload to {self._upload.to} does not keep up: files of generation "
                f"{self._sending} would take more than upload.backlog_gb here, so they are deleted "
                "unsent, and a newer one follows; train longer between generations, or raise "
                "upload.backlog_gb"
            )
        self._end()
        return True

    def _end(self) -> None:
        """Of the process, which may have more to send."""
        if self._process is None:
            return
        self._process.kill()  # whatever it was doing, the next one does it again
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        self._process.wait()
        self._process = None

    def _begin(self, *, is_last: bool) -> None:
        self._sending, self._is_wanted = self._generation, False
        settings = push_settings(
            self._folder, self._experiment, self._state, generation=self._generation
        ).model_copy(update={"take_over": self._take_over, "is_last": is_last})
        take_picture(self._folder, self._upload.what)
        write_state(self._folder, self._state)
        self._process = started("game_rl.storage.experiment_process")
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(settings.model_dump_json() + "\n")
            self._process.stdin.flush()  # it stays open: its end says that nobody trains any more
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                self._said.put(line.strip())


@contextmanager
def uploading(
    folder: ExperimentDir, experiment: Experiment, account: Account, *, take_over: bool
) -> Iterator[None]:
    """Inside, generations are sent to where the config says; at the end, what there is then.

    Who stops the experiment waits no longer than its runs' deadline.
    """
    upload = experiment.config.upload
    if upload is None:
        yield
        return
    copy = SafeCopy(
        folder,
        experiment,
        take_over=take_over,
        warn=lambda text: account.emit(Warned(text=text)),
    )
    account.add_listener(copy.on_event)
    wait_s = upload.wait_s
    try:
        yield
    except (Interrupted, KeyboardInterrupt):
        wait_s = min(wait_s, experiment.run.checkpoints.deadline_s)
        raise
    finally:
        copy.close(wait_s)
