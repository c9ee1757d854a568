"""A worker process as its parent sees it: start it, send to it, hear from it, leave it."""

import contextlib
import multiprocessing
import os
import select
from collections.abc import Iterator, Mapping
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.reduction import send_handle

from game_rl.vec_env.messages import receive, send
from game_rl.vec_env.worker import run_worker

Context = ForkServerContext | SpawnContext

# The forkserver imports these once, and the workers share its pages. Two workers with four Duels
# each: PSS 27 MB a worker and 0.5 s to start them; spawned, 50 MB and 2.6 s (Linux, 2 busy cores).
_PRELOAD = [
    "game_rl.vec_env.worker",
    "game_rl.envs.make_env",
    "game_rl.vec_env.forkserver_signals",
]
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class WorkerProcess:
    """A new process that runs `run_worker`, and the parent's end of the pipe to it."""

    def __init__(self, number: int, first_env: int, context: Context) -> None:
        self._connection, theirs = context.Pipe()
        with theirs, _environment(_ONE_THREAD):
            self.process = context.Process(
                target=run_worker,
                args=(theirs, first_env),
                name=f"game_rl worker {number}",
                daemon=True,
            )
            self.process.start()
        self._descriptor = self._connection.fileno()
        self._poll = select.poll()
        self._poll.register(self._descriptor, select.POLLIN)
        self._poll.register(self.process.sentinel, select.POLLIN)

    def send(self, message: bytes, *, file_descriptor: int | None = None) -> None:
        """Send a message, then the file descriptor; raise OSError if the process has ended."""
        send(self._descriptor, message)
        if file_descriptor is not None:
            assert self.process.pid is not None
            send_handle(self._connection, file_descriptor, self.process.pid)

    def is_heard(self) -> bool:
        """Whether there is a message, or the process has ended."""
        return bool(self._poll.poll(0))

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the next message, or None if there is none in time.

        Raises:
            EOFError, OSError: the process has ended, and all its messages have been received.
        """
        events = self._poll.poll(timeout_s * 1000)  # in the order of `register`
        if not events:
            return None
        if events[0][0] != self._descriptor:
            raise EOFError
        return receive(self._descriptor)

    def hang_up(self) -> None:
        """Close the pipe, which makes the worker close its envs and exit, even while it sends."""
        self._connection.close()


def worker_context(start_method: str) -> Context:
    """Return the context of a start method.

    Raises:
        ValueError: it is "fork", or unknown.
    """
    context = multiprocessing.get_context(start_method)
    if not isinstance(context, (ForkServerContext, SpawnContext)):
        raise ValueError(
            f"start_method is {start_method!r}, but workers are started by 'forkserver' or "
            "'spawn': a fork of this process would copy the locks that PyTorch's threads hold "
            "and could hang; leave start_method out"
        )
    context.set_forkserver_preload(_PRELOAD)
    return context


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the processes that are started in the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
