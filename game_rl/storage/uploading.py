"""The uploader's loop: it sends until nothing is left, and retries while storage fails.

The pauses between retries grow, and one warning is given for each outage. Nothing here ends a
training or makes it wait.
"""

import fcntl
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from game_rl.errors import StorageError
from game_rl.events import Event, Warned
from game_rl.storage.faults import PASSING_FAULTS, SecondWriterError, StoreFault
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.settings import UploadSettings
from game_rl.storage.uploader import Uploader

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 300.0
_LONGEST_PAUSE_AT_THE_END_S = 5.0
_FIRST_PATIENCE_S, _MOST_PATIENCE_S = 60.0, 960.0
_LOOK_EVERY_S = 30.0  # a notification may be lost with a process
_LOCK_EVERY_S = 0.5

RETRIED = "The upload is retried"


class Bell:
    """Wakes the uploader from another thread."""

    def __init__(self) -> None:
        self._rung = threading.Event()
        self.is_ending = False

    def ring(self, *, is_ending: bool = False) -> None:
        """Have the uploader look again; `is_ending` says that no more checkpoints will come."""
        self.is_ending = self.is_ending or is_ending
        self._rung.set()

    def wait(self, seconds: float) -> None:
        """Wait until the bell rings, or until the time is over."""
        self._rung.wait(seconds)
        self._rung.clear()


@dataclass
class _Outage:
    failures: int = 0
    """Number of failures in a row, without a step between them."""
    steps: int = 0
    """`Uploader.n_steps` at the last failure."""
    is_told: bool = False
    timeout_s: float = _FIRST_PATIENCE_S
    """Timeout of one request."""

    def pause_s(self, *, is_ending: bool) -> float:
        longest = _LONGEST_PAUSE_AT_THE_END_S if is_ending else _LONGEST_PAUSE_S
        grown = _FIRST_PAUSE_S * 2.0 ** min(self.failures - 1, 20)
        return min(longest, grown) * random.uniform(0.8, 1.2)


class Uploading:
    """Sends waiting checkpoints, retries after failures, and emits warnings.

    Args:
        advice: sentence at the end of a warning about storage.
        most_failures: number of failures in a row, without a blob between them, after which it
            gives up; it then gives up at once if storage would have to be changed first. None: it
            retries for ever, whatever the failure.
    """

    def __init__(
        self,
        uploader: Uploader,
        settings: UploadSettings,
        emit: Callable[[Event], None],
        *,
        advice: str = RETRIED,
        most_failures: int | None = None,
    ) -> None:
        self._advice = advice
        self._uploader = uploader
        self._settings = settings
        self._emit = emit
        self._most_failures = most_failures
        self._outage = _Outage()
        self._store: ObjectStore | None = None

    def run(self, bell: Bell) -> None:
        """Send until the bell says that no more checkpoints come, and all are sent.

        Raises:
            SecondWriterError: another copy of the run is being uploaded.
            StorageError: storage fails, and `most_failures` does not allow another attempt.
        """
        while True:
            is_ending = bell.is_ending  # before the scan: later news ring again
            try:
                is_done = self._step(is_ending=is_ending)
            except SecondWriterError:
                raise
            except StorageError as fault:
                self._fail(fault)
                self._uploader.tell_progress(is_trying=False)
                bell.wait(self._outage.pause_s(is_ending=bell.is_ending))
                continue
            if is_done and is_ending:
                return
            if is_done:
                bell.wait(_LOOK_EVERY_S)

    def _step(self, *, is_ending: bool) -> bool:
        """Send one checkpoint, if one waits; return whether none did."""
        waiting = self._uploader.scan()
        if waiting:
            self._uploader.send_checkpoint(self._open_store(), waiting[0])
            self._succeed()
            return False
        self._uploader.tell_progress()
        if is_ending:
            store = self._open_store()
            self._uploader.send_videos(store)
            self._uploader.release(store)
            self._succeed()
        return True

    def _open_store(self) -> ObjectStore:
        if self._store is None:
            self._store = ObjectStore(self._settings.upload.to, timeout_s=self._outage.timeout_s)
            if self._outage.timeout_s > _FIRST_PATIENCE_S:
                self._store.one_part_at_a_time()
        return self._store

    def _fail(self, fault: StorageError) -> None:
        outage = self._outage
        steps = self._uploader.n_steps
        outage.failures = 1 if steps > outage.steps else outage.failures + 1
        outage.steps = steps
        self._store = None  # credentials may have been renewed
        if isinstance(fault, StoreFault) and fault.kind == "slow":
            outage.timeout_s = min(2 * outage.timeout_s, _MOST_PATIENCE_S)
        if self._most_failures is not None:
            may_pass = isinstance(fault, StoreFault) and fault.kind in PASSING_FAULTS
            if not may_pass or outage.failures >= self._most_failures:
                raise fault
        if not outage.is_told:
            outage.is_told = True
            self._emit(Warned(text=f"{fault}. {self._advice}"))

    def _succeed(self) -> None:
        if self._outage.is_told:
            self._emit(Warned(text=f"uploads to {self._settings.upload.to} work again"))
        self._outage = _Outage(steps=self._uploader.n_steps, timeout_s=self._outage.timeout_s)


@contextmanager
def alone(run_dir: Path, *, wait_s: float) -> Iterator[bool]:
    """Hold the lock of the run's uploader on this machine; yield False if it stays taken."""
    file = os.open(run_dir / "upload.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        deadline_s = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline_s:
                    yield False
                    return
                time.sleep(_LOCK_EVERY_S)
            else:
                yield True
                return
    finally:
        os.close(file)
