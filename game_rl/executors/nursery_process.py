"""The process that `Nursery` starts: it imports what jobs need, and forks itself for each.

Messages are JSON objects over a socket whose descriptor is the argument. The answer to `{"module":
…, "arguments": […], "environment": {…}}`, with the descriptor of a file, is `{"pid": N}` or
`{"refused": "reason"}`. The answer to `{"reap": N}` is `{"code": N}` once that child has ended.
When the socket is closed, the process and its children end.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from game_rl.system.parent_death import PARENT_VARIABLE, end_with_parent

_NOT_FOR_US = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
_LOADED = ("game_rl.jobs.member_jobs", "game_rl.jobs.member_jobs", "game_rl.jobs.member_jobs")
_MESSAGE_BYTES = 1 << 20


def main() -> int:
    """Serve until the socket is closed, and return 0; in a child, run its job."""
    end_with_parent()
    environment = dict(os.environ)
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in _NOT_FOR_US}
    channel = socket.socket(fileno=int(sys.argv[1]))
    for module in _LOADED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # garbage collection in a child would copy shared pages
    order = _serve(channel)
    if order is None:
        return 0
    for number, handler in handlers.items():
        signal.signal(number, handler)
    for name in environment.keys() - order["environment"].keys():
        os.environ.pop(name, None)
    os.environ.update(order["environment"])
    sys.argv = [sys.argv[0], *order["arguments"]]
    runpy.run_module(order["module"], run_name="__main__", alter_sys=True)  # as `python -m` does
    return 0


def _serve(channel: socket.socket) -> dict[str, Any] | None:
    """Fork for each order; return the order in the child, and None in the nursery at its end."""
    parent = str(os.getpid())
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, _MESSAGE_BYTES, 1)
        if not message:
            return None
        order: dict[str, Any] = json.loads(message)
        if "reap" in order:
            answer: dict[str, object] = {"code": _reaped(order["reap"])}
        elif _n_threads() > 1:
            answer = {"refused": "a library has started threads, which a fork would lose"}
        elif pid := os.fork():
            answer = {"pid": pid}
        else:
            channel.close()
            _lead_a_session(descriptors[0])
            order["environment"][PARENT_VARIABLE] = parent
            return order
        for descriptor in descriptors:
            os.close(descriptor)
        channel.send(json.dumps(answer).encode())


def _n_threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def _reaped(pid: int) -> int:
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # its id is not reused before it is reaped
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def _lead_a_session(output: int) -> None:
    os.setsid()
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)


if __name__ == "__main__":
    sys.exit(main())
