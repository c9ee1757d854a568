"""A process that ends when the one that started it does, however that ends."""

import ctypes
import os
import signal
import sys

PARENT_VARIABLE = "GAME_RL_PARENT"
"""In the environment: the process id with which this process ends."""
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent() -> None:
    """Be killed when the process that `GAME_RL_PARENT` names ends; without it, do nothing.

    Only Linux can do that; elsewhere the process goes on to its own end, and its lock keeps others
    out meanwhile. What it starts itself does not inherit the variable.
    """
    named = os.environ.pop(PARENT_VARIABLE, "")
    if not named.isdigit() or sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(named):  # it had ended before
        os._exit(128 + signal.SIGKILL)
