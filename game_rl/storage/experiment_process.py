"""The process that sends one generation of an experiment: `python -m` this, settings on its input.

It tries again while storage fails, prints one line for people if it has something to say, and ends
when all is there. When its input ends, the experiment's process has died; it sends for so long as
an experiment waits at its end. It has the lowest priority, and ignores signals, which are meant for
the experiment.
"""

import os
import signal
import sys
import threading
import traceback
from contextlib import suppress

from game_rl.errors import GameRLError
from game_rl.storage.experiments import push_experiment
from game_rl.storage.faults import StoreFault
from game_rl.storage.patience import patiently
from game_rl.storage.settings import PushSettings
from game_rl.storage.uploading import alone

_PATIENCE_S = 7 * 86_400.0
_LOCK_WAIT_S = 3600.0  # a predecessor leaves within upload.wait_s
_IGNORED = (signal.SIGINT, signal.SIGTERM)


def main() -> int:
    """0: all is there."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(19)
    settings = PushSettings.model_validate_json(sys.stdin.readline())
    threading.Thread(target=_end_in_time, args=(settings.wait_s,), daemon=True).start()
    try:
        with alone(settings.folder.parent, wait_s=_LOCK_WAIT_S) as is_alone:
            if is_alone:
                patiently(lambda: push_experiment(settings), _PATIENCE_S, tell=_say_that_it_waits)
            return 0 if is_alone else 1
    except GameRLError as error:
        _say(f"{error}. The experiment goes on, and is not uploaded")
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - its text might repeat a secret, so only its place
        place = traceback.extract_tb(error.__traceback__)[-1]
        name, where = type(error).__name__, os.path.basename(place.filename)  # noqa: PTH119 - text
        _say(f"the upload ends with {name} in {where}:{place.lineno}; the experiment goes on")
        return 1


def _end_in_time(wait_s: float) -> None:
    """When nobody trains any more."""
    with suppress(OSError):
        while os.read(0, 1 << 10):  # sys.stdin has a lock, which a thread must not hold at exit
            pass
    threading.Timer(wait_s, lambda: os._exit(1)).start()


def _say_that_it_waits(fault: StoreFault) -> None:
    _say(f"{fault}. The experiment goes on, and the upload is tried again")


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # nobody listens any more
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
