"""Forks the processes of jobs from one that has already imported what they need.

Importing torch takes two or three seconds of a core, about as long as a member of a population
trains in a short generation. A nursery imports it once and forks itself for each job. The child
starts at once, and shares the memory of the imported modules.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from game_rl.system.parent_death import PARENT_VARIABLE

_ANSWER_S = 120.0  # for imports from a cold network disk
_MODULE = "game_rl.executors.nursery_process"


class NurseryError(Exception):
    """The nursery has ended, and its children with it."""


class NoNurseryError(NurseryError):
    """No nursery can fork safely here."""


class Nursery:
    """A process and the children that it forks; `close` ends all of them at once.

    Args:
        environment: environment of the nursery. Torch reads the numbers of threads at import, so
            they must be those of the jobs.

    Raises:
        NoNurseryError: this is not Linux. Elsewhere children would outlive the process that forked
            them.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        if sys.platform != "linux":
            raise NoNurseryError
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**environment, PARENT_VARIABLE: str(os.getpid())},
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
            NurseryError: the child could not be started, and the nursery is closed.
        """
        order = {"module": module, "arguments": list(arguments), "environment": dict(environment)}
        try:
            socket.send_fds(self._channel, [json.dumps(order).encode()], [output])
            answer = self._answer()
            if "pid" in answer:
                return ForkedProcess(self, answer["pid"], os.pidfd_open(answer["pid"]))
        except OSError as error:
            self.close()
            raise NurseryError(str(error)) from None
        self.close()
        raise NoNurseryError(answer["refused"])

    def reap(self, pid: int) -> int:
        """Return the exit code of a child that has ended, or minus the number of a signal."""
        try:
            self._channel.send(json.dumps({"reap": pid}).encode())
            return int(self._answer()["code"])
        except OSError:  # the nursery has ended, and all its children with it
            self.close()
            return -signal.SIGKILL

    def close(self) -> None:
        """End the nursery and its children; may be called twice."""
        self._channel.close()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def _answer(self) -> dict[str, Any]:
        message = self._channel.recv(1000)
        if not message:
            raise OSError("the nursery has ended")
        answer: dict[str, Any] = json.loads(message)
        return answer


class ForkedProcess:
    """A child of a nursery, as seen by the process that asked for it."""

    def __init__(self, nursery: Nursery, pid: int, descriptor: int) -> None:
        self.pid = pid
        self._nursery = nursery
        self._descriptor = descriptor
        self._end = select.poll()
        self._end.register(descriptor, select.POLLIN)

    def has_ended(self) -> bool:
        """Whether it has ended; it is not reaped, so its id is not reused."""
        return bool(self._end.poll(0))

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, number)

    def kill_and_wait(self) -> int:
        """Kill it and its process group, and return its exit code."""
        self.send_signal(signal.SIGKILL)
        self._end.poll()
        code = self._nursery.reap(self.pid)
        os.close(self._descriptor)
        return code
