"""A worker process as its parent sees it, and whether this process can start any."""

import ast
import contextlib
import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.reduction import send_handle
from pathlib import Path

from game_rl.errors import WorkerError
from game_rl.system.processes import allow_open_files, poll_of
from game_rl.vec_env.worker import run_worker
from game_rl.vec_env.worker_protocol import receive, send

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
        self._poll = poll_of(self._descriptor, self.process.sentinel)

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
        events = self._poll.poll(timeout_s * 1000)  # in the order of `poll_of`
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


_FILES_A_WORKER = 4  # its pipe, its sentinel and what says that we live, and one in passing
_FILES_OF_A_RUN = 64  # logs, a Lake, libraries; a training has about 40 without its workers
_GUARD = 'put what the script does under `if __name__ == "__main__":`'


def check_host(n_workers: int) -> None:
    """Raise WorkerError, with the way out, if this process cannot start so many workers."""
    process = multiprocessing.current_process()
    if process.daemon:
        raise WorkerError(
            "this process is daemonic, as those of multiprocessing.Pool are, and Python lets such "
            "a process start no other, so there can be no workers; use "
            "concurrent.futures.ProcessPoolExecutor (in joblib the backend loky), or start the "
            "training with subprocess"
        )
    if getattr(process, "_inheriting", False):
        raise WorkerError(f"a worker imports the main script, which starts workers again; {_GUARD}")
    _allow_files(_open_files() + _FILES_A_WORKER * n_workers + _FILES_OF_A_RUN)


def why_it_did_not_begin() -> str:
    """Return what a worker that exits before its greeting lacks, as the end of a sentence."""
    file = getattr(sys.modules["__main__"], "__file__", None)
    if file is None or not Path(file).is_file():
        return "; the traceback above says why"
    if _is_guarded(Path(file)):
        return f"; the traceback above says why. A worker imports {file} first"
    return f": it imports {file}, which does everything again; {_GUARD}"


def _is_guarded(script: Path) -> bool:
    try:
        body = ast.parse(script.read_bytes()).body
    except (SyntaxError, ValueError, OSError):
        return True  # a program of another kind, such as an installed command
    tests = (ast.unparse(node.test) for node in body if isinstance(node, ast.If))
    return any("__name__" in test for test in tests)


def _open_files() -> int:
    with contextlib.suppress(OSError):
        return sum(1 for _ in Path("/dev/fd").iterdir())
    return 0


def _allow_files(needed: int) -> None:
    """Raise the soft limit of open files to `needed`, if it is lower."""
    limit = allow_open_files(needed)
    if limit is not None:
        raise WorkerError(
            f"this process may open {limit} files at once, but with its workers it needs about "
            f"{needed}; allow more with `ulimit -n 4096`, or lower env.n_workers"
        )
