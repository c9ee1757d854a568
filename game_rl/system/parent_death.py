"""Let a process end when its parent ends, even if the parent is killed."""

import ctypes
import os
import signal
import sys

PARENT_VARIABLE = "GAME_RL_PARENT"
"""Environment variable: the id of the parent process with which this process ends."""
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with_parent() -> None:
    """Have this process killed when its parent, which `GAME_RL_PARENT` names, ends.

    Without the variable nothing happens. Only Linux supports this. On other systems the process
    runs to its own end, and its lock keeps other processes out meanwhile. The variable is removed,
    so child processes do not inherit it.
    """
    named = os.environ.pop(PARENT_VARIABLE, "")
    if not named.isdigit() or sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(named):  # the parent had ended before the prctl
        os._exit(128 + signal.SIGKILL)
