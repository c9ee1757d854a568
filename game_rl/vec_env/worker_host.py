"""Whether this process can start workers, and why they may not have begun."""

import ast
import contextlib
import multiprocessing
import resource
import sys
from pathlib import Path

from game_rl.errors import WorkerError

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
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise WorkerError(
            f"this process may open {hard} files at once, but with its workers it needs about "
            f"{needed}; allow more with `ulimit -n 4096`, or lower env.n_workers"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
