"""The process that sends one generation of an experiment; it reads its settings from its input.

It retries while storage fails, prints one line for each message to the user, and ends when all is
stored. When its input ends, the experiment's process has died; it then continues for at most
`wait_s`, which is how long an experiment waits at its end. It has the lowest priority, and ignores
signals, which are meant for the experiment.
"""

import os
import sys
import threading
import traceback
from contextlib import suppress

from game_rl.errors import GameRLError
from game_rl.run_dir import upload_lock
from game_rl.storage.faults import Patience, StoreFault
from game_rl.storage.upload_settings import PushSettings
from game_rl.storage.uploader import push_experiment
from game_rl.system.processes import ignore_signals, yield_to_others

_PATIENCE_S = 7 * 86_400.0
_LOCK_WAIT_S = 3600.0  # a predecessor leaves within upload.wait_s


def main() -> int:
    """Return 0 if the whole generation is stored."""
    ignore_signals("SIGINT", "SIGTERM")
    yield_to_others()
    settings = PushSettings.model_validate_json(sys.stdin.readline())
    threading.Thread(target=_end_in_time, args=(settings.wait_s,), daemon=True).start()
    try:
        with upload_lock(settings.folder.parent, wait_s=_LOCK_WAIT_S) as is_alone:
            if is_alone:
                patience = Patience(_PATIENCE_S, tell=_say_that_it_waits)
                patience.ask(lambda: push_experiment(settings))
            return 0 if is_alone else 1
    except GameRLError as error:
        _say(f"{error}. The experiment continues, but this generation is not uploaded")
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - its text might repeat a secret, so only its place
        place = traceback.extract_tb(error.__traceback__)[-1]
        name, where = type(error).__name__, os.path.basename(place.filename)  # noqa: PTH119 - text
        _say(f"the upload failed with {name} in {where}:{place.lineno}; the experiment continues")
        return 1


def _end_in_time(wait_s: float) -> None:
    """Wait until the input ends, because nothing trains any more, and exit `wait_s` later."""
    with suppress(OSError):
        while os.read(0, 1 << 10):  # sys.stdin has a lock, which a thread must not hold at exit
            pass
    threading.Timer(wait_s, lambda: os._exit(1)).start()


def _say_that_it_waits(fault: StoreFault) -> None:
    _say(f"{fault}. The experiment continues, and the upload is retried")


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # the reader has ended
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
