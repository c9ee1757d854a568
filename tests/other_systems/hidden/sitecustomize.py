"""Hides from game_rl what only Linux or Unix has; loaded by every process with it on PYTHONPATH.

Names of `os`, `select`, `signal` and `socket` are hidden from everybody. Modules and /proc are
hidden from our code alone: filelock and psutil have forms of their own for each system, which here
are those of Linux. SIGKILL and killpg stay for the standard library, register_at_fork for torch.
"""

import builtins
import io
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

HIDDEN_NAMES = {
    os: (
        *("fork", "forkpty", "memfd_create", "pidfd_open", "waitid", "setsid"),
        *("nice", "getpriority", "setpriority", "pread", "preadv", "pwrite", "pwritev"),
        *(name for name in dir(os) if name.startswith("sched_")),
    ),
    select: ("poll", "epoll"),
    signal: (
        *("SIGALRM", "SIGUSR1", "SIGUSR2", "SIGHUP", "alarm", "setitimer", "getitimer"),
        *("pidfd_send_signal", "pthread_kill", "pthread_sigmask", "sigwait"),
    ),
    socket: ("send_fds", "recv_fds", "CMSG_LEN", "SCM_RIGHTS"),
}
HIDDEN_MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "pty", "posix", "_posixsubprocess"}
HIDDEN_FOLDERS = ("/proc", "/sys")

for module, names in HIDDEN_NAMES.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)


def _is_ours(frame: Any) -> bool:
    """Whether the innermost frame outside of the standard library is of game_rl."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in sys.stdlib_module_names and package != "sitecustomize":
            return package == "game_rl"
        frame = frame.f_back
    return False


_import = builtins.__import__


def _import_what_there_is(name: str, scope: Any = None, *rest: Any, **more: Any) -> Any:
    importer = str((scope or {}).get("__name__", "")).partition(".")[0]
    if name in HIDDEN_MODULES and importer == "game_rl":
        raise ModuleNotFoundError(f"No module named {name!r} (hidden)", name=name)
    return _import(name, scope, *rest, **more)


builtins.__import__ = _import_what_there_is  # type: ignore[assignment]  # names of arguments


def _without_hidden_folders(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(path: Any = ".", *rest: Any, **more: Any) -> Any:
        if not isinstance(path, int) and _is_hidden(path) and _is_ours(sys._getframe(1)):
            raise FileNotFoundError(2, "No such file or directory (hidden)", os.fspath(path))
        return function(path, *rest, **more)

    return call


def _is_hidden(path: Any) -> bool:
    text = os.fspath(path)
    if not isinstance(text, str):
        return False
    return any(text == folder or text.startswith(f"{folder}/") for folder in HIDDEN_FOLDERS)


for name in ("stat", "lstat", "open", "listdir", "scandir", "readlink"):
    setattr(os, name, _without_hidden_folders(getattr(os, name)))
io.open = builtins.open = _without_hidden_folders(io.open)
