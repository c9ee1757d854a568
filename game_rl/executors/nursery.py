"""Processes for jobs out of one that has loaded already what they need.

Loading torch takes two or three seconds of a core, about as long as a member of a population trains
in a short generation. A nursery loads it once and forks itself for each job, whose process is a
child of the nursery's: it begins at once, and shares the memory of what was loaded.
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

_ANSWER_S = 120.0  # imports from a cold network disk
_MODULE = "game_rl.executors.nursery_process"


class NurseryError(Exception):
    """It has ended, and its children with it."""


class NoNurseryError(NurseryError):
    """Here there can be none that forks safely."""


class Nursery:
    """One process, and those that it forks; close it, and all of them end at once.

    Args:
        environment: that it has itself. Numbers of threads are read when torch is loaded, so they
            must be those of its jobs.

    Raises:
        NoNurseryError: only Linux ends children with the process that forked them.
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
            environment: all that the child has, beside the name of its parent.
            output: descriptor of the file that gets what it prints.

        Raises:
            NurseryError: there is no such child; the nursery is closed.
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
        """The exit code of a child that has ended; below 0 the number of a signal."""
        try:
            self._channel.send(json.dumps({"reap": pid}).encode())
            return int(self._answer()["code"])
        except OSError:  # with the nursery all its children end
            self.close()
            return -signal.SIGKILL

    def close(self) -> None:
        """End it, and its children with it; may be called twice."""
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
    """A child of a nursery, looked at from the process that asked for it."""

    def __init__(self, nursery: Nursery, pid: int, descriptor: int) -> None:
        self.pid = pid
        self._nursery = nursery
        self._descriptor = descriptor
        self._end = select.poll()
        self._end.register(descriptor, select.POLLIN)

    def has_ended(self) -> bool:
        """It is not reaped by that, so its id is nobody else's."""
        return bool(self._end.poll(0))

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, number)

    def kill_and_wait(self) -> int:
        """End it and its group; its exit code."""
        self.send_signal(signal.SIGKILL)
        self._end.poll()
        code = self._nursery.reap(self.pid)
        os.close(self._descriptor)
        return code
