"""A fake of a worker process: the worker's own code, called directly in this process.

It gives the same bytes as a worker process and starts in no time, for tests and for a debugger's
breakpoints in an env. What needs a process is missing: an env that hangs or crashes takes this
process with it, Ctrl-C in an env is an exception of the env, and nothing runs in parallel.
"""

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Literal

from game_rl.system.processes import CAN_FORK, KILLED
from game_rl.vec_env.worker import Worker
from game_rl.vec_env.worker_protocol import NOTHING_TO_SAY, pack

StartMethod = Literal["forkserver", "spawn", "in_process"]

USUAL_START_METHOD: StartMethod = "forkserver" if CAN_FORK else "spawn"
default_start_method: ContextVar[StartMethod] = ContextVar(
    "start method", default=USUAL_START_METHOD
)


@contextlib.contextmanager
def workers_in_process() -> Iterator[None]:
    """Give vec envs that are made in the block workers in this process, unless they say else."""
    token = default_start_method.set("in_process")
    try:
        yield
    finally:
        default_start_method.reset(token)


class InProcessWorker:
    """A fake of a `WorkerProcess` and of its process, which `kill` ends without a trace.

    It answers a message as soon as it is sent.
    """

    pid = None

    def __init__(self, first_env: int) -> None:
        self.exitcode: int | None = None
        self._descriptors: list[int] = []
        self._worker: Worker | None = Worker(first_env, self._descriptors.pop)
        self._answers = [pack(NOTHING_TO_SAY)]  # the greeting

    @property
    def process(self) -> "InProcessWorker":
        return self

    def send(self, message: bytes, *, file_descriptor: int | None = None) -> None:
        if self._worker is None:
            raise BrokenPipeError
        if file_descriptor is not None:
            self._descriptors.append(os.dup(file_descriptor))
        self._answers.append(self._worker.answer(message)[0])

    def is_heard(self) -> bool:
        return True

    def receive(self, timeout_s: float) -> bytes:  # noqa: ARG002 - the answer is there
        if self._worker is None:
            raise EOFError
        return self._answers.pop()

    def hang_up(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._end(0)

    def kill(self) -> None:
        if self._worker is not None:
            self._end(KILLED)

    def join(self, timeout: float | None = None) -> None:
        pass

    def is_alive(self) -> bool:
        return self._worker is not None

    def _end(self, exitcode: int) -> None:
        self._worker = None
        self.exitcode = exitcode
