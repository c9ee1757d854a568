"""A population's copy in storage: after each generation, all of its folder, beside the training.

What is sent is a frozen picture of the folder, made in a moment: checkpoints are linked, what grows
is copied. While one generation is being sent, others that end wait; the newest one is next.
"""

import os
import secrets
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

from game_rl.config.safe_copy import PopulationUploadConfig
from game_rl.config.saved import Saved
from game_rl.experiments.account import (
    ExperimentBegun,
    ExperimentEvent,
    GenerationEnded,
    Warned,
)
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.run_dir import link_file, write_atomic
from game_rl.storage.own_process import started
from game_rl.storage.settings import PushSettings
from game_rl.system.parent_death import PARENT_VARIABLE

_STATE = "upload.json"
_NEVER_CHANGE = ("checkpoints", "offline", "lake")  # but for the end of a Lake's newest file
_LEFT_OUT = {"lock", "claim", "errands", "superseded", _STATE}
_LOOK_EVERY_S = 0.1


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


class SafeCopy:
    """Sends a population; a Listener of its account. Close it.

    Args:
        warn: gets what the user should know, in this thread.
    """

    def __init__(
        self,
        folder: ExperimentDir,
        upload: PopulationUploadConfig,
        *,
        take_over: bool,
        warn: Callable[[str], None],
    ) -> None:
        self._folder, self._upload, self._warn = folder, upload, warn
        self._take_over = take_over
        self._state = own_state(folder, upload)
        self._process: subprocess.Popen[str] | None = None
        self._said: SimpleQueue[str] = SimpleQueue()
        self._is_wanted = False
        self._generation = self._sending = 0

    def on_event(self, event: ExperimentEvent) -> None:
        if isinstance(event, Warned):
            return  # it may be ours
        is_free = self._has_ended()
        if isinstance(event, ExperimentBegun | GenerationEnded) and event.generation:
            self._generation, self._is_wanted = event.generation, True
            if is_free:
                self._begin(is_last=False)

    def close(self) -> None:
        """Send what there is now, for as long as the config says; KeyboardInterrupt ends that."""
        deadline_s = time.monotonic() + self._upload.wait_s
        is_safe = False
        with suppress(KeyboardInterrupt):
            if self._waits(deadline_s):
                self._begin(is_last=True)
                is_safe = self._waits(deadline_s) and not self._is_wanted
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(picture_of(self._folder), ignore_errors=True)
        if not is_safe:
            self._warn(
                f"what the population is now is not at {self._upload.to} yet; "
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
        self._process = None
        return True

    def _begin(self, *, is_last: bool) -> None:
        self._sending, self._is_wanted = self._generation, False
        settings = push_settings(
            self._folder, self._upload, self._state, generation=self._generation
        ).model_copy(update={"take_over": self._take_over, "is_last": is_last})
        take_picture(self._folder)
        write_state(self._folder, self._state)
        self._process = started(
            "game_rl.storage.experiment_process",
            environment=os.environ | {PARENT_VARIABLE: str(os.getpid())},
        )
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(settings.model_dump_json() + "\n")
            self._process.stdin.close()
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                self._said.put(line.strip())


def own_state(folder: ExperimentDir, upload: PopulationUploadConfig) -> StoredState:
    """What this copy of the folder has at the address; another address begins anew."""
    state = stored_state(folder)
    if state is not None and state.to == upload.to:
        return state
    return StoredState(to=upload.to, writer=secrets.token_hex(8))


def picture_of(folder: ExperimentDir) -> Path:
    return folder.root / ".upload"


def push_settings(
    folder: ExperimentDir, upload: PopulationUploadConfig, state: StoredState, *, generation: int
) -> PushSettings:
    return PushSettings(
        to=upload.to,
        experiment=folder.identity().id,
        folder=picture_of(folder).absolute(),
        generation=generation,
        writer=state.writer,
        limit_mb_s=upload.limit_mb_s,
    )


def take_picture(folder: ExperimentDir) -> None:
    """All of the folder that is not of this machine alone, in a folder that does not change."""
    picture = picture_of(folder)
    shutil.rmtree(picture, ignore_errors=True)
    for path in sorted(folder.root.rglob("*")):
        parts = path.relative_to(folder.root).parts
        if any(part.startswith(".") or part in _LEFT_OUT for part in parts) or not path.is_file():
            continue
        target = picture.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        if parts[0] == "generations" or any(part in _NEVER_CHANGE for part in parts[:-1]):
            link_file(path, target)
        else:
            shutil.copyfile(path, target)
