"""The process that sends one generation of an experiment: `python -m` this, settings on its input.

It tries again while storage fails, prints one line for people if it has something to say, and ends
with its parent, or when all is there. It has the lowest priority, and ignores signals, which are
meant for the experiment.
"""

import os
import signal
import sys
import traceback
from contextlib import suppress

from game_rl.errors import GameRLError
from game_rl.storage.experiments import push_experiment
from game_rl.storage.faults import StoreFault
from game_rl.storage.patience import patiently
from game_rl.storage.settings import PushSettings
from game_rl.system.parent_death import end_with_parent

_PATIENCE_S = 7 * 86_400.0
_IGNORED = (signal.SIGINT, signal.SIGTERM)


def main() -> int:
    """0: all is there."""
    end_with_parent()
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(19)
    settings = PushSettings.model_validate_json(sys.stdin.readline())
    try:
        patiently(lambda: push_experiment(settings), _PATIENCE_S, tell=_say_that_it_waits)
    except GameRLError as error:
        _say(f"{error}. The population goes on, and is not uploaded")
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - its text might repeat a secret, so only its place
        place = traceback.extract_tb(error.__traceback__)[-1]
        name, where = type(error).__name__, os.path.basename(place.filename)  # noqa: PTH119 - text
        _say(f"the upload ends with {name} in {where}:{place.lineno}; the population goes on")
        return 1
    return 0


def _say_that_it_waits(fault: StoreFault) -> None:
    _say(f"{fault}. The population goes on, and the upload is tried again")


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # nobody listens any more
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
