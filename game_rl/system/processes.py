"""What a process is given and can do on this system; other systems get their calls here.

Where its modules come from, its end with its parent, its CPUs and cores, its signals, its open
files, and waiting for several descriptors. Where a system lacks something, the portable form stands
beside it. Workers load this file, so it needs the standard library alone.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from types import FrameType

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

CAN_FORK = sys.platform == "linux" and hasattr(os, "fork")
"""Whether processes are forked here. macOS has `fork`, but its libraries may crash in the child;
there and on Windows each process is a fresh interpreter."""
CAN_POLL = hasattr(select, "poll")
"""Whether `poll_of` works here."""
PARENT_VARIABLE = "GAME_RL_PARENT"
"""Environment variable: the id of the parent process with which this process ends, or `LEASH`."""
LEASH = "stdin"
"""Value of `GAME_RL_PARENT`: the parent holds the other end of this process's standard input."""
CPUS_VARIABLE = "GAME_RL_CPUS"
"""Environment variable: the number of CPUs that this process may use, whatever the machine has."""
_SAFE_PATH = "PYTHONSAFEPATH"  # Python's: neither the current folder nor a script's is added
_ROOT = Path(__file__).parents[2]
_STANDARD_LIBRARY = str(Path(os.__file__).parent)
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_PR_SET_PDEATHSIG = 1  # linux/prctl.h

Handler = Callable[[int, FrameType | None], object] | signal.Handlers | int | None
KILLED = -9
"""Exit code of a process that was killed."""
yield_core: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))
"""Let other processes have this core for a moment."""


def python_variables(inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return environment variables that each Python gets which we start.

    Python puts the current folder before all packages, so a `random.py` there would run in the
    place of Python's own. With these variables it does not. Where this process has found game_rl
    before the standard library, in a checkout that is not installed, the other one does too.

    Args:
        inherited: the rest of its environment.
    """
    found = {_SAFE_PATH: "1"}
    before = takewhile(lambda entry: entry != _STANDARD_LIBRARY, sys.path)
    if _ROOT in (Path(entry).absolute() for entry in before):
        paths = (str(_ROOT), inherited.get("PYTHONPATH", ""))
        found["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return found


def free_children_to_import() -> None:
    """Let programs that this process starts look for modules where Python usually does.

    This process keeps its path, and so do those that multiprocessing starts.
    """
    os.environ.pop(_SAFE_PATH, None)


@contextmanager
def changed_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the processes that are started in the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


SHORT_PLACE = Path("/tmp")  # noqa: S108 - what is made there is private
"""Folder for sockets, whose paths have at most 107 characters: `TMPDIR` may be longer."""
_LONGEST_PLACE = 60  # characters; multiprocessing adds 32, macOS allows 103


@contextmanager
def short_temporary_folder() -> Iterator[None]:
    """Let temporary files that are made in the block be in `SHORT_PLACE`, if `TMPDIR` is long."""
    before = tempfile.tempdir
    if len(tempfile.gettempdir()) > _LONGEST_PLACE and SHORT_PLACE.is_dir():
        tempfile.tempdir = str(SHORT_PLACE)
    try:
        yield
    finally:
        tempfile.tempdir = before


def end_with_parent() -> None:
    """Have this process killed when its parent, which `GAME_RL_PARENT` names, ends.

    Without the variable nothing happens. With the id of a process, only Linux supports this; with
    `LEASH`, every system does. The variable is removed, so child processes do not inherit it.
    """
    named = os.environ.pop(PARENT_VARIABLE, "")
    if named:
        free_children_to_import()
    if named == LEASH:
        threading.Thread(target=_follow_leash, name="leash", daemon=True).start()
    if not named.isdigit() or sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(named):  # the parent had ended before the prctl
        os._exit(128 - KILLED)


def _follow_leash() -> None:
    """Take each byte of standard input as a SIGTERM, and its end as that of the parent."""
    while os.read(0, 1):  # not sys.stdin, whose lock this thread would hold at the exit
        signal_self(signal.SIGTERM)
    os._exit(128 - KILLED)


def signal_self(number: int) -> None:
    """Send this process a signal, from any thread; Python handles it in the main thread."""
    if os.name == "nt":  # where `os.kill` ends a process whatever the signal
        signal.raise_signal(number)
    else:
        os.kill(os.getpid(), number)  # wakes the main thread


def share_environment(cpus: int) -> dict[str, str]:
    """Return the environment of a process that may use `cpus` of the machine's CPUs."""
    return {**dict.fromkeys(_THREAD_VARIABLES, str(cpus)), CPUS_VARIABLE: str(cpus)}


def take_cpu_share(cpus: int) -> None:
    """Limit this process to `cpus` CPUs.

    Call it before torch is loaded, which reads the number of threads once.
    """
    os.environ.update(share_environment(cpus))


def let_others_finish() -> None:
    """Keep this process from preempting a busy one when a message arrives (see sched(7)).

    All workers wait for the training process, which would otherwise often lose its core to a worker
    at the moment of sending a request. A policy that is not the default, such as idle, was chosen
    by the user who started the training, and stays.
    """
    if not hasattr(os, "sched_setscheduler"):
        return
    with contextlib.suppress(OSError):  # a sandbox may forbid it
        if os.sched_getscheduler(0) == os.SCHED_OTHER:
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def set_cores(process: int, cores: Collection[int]) -> None:
    """Let a process run on these cores alone; raise OSError if it has ended."""
    os.sched_setaffinity(process, cores)


def known_signals(*names: str) -> tuple[signal.Signals, ...]:
    """Return the signals of these names that this system has."""
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


def signal_name(number: int) -> str:
    """Return the name of a signal, which this system may lack."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "SIGKILL" if number == -KILLED else f"signal {number}"


def ignore_signals(*names: str) -> None:
    """Ignore signals from now on; those that this system does not have are left out."""
    for number in known_signals(*names):
        signal.signal(number, signal.SIG_IGN)


def ignore_signals_here_alone(*names: str) -> None:
    """As `ignore_signals`, but processes that are forked from this one get theirs back."""
    before = {number: signal.getsignal(number) for number in known_signals(*names)}
    ignore_signals(*names)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    os.register_at_fork(after_in_child=restore)


@contextmanager
def handled_signals(handlers: Mapping[int, Handler]) -> Iterator[None]:
    """Handle signals in the block; afterwards they have the handlers that they had before."""
    previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def end_at_once_on_ctrl_c() -> None:
    """End this program on Ctrl-C without a traceback, until `raise_on_ctrl_c` is called.

    A program begins so while it imports what answers Ctrl-C. Where it is ignored, it stays so.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once)


def _end_at_once(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


def raise_on_ctrl_c() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, but not in the parts of torch that abort of it."""
    if signal.getsignal(signal.SIGINT) is _end_at_once:
        signal.signal(signal.SIGINT, _raise_or_end)


def _raise_or_end(number: int, frame: FrameType | None) -> None:
    torch = sys.modules.get("torch")
    if torch is not None and getattr(torch.__spec__, "_initializing", False):
        os.write(2, b"interrupted\n")
        _end_at_once(number, frame)
    signal.default_int_handler(number, frame)


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Let a Ctrl-C that comes inside the block take effect after it.

    Only the main thread can be interrupted, so in others nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    try:
        with handled_signals({signal.SIGINT: lambda number, _: came.append(number)}):
            yield
    finally:
        if came:
            signal.raise_signal(signal.SIGINT)


def poll_of(*descriptors: int) -> "select.poll":
    """Return an object whose `poll` waits until one of the descriptors can be read."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return poll


def allow_open_files(needed: int) -> int | None:
    """Let this process have `needed` files open at once; return the limit if that is lower."""
    if resource is None:  # no such limit
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return None
    if hard != resource.RLIM_INFINITY and hard < needed:
        return hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    return None


def own_niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)


def treat_as_own(pid: int, niceness: int) -> None:
    """Undo, where permitted, the low priority that a cluster gives to its processes."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, niceness)
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("0", encoding="ascii")


def yield_to_others() -> None:
    """Give this process the lowest priority; Windows starts it with that."""
    if hasattr(os, "nice"):
        with contextlib.suppress(OSError):
            os.nice(19)


def is_root() -> bool:
    return os.geteuid() == 0


def is_own_file(path: Path) -> bool:
    """Whether this user owns the file."""
    return path.stat().st_uid == os.getuid()
