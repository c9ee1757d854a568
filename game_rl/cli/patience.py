"""Commands that wait for storage while it fails, until Ctrl-C ends them at once."""

import functools
import os
import sys
import threading
from argparse import Namespace
from collections.abc import Callable
from concurrent.futures import Future

from rich.console import Console

from game_rl.errors import Interrupted, StorageError
from game_rl.storage.faults import PASSING_FAULTS, Patience, StoreFault

_LONGEST_OUTAGE_S = 600.0
RETRIED = "It is retried for several minutes; Ctrl-C ends the command"

Command = Callable[[Namespace], int]


def patience(console: Console) -> Patience:
    """Return the patience of a command in the foreground, which prints a line for each outage.

    A fault that only the user can end, such as a bucket that does not exist, is not waited for.
    """

    def tell(fault: StoreFault) -> None:
        console.print(f"{fault}. {RETRIED}", markup=False, highlight=False, soft_wrap=True)

    return Patience(_LONGEST_OUTAGE_S, waits_for=PASSING_FAULTS, tell=tell)


def waiting_for_storage(way_on: str) -> Callable[[Command], Command]:
    """Carry out a command in a thread, as a request may block for minutes and sees no Ctrl-C.

    On Ctrl-C, the process ends like one that is killed: files that are whole stay.

    Args:
        way_on: how to go on after an interruption or a long outage.
    """

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def carried_out(arguments: Namespace) -> int:
            done: Future[int] = Future()
            threading.Thread(target=_settle, args=(done, command, arguments), daemon=True).start()
            try:
                return done.result()
            except StoreFault as fault:
                if fault.kind not in PASSING_FAULTS:
                    raise
                raise StorageError(f"{fault}; {way_on}") from None
            except KeyboardInterrupt:
                Console(stderr=True).show_cursor()  # which a bar has hidden
                print(f"interrupted; {way_on}", file=sys.stderr, flush=True)
                os._exit(Interrupted("interrupted").exit_code)

        return carried_out

    return decorated


def _settle(done: Future[int], command: Command, arguments: Namespace) -> None:
    try:
        done.set_result(command(arguments))
    except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
        done.set_exception(error)
