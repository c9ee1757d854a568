"""The loop that sends until nothing is left, in a process of its own or in the foreground.

The pauses between retries grow, and one warning is given for each outage. Nothing here ends a
training or makes it wait.
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass

from game_rl.errors import StorageError, UsageError
from game_rl.events import Event, Warned
from game_rl.run_dir import RunDir, upload_lock
from game_rl.storage.faults import PASSING_FAULTS, SecondWriterError, StoreFault
from game_rl.storage.journal import Journal
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.upload_settings import UploadSettings
from game_rl.storage.uploader import Uploader

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 300.0
_LONGEST_PAUSE_AT_THE_END_S = 5.0
_FIRST_PATIENCE_S, _MOST_PATIENCE_S = 60.0, 960.0
_LOOK_EVERY_S = 30.0  # a notification may be lost with a process

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


_LOCK_WAIT_S = 5.0


def push(
    settings: UploadSettings,
    emit: Callable[[Event], None],
    *,
    advice: str = RETRIED,
    most_failures: int | None = None,
) -> None:
    """Upload everything that the run has, and return when it is stored.

    Args:
        advice, most_failures: see `Uploading`.

    Raises:
        UsageError: the run's training is uploading it.
        StorageError: storage fails, and `most_failures` does not allow another attempt, or another
            machine or copy writes to the run there.
    """
    with upload_lock(settings.run_dir, wait_s=_LOCK_WAIT_S) as is_alone:
        if not is_alone:
            raise UsageError(
                f"{settings.run_dir} is being uploaded by its own training; wait until that ends"
            )
        bell = Bell()
        bell.ring(is_ending=True)
        with Journal(RunDir(settings.run_dir).upload_journal) as journal:
            uploader = Uploader(settings, journal, emit)
            Uploading(uploader, settings, emit, advice=advice, most_failures=most_failures).run(
                bell
            )
