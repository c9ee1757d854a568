"""The parent's side of the workers: start them, exchange messages, detect deaths, close them."""

import ast
import contextlib
import multiprocessing
import multiprocessing.forkserver
import os
import sys
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import send_handle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Union, cast

from game_rl.errors import WorkerError
from game_rl.system.processes import (
    KILLED,
    allow_open_files,
    changed_environment,
    deferred_interrupts,
    python_variables,
    short_temporary_folder,
    signal_name,
)
from game_rl.vec_env.worker import InProcessWorker, StartMethod, default_start_method, run_worker
from game_rl.vec_env.worker_protocol import (
    Failure,
    Request,
    WorkerCommand,
    channel_of,
    pack,
    unpack_answer,
)

_START_TIMEOUT_S = 120.0  # imports from a cold network disk
_LAST_CHANCE_S = 1.0  # after Ctrl-Z and fg every deadline is over, but the answers come at once
_LEAVE_TIMEOUT_S = 2.0  # for a worker to close its envs
_DEATH_TIMEOUT_S = 1.0  # for the kernel to end a killed process and to say how

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext  # Windows lacks the first

Context = Union["ForkServerContext", "SpawnContext"]


class WorkerProcess:
    """A new process that runs `run_worker`, and the parent's end of the pipe to it."""

    def __init__(self, number: int, first_env: int, context: Context) -> None:
        self._connection, theirs = context.Pipe()
        variables = python_variables() | _ONE_THREAD
        with theirs, changed_environment(variables), short_temporary_folder():
            self.process = context.Process(
                target=run_worker,
                args=(theirs, first_env),
                name=f"game_rl worker {number}",
                daemon=True,
            )
            if context.get_start_method() == "forkserver":
                multiprocessing.forkserver.ensure_running()
            with deferred_interrupts():  # a process that gets half of its arguments complains
                self.process.start()
        self._channel = channel_of(self._connection, self.process.sentinel)

    def send(self, message: bytes, *, file_descriptor: int | None = None) -> None:
        """Send a message, then the file descriptor; raise OSError if the process has ended."""
        self._channel.send(message)
        if file_descriptor is not None:
            assert self.process.pid is not None
            send_handle(self._connection, file_descriptor, self.process.pid)

    def is_heard(self) -> bool:
        """Whether there is a message, or the process has ended."""
        return self._channel.is_ready()

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the next message, or None if there is none in time.

        Raises:
            EOFError, OSError: the process has ended, and all its messages have been received.
        """
        return self._channel.receive(timeout_s)

    def hang_up(self) -> None:
        """Close the pipe, which makes the worker close its envs and exit, even while it sends."""
        self._connection.close()


class _Handle:
    """One worker; `awaited` is the command that it has not answered yet, if any."""

    def __init__(self, number: int, envs: range, worker: WorkerProcess | InProcessWorker) -> None:
        self.number = number
        self.envs = envs
        self.worker = worker
        self.process = worker.process
        self.awaited: WorkerCommand | None = WorkerCommand.START  # its greeting

    def __str__(self) -> str:
        envs = (
            f"envs {self.envs[0]}-{self.envs[-1]}" if len(self.envs) > 1 else f"env {self.envs[0]}"
        )
        return f"worker {self.number} ({envs})"


class WorkerPool:
    """Worker processes, each with a contiguous block of envs, and the message exchange with them.

    When a worker reports an exception or hangs, the whole pool is closed before the error is
    raised. When a worker process dies, the pool stays open. `close` may be called at any time and
    any number of times, takes at most 3 s and raises nothing. It also runs when the pool is garbage
    collected and when the interpreter exits.

    Attributes:
        deaths: the workers that have died, and how; `restart` removes one.
    """

    def __init__(
        self, blocks: Sequence[range], *, timeout_s: float, start_method: StartMethod | None
    ) -> None:
        self.deaths: dict[int, WorkerError] = {}
        self._timeout_s = timeout_s
        self._patience_s = timeout_s
        self._handles: list[_Handle] = []
        self._closed_because = ""
        self._shut_down = weakref.finalize(self, _shut_down, self._handles, os.getpid())
        start_method = start_method or default_start_method.get()
        self._context = None
        if start_method != "in_process":
            check_host(len(blocks))
            self._context = worker_context(start_method)
        try:
            for number, envs in enumerate(blocks):
                self._handles.append(self._start(number, envs))
            self.collect()
            self.fail_if_any_died()
        except BaseException:
            self.close()
            raise

    @property
    def processes(self) -> list[BaseProcess | InProcessWorker]:
        return [handle.process for handle in self._handles]

    @property
    def is_open(self) -> bool:
        return self._shut_down.alive

    def request(
        self, requests: Mapping[int, Request], *, file_descriptor: int | None = None
    ) -> None:
        """Send a request to each of these workers; drop answers that an interrupt left unread.

        Raises:
            WorkerError: for the same reasons as in `collect`.
        """
        self.collect()
        takes_long = any(request.command is WorkerCommand.BUILD for request in requests.values())
        self._patience_s = max(self._timeout_s, _START_TIMEOUT_S if takes_long else 0)
        for worker, request in requests.items():
            if worker in self.deaths:
                continue
            handle = self._handles[worker]
            message = pack(request)
            handle.awaited = request.command
            try:
                handle.worker.send(message, file_descriptor=file_descriptor)
            except OSError:
                self._bury(handle)

    def collect(self) -> dict[int, Any]:
        """Wait for all pending answers; return the results by worker, except for dead workers.

        Raises:
            WorkerError: an env raised an exception, a worker gave no answer in time, or the pool
                is closed.
            GameRLError: an env raised one; its cause is the WorkerError with the traceback.
        """
        self.check_open()
        deadline = time.monotonic() + self._patience_s
        results: dict[int, Any] = {}
        for handle in self._handles:
            if handle.awaited:
                self._collect_from(handle, deadline, results)
        return results

    def exchange(self, requests: Mapping[int, Request]) -> dict[int, Any]:
        self.request(requests)
        return self.collect()

    def restart(self, worker: int) -> None:
        """Replace a dead worker by a new process, which has no envs yet."""
        self.check_open()
        dead = self._handles[worker]
        with contextlib.suppress(OSError):
            dead.process.kill()  # it may have closed its connection and still be alive
        dead.process.join(_DEATH_TIMEOUT_S)
        self._handles[worker] = self._start(worker, dead.envs)
        del self.deaths[worker]

    def check_open(self) -> None:
        if not self.is_open:
            raise WorkerError(f"the environments are closed{self._closed_because}; make new ones")

    def fail_if_any_died(self) -> None:
        for death in self.deaths.values():
            self.fail(death)

    def fail(self, error: WorkerError) -> NoReturn:
        """Close the pool and raise `error`."""
        self._close_because(error)
        raise error

    def close(self) -> None:
        self._shut_down()

    def _start(self, number: int, envs: range) -> _Handle:
        worker: WorkerProcess | InProcessWorker
        if self._context is None:
            worker = InProcessWorker(envs.start)
        else:
            worker = WorkerProcess(number, envs.start, self._context)
        self._patience_s = max(self._timeout_s, _START_TIMEOUT_S)
        return _Handle(number, envs, worker)

    def _collect_from(self, handle: _Handle, deadline: float, results: dict[int, Any]) -> None:
        try:
            message = handle.worker.receive(max(deadline - time.monotonic(), 0))
            if message is None:
                message = handle.worker.receive(min(self._timeout_s, _LAST_CHANCE_S))
        except (EOFError, OSError):
            self._bury(handle)
            return
        if message is None:
            silent = [h for h in self._handles if h.awaited and not h.worker.is_heard()]
            self.fail(_hang(silent or [handle], self._patience_s))
        handle.awaited = None
        answer = unpack_answer(message)
        if isinstance(answer, Failure):
            self._raise(answer, handle)
        results[handle.number] = answer.result

    def _bury(self, handle: _Handle) -> None:
        self.deaths[handle.number] = _death(handle)
        handle.awaited = None
        handle.worker.hang_up()

    def _raise(self, failure: Failure, handle: _Handle) -> NoReturn:
        place = handle if failure.env is None else f"env {failure.env}"
        error = WorkerError(
            f"{place} raised {failure.exception}: {failure.message}\n\n"
            f"In worker {handle.number}:\n{failure.traceback.rstrip()}"
        )
        self._close_because(error)
        if failure.user_error is None:
            raise error
        raise failure.user_error(failure.message) from error

    def _close_because(self, error: WorkerError) -> None:
        self._closed_because = " because " + str(error).partition("\n")[0]
        self.close()


def _shut_down(handles: list[_Handle], owner: int) -> None:
    """Close the pipes, wait for the workers to exit, and kill those that do not.

    No message is needed: a worker notices the closed pipe even while it is sending.
    """
    if os.getpid() != owner:
        return  # a fork of the owner must not end the owner's workers
    for handle in handles:
        handle.worker.hang_up()
    _join(handles, _LEAVE_TIMEOUT_S)
    for handle in handles:
        with contextlib.suppress(OSError):  # it has just exited
            handle.process.kill()
    _join(handles, _DEATH_TIMEOUT_S)


def _join(handles: list[_Handle], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    for handle in handles:
        handle.process.join(max(deadline - time.monotonic(), 0))


def _hang(handles: Iterable[_Handle], timeout_s: float) -> WorkerError:
    who = ", ".join(f"{handle} to `{handle.awaited.value}`" for handle in handles if handle.awaited)
    return WorkerError(
        f"no answer within {timeout_s:g} s from {who}; "
        "if the environments do need that long, raise env.worker_timeout_s; if game.yaml has "
        "`step`, its `until` may never hold, so check it with game-rl check-game, or lower "
        "`step.at_most_frames`"
    )


def _death(handle: _Handle) -> WorkerError:
    handle.process.join(_DEATH_TIMEOUT_S)
    moment = f"during `{handle.awaited.value}`" if handle.awaited else "between two commands"
    code = handle.process.exitcode
    if handle.awaited is WorkerCommand.START and code is not None and code >= 0:
        moment = f"before it could start{why_it_did_not_begin()}"
    return WorkerError(f"{handle} {_ending(code)} {moment}")


def _ending(exitcode: int | None) -> str:
    if exitcode is None:
        return "closed its connection"
    if exitcode >= 0:
        return f"exited with code {exitcode}"
    name = signal_name(-exitcode)
    if exitcode == KILLED:
        return (
            "was killed (SIGKILL), probably because the machine is out of memory "
            "(lower env.n_envs or env.n_workers),"
        )
    native = name in {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT"}
    return f"was ended by {name}{', a crash in native code,' if native else ''}"


# The forkserver imports these once, and the workers share its pages; the last three are what the
# checks and the trackers of a training need. Two workers with four Duels each: PSS 27 MB a worker
# and 0.5 s to start them; spawned, 50 MB and 2.6 s (Linux, 2 busy cores).
_PRELOAD = [
    "game_rl.vec_env.worker",
    "game_rl.envs.make_env",
    "game_rl.emulator.pyboy_emulator",
    "game_rl.system.forkserver_signals",
    "game_rl.game_check.env_checks",
    "game_rl.episodes.button_log",
    "game_rl.places.place_counts",
]
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def worker_context(start_method: str) -> Context:
    """Return the context of a start method.

    Raises:
        ValueError: it is "fork", or unknown.
    """
    context = multiprocessing.get_context(start_method)
    if context.get_start_method() not in ("forkserver", "spawn"):
        raise ValueError(
            f"start_method is {start_method!r}, but workers are started by 'forkserver' or "
            "'spawn': a fork of this process would copy the locks that PyTorch's threads hold "
            "and could hang; leave start_method out"
        )
    context.set_forkserver_preload(_PRELOAD)
    return cast("Context", context)


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
    if getattr(sys.modules["__main__"], "__file__", None) == "<stdin>":
        raise WorkerError(
            "this script comes from standard input, and each worker imports the script: write it "
            f"to a file, {_GUARD}, and run `python FILE`"
        )
    needed = _FILES_A_WORKER * n_workers + _FILES_OF_A_RUN
    with contextlib.suppress(OSError):
        needed += sum(1 for _ in Path("/dev/fd").iterdir())
    limit = allow_open_files(needed)
    if limit is not None:
        raise WorkerError(
            f"this process may open {limit} files at once, but with its workers it needs about "
            f"{needed}; allow more with `ulimit -n 4096`, or lower env.n_workers"
        )


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
