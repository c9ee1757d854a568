"""The uploader's own process, which `BackgroundUpload` starts and talks to line by line.

Its input has the settings as JSON, then `look` for each new checkpoint, and `finish SECONDS`. Its
output has one event a line, as JSON. When the input ends, the training has died; it then sends what
is left for at most `upload.wait_s`, which is how long a run waits at its end. It ignores signals
that are meant for the training, and takes the lowest priority.
"""

import os
import sys
import threading
import traceback
from contextlib import suppress
from shlex import quote

from game_rl.errors import GameRLError
from game_rl.events import Event, Warned
from game_rl.run_dir import RunDir, upload_lock
from game_rl.storage.journal import Journal
from game_rl.storage.upload_process import Bell, Uploading
from game_rl.storage.upload_settings import UploadSettings
from game_rl.storage.uploader import Uploader
from game_rl.system.processes import ignore_signals, yield_to_others

_LOCK_WAIT_S = 3600.0  # a predecessor leaves within upload.wait_s
_TIME_RAN_OUT = 3


def main() -> int:
    """Return 0, whatever storage does; a timer of `_listen` exits with 3 when the time is over."""
    ignore_signals("SIGINT", "SIGTERM", "SIGUSR1", "SIGHUP")
    yield_to_others()
    settings = UploadSettings.model_validate_json(sys.stdin.readline())
    bell = Bell()
    listening = threading.Thread(target=_listen, args=(bell, settings), daemon=True)
    listening.start()
    with upload_lock(settings.run_dir, wait_s=_LOCK_WAIT_S) as is_alone:
        if is_alone:
            _upload(settings, bell)
    return 0


def _upload(settings: UploadSettings, bell: Bell) -> None:
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
    except Exception as error:  # noqa: BLE001 - its text might repeat a secret, so only its place
        place = traceback.extract_tb(error.__traceback__)[-1]
        name = type(error).__name__
        text = f"the upload failed with {name} in {os.path.basename(place.filename)}:{place.lineno}"  # noqa: PTH119 - text
        _emit(Warned(text=f"{text}; `{push}` sends what is left"))


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


def _emit(event: Event) -> None:
    with suppress(OSError, ValueError):  # the reader has ended
        sys.stdout.write(event.model_dump_json(exclude_none=True) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
