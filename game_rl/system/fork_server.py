"""Processes of jobs: fresh interpreters, and forks of one that has imported what jobs need.

Importing torch takes two or three seconds of a core, about as long as a member of a population
trains in a short generation. A fork server imports it once and forks itself for each job. The child
starts at once, and shares the memory of the imported modules.

The server's arguments are the descriptor of a socket and the modules that it imports. Messages are
JSON objects. The answer to `{"module": …, "arguments": […], "environment": {…}}`, with the
descriptor of a file, is `{"pid": N}` or `{"refused": "reason"}`. The answer to `{"reap": N}` is
`{"code": N}` once that child has ended. When the socket is closed, the server and its children
end.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from game_rl.system.processes import (
    CAN_FORK,
    KILLED,
    PARENT_VARIABLE,
    end_with_parent,
    known_signals,
    poll_of,
    python_variables,
)

_ANSWER_S = 120.0  # for imports from a cold network disk
_MODULE = "game_rl.system.fork_server"
_NOT_FOR_US = known_signals("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")
_MESSAGE_BYTES = 1 << 20


class ForkServerError(Exception):
    """The fork server has ended, and its children with it."""


class ForkServerUnavailableError(ForkServerError):
    """No fork server can fork safely here."""


class ForkServer:
    """A process and the children that it forks; `close` ends all of them at once.

    Args:
        modules: modules that it imports before it forks.
        environment: environment of the fork server. Torch reads the numbers of threads when it is
            imported, so they must be those of the jobs.

    Raises:
        ForkServerUnavailableError: processes are not forked on this system.
    """

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        if not CAN_FORK:
            raise ForkServerUnavailableError
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(theirs.fileno()), *modules],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={
                    **environment,
                    **python_variables(environment),
                    PARENT_VARIABLE: str(os.getpid()),
                },
                pass_fds=[theirs.fileno()],
            )
        self._channel.settimeout(_ANSWER_S)

    def fork(
        self, module: str, arguments: Sequence[str], environment: Mapping[str, str], output: int
    ) -> "ForkedProcess":
        """Run `python -m MODULE ARGUMENTS` in a child that leads a session of its own.

        Args:
            environment: whole environment of the child, except for `PARENT_VARIABLE`.
            output: descriptor of the file for its output.

        Raises:
            ForkServerError: the child could not be started, and the fork server is closed.
        """
        whole = {**environment, **python_variables(environment)}
        order = {"module": module, "arguments": list(arguments), "environment": whole}
        try:
            socket.send_fds(self._channel, [json.dumps(order).encode()], [output])
            answer = self._answer()
            if "pid" in answer:
                return ForkedProcess(self, answer["pid"], os.pidfd_open(answer["pid"]))
        except OSError as error:
            self.close()
            raise ForkServerError(str(error)) from None
        self.close()
        raise ForkServerUnavailableError(answer["refused"])

    def reap(self, pid: int) -> int:
        """Return the exit code of a child that has ended, or minus the number of a signal."""
        try:
            self._channel.send(json.dumps({"reap": pid}).encode())
            return int(self._answer()["code"])
        except OSError:  # the fork server has ended, and all its children with it
            self.close()
            return KILLED

    def close(self) -> None:
        """End the fork server and its children; may be called twice."""
        self._channel.close()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def _answer(self) -> dict[str, Any]:
        message = self._channel.recv(1000)
        if not message:
            raise OSError("the fork server has ended")
        answer: dict[str, Any] = json.loads(message)
        return answer


class Process(Protocol):
    """The process of a job, however it was started."""

    @property
    def pid(self) -> int: ...

    def has_ended(self) -> bool:
        """Whether it has ended; not reaped, so its id is not reused before `kill_and_wait`."""

    def ask_to_stop(self) -> None:
        """Have it save and end; nothing happens if it has ended."""

    def begin_to_kill(self) -> None: ...

    def kill_and_wait(self) -> int:
        """Kill it and its process group, if it has not ended, and return its exit code."""


class OwnProcess:
    """A child process in a fresh interpreter."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        output: int,
        *,
        folder: Path | None = None,
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**environment, **python_variables(environment), PARENT_VARIABLE: str(os.getpid())},
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def has_ended(self) -> bool:
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return ended is not None

    def ask_to_stop(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def begin_to_kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def kill_and_wait(self) -> int:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        return self._process.wait()


class ForkedProcess:
    """A child of a fork server, as seen by the process that asked for it."""

    def __init__(self, server: ForkServer, pid: int, descriptor: int) -> None:
        self.pid = pid
        self._server = server
        self._descriptor = descriptor
        self._end = poll_of(descriptor)

    def has_ended(self) -> bool:
        return bool(self._end.poll(0))

    def ask_to_stop(self) -> None:
        self._send(signal.SIGTERM)

    def begin_to_kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, number)

    def kill_and_wait(self) -> int:
        self.begin_to_kill()
        self._end.poll()
        code = self._server.reap(self.pid)
        os.close(self._descriptor)
        return code


def main() -> int:
    """Serve until the socket is closed, and return 0; in a child, run its job."""
    end_with_parent()
    environment = dict(os.environ)
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in _NOT_FOR_US}
    channel = socket.socket(fileno=int(sys.argv[1]))
    for module in sys.argv[2:]:
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
    """Fork for each order; return it in the child, and None in the fork server at its end."""
    parent = str(os.getpid())
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, _MESSAGE_BYTES, 1)
        if not message:
            return None
        order: dict[str, Any] = json.loads(message)
        if "reap" in order:
            answer: dict[str, object] = {"code": _reaped(order["reap"])}
        elif len(list(Path("/proc/self/task").iterdir())) > 1:
            answer = {"refused": "a library has started threads, which a fork would lose"}
        elif pid := os.fork():
            answer = {"pid": pid}
        else:
            channel.close()
            os.setsid()
            os.dup2(descriptors[0], 1)
            os.dup2(descriptors[0], 2)
            os.close(descriptors[0])
            order["environment"][PARENT_VARIABLE] = parent
            return order
        for descriptor in descriptors:
            os.close(descriptor)
        channel.send(json.dumps(answer).encode())


def _reaped(pid: int) -> int:
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # its id is not reused before it is reaped
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
