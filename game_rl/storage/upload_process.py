"""Sends until nothing is left, in the foreground or in a process of its own.

The pauses between retries grow, and one warning is given for each outage. Nothing here ends a
training or makes it wait.

The process of its own is `BackgroundProcess`'s; it takes the lowest priority, and ignores signals
that are meant for the training. When its input ends, the training has died; it then continues for
at most `upload.wait_s`, which is how long a training waits at its end.
"""

import os
import random
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from shlex import quote

from game_rl.errors import GameRLError, StorageError, UsageError
from game_rl.events import Event, Warned
from game_rl.files.run_dir import RunDir, upload_lock
from game_rl.storage.faults import PASSING_FAULTS, Patience, SecondWriterError, StoreFault
from game_rl.storage.journal import Journal
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.upload_settings import FirstAnswer, PushSettings, UploadSettings
from game_rl.storage.uploader import Uploader, push_experiment
from game_rl.system.processes import ignore_signals, yield_to_others

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 300.0
_LONGEST_PAUSE_AT_THE_END_S = 5.0
_FIRST_PATIENCE_S = 60.0
_MOST_PATIENCE_S = 960.0
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
        looks_first: whether to look first if storage still has what was uploaded, for the journal
            only knows what was there.
    """

    def __init__(
        self,
        uploader: Uploader,
        settings: UploadSettings,
        emit: Callable[[Event], None],
        *,
        advice: str = RETRIED,
        most_failures: int | None = None,
        looks_first: bool = False,
    ) -> None:
        self._advice = advice
        self._is_to_look = looks_first
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
        if self._is_to_look:
            self._uploader.find_lost(self._open_store())
            self._is_to_look = False
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
    """Upload everything that the run has and storage has not, and return when it is stored.

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
            uploading = Uploading(
                uploader,
                settings,
                emit,
                advice=advice,
                most_failures=most_failures,
                looks_first=True,
            )
            uploading.run(bell)


# ---------------------------------------------------------------------- a process of its own

_PREDECESSOR_LEAVES_WITHIN_S = 3600.0  # it does within upload.wait_s
_PATIENCE_S = 7 * 86_400.0
_TIME_RAN_OUT = 3
_FIRST_TIMEOUT_S = 10.0


def main(what: str) -> int:
    """Upload a run or a generation of an experiment, whose settings are in the input, as JSON.

    Or make a `first_request`: ask the address in the input once, and print the `FirstAnswer`.

    Of a run, the input then has `look` for each new checkpoint, and `finish SECONDS`; the output
    has one event a line, as JSON; and the exit code is 0 whatever storage does, or 3 if the time
    was over. Of an experiment, the output has one message to the user a line, and the exit code is
    0 if the whole generation is stored.
    """
    if what == "first_request":
        _say(_first_answer(sys.stdin.readline().strip()).model_dump_json())
        return 0
    signals = ("SIGINT", "SIGTERM", *(("SIGUSR1", "SIGHUP") if what == "run" else ()))
    ignore_signals(*signals)
    yield_to_others()
    settings = sys.stdin.readline()
    if what == "run":
        return _upload_run(UploadSettings.model_validate_json(settings))
    return _upload_generation(PushSettings.model_validate_json(settings))


def _first_answer(address: str) -> FirstAnswer:
    try:
        ObjectStore(address, timeout_s=_FIRST_TIMEOUT_S).folders("runs")  # one page of a listing
    except StoreFault as fault:
        return FirstAnswer(fault=fault.kind, text=str(fault))
    except StorageError as error:  # no address that can be used
        return FirstAnswer(fault="refused", text=str(error))
    return FirstAnswer()


def _upload_run(settings: UploadSettings) -> int:
    bell = Bell()
    threading.Thread(target=_listen, args=(bell, settings), daemon=True).start()
    with upload_lock(settings.run_dir, wait_s=_PREDECESSOR_LEAVES_WITHIN_S) as is_alone:
        if is_alone:
            _send(settings, bell)
    return 0


def _send(settings: UploadSettings, bell: Bell) -> None:
    push = f"game-rl remote push {quote(str(settings.run_dir))}"
    try:
        with Journal(RunDir(settings.run_dir).upload_journal) as journal:
            uploader = Uploader(settings, journal, _emit)
            advice = (
                "The training continues, and the upload is retried; "
                f"`{push}` sends what is left at the end"
            )
            Uploading(uploader, settings, _emit, advice=advice).run(bell)
    except GameRLError as error:
        _emit(Warned(text=f"{error}. The upload stops, and the training continues"))
    except OSError as error:
        _emit(Warned(text=f"the upload stops: {error.filename or 'a disk'}: {error.strerror}"))
    except Exception as error:  # noqa: BLE001 - its text might repeat a secret
        _emit(Warned(text=f"{_failure(error)}; `{push}` sends what is left"))


def _listen(bell: Bell, settings: UploadSettings) -> None:
    """Ring the bell for each line, until the training sets a deadline or dies; exit after it."""
    seconds = settings.upload.wait_s
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "finish":
            seconds = float(rest)
            break
        bell.ring()
    bell.ring(is_ending=True)
    threading.Timer(seconds, os._exit, [_TIME_RAN_OUT]).start()  # the journal is always whole


def _upload_generation(settings: PushSettings) -> int:
    threading.Thread(target=_end_in_time, args=(settings.wait_s,), daemon=True).start()
    try:
        root = settings.folder.parent
        with upload_lock(root, wait_s=_PREDECESSOR_LEAVES_WITHIN_S) as is_alone:
            if is_alone:
                waits = "The experiment continues, and the upload is retried"
                patience = Patience(_PATIENCE_S, tell=lambda fault: _say(f"{fault}. {waits}"))
                patience.ask(lambda: push_experiment(settings))
            return 0 if is_alone else 1
    except GameRLError as error:
        _say(f"{error}. The experiment continues, but this generation is not uploaded")
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - its text might repeat a secret
        _say(f"{_failure(error)}; the experiment continues")
        return 1


def _end_in_time(wait_s: float) -> None:
    """Wait until the input ends, because nothing trains any more, and exit `wait_s` later."""
    with suppress(OSError):
        while os.read(0, 1 << 10):  # sys.stdin has a lock, which a thread must not hold at exit
            pass
    threading.Timer(wait_s, os._exit, [1]).start()


def _failure(error: Exception) -> str:
    """Say where the upload failed, without the error's text, which might repeat a secret."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = os.path.basename(place.filename)  # noqa: PTH119 - text
    return f"the upload failed with {type(error).__name__} in {where}:{place.lineno}"


def _emit(event: Event) -> None:
    _say(event.model_dump_json(exclude_none=True))


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # the reader has ended
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
