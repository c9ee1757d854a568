"""One attempt at a job on a node of a cluster; nothing here knows which cluster it is."""

import os
import platform
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from game_rl.errors import GameRLError, UsageError
from game_rl.executors.errand import Delivery, Errand, GivenUpError
from game_rl.executors.executor import Job
from game_rl.executors.job_process import JobProcess
from game_rl.executors.node import Needs
from game_rl.executors.private_folder import private_folder

_LONG_S = 3600.0
_LOOK_EVERY_S = 1.0  # for a new checkpoint
_CLUSTER_PREFIX = "RAY_"
_GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Order:
    """A job on its way to a node.

    Attributes:
        needs: what the node must have.
        folder: in which the job starts, where the node shares it with the controller.
        errand: what the job needs and leaves, where the node shares no files.
        niceness: of the controller, and so of the job, whatever the cluster's own is.
        has_gpu: the cluster gives it one; without, it sees none.
        patience_s: how long it may take to save and end when it is asked to.
    """

    job: Job
    needs: Needs
    niceness: int
    has_gpu: bool
    patience_s: float
    folder: Path | None = None
    errand: Errand | None = None


@dataclass(frozen=True)
class Outcome:
    """How it has ended; see `Ended`."""

    code: int
    where: str
    text: str = ""


def carry_out(order: Order) -> Outcome:
    """Run the job's process to its end, in the main thread.

    A KeyboardInterrupt, which is what a cluster raises here to cancel, or a SIGTERM has it save and
    end. When this process ends, however it does, the job ends at once with it.
    """
    where = platform.node()
    with _interruptible():
        problem = order.needs.problem()
        if problem is not None:
            return Outcome(UsageError.exit_code, where, problem)
        if order.errand is not None:
            return _on_own_disk(order, order.errand, where)
        assert order.folder is not None
        return _carried_out(order, order.job, order.folder, where)


def _on_own_disk(order: Order, errand: Errand, where: str) -> Outcome:
    """In a folder of this node, which is deleted then."""
    try:
        with private_folder(Path(tempfile.gettempdir())) as scratch:
            delivery = Delivery(errand, scratch / "files")
            delivery.fetch()
            outcome = _carried_out(order, errand.job, scratch / "files", where, delivery.save)
            with _uninterruptible():
                delivery.deliver(outcome.code)
            return outcome
    except GivenUpError as error:
        return Outcome(-signal.SIGKILL, where, str(error))
    except GameRLError as error:
        return Outcome(error.exit_code, where, str(error))


def _carried_out(
    order: Order,
    job: Job,
    folder: Path,
    where: str,
    meanwhile: Callable[[], None] | None = None,
) -> Outcome:
    process = JobProcess(job, folder=folder, environment=_environment(order))
    try:
        _treat_as_own(process.pid, order.niceness)
        while process.wait(_LONG_S if meanwhile is None else _LOOK_EVERY_S) is None:
            if meanwhile is not None:
                meanwhile()
    except KeyboardInterrupt:
        process.ask_to_stop()
        process.wait(order.patience_s)
    finally:
        code = process.kill()  # of one that has ended it only gets the code
    return Outcome(code, where, process.tail())


def _environment(order: Order) -> dict[str, str]:
    """Ours, without what the cluster tells its own processes."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(_CLUSTER_PREFIX)}
    return own if order.has_gpu else own | {_GPUS_VARIABLE: ""}


def _treat_as_own(pid: int, niceness: int) -> None:
    """Undo, as far as we may, that the cluster gives way to other programs in all it starts."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, niceness)
    with suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("0", encoding="ascii")


@contextmanager
def _uninterruptible() -> Iterator[None]:
    """What is saved arrives, even if somebody wants the task to end."""
    previous = [(n, signal.signal(n, signal.SIG_IGN)) for n in (signal.SIGTERM, signal.SIGINT)]
    try:
        yield
    finally:
        for number, handler in previous:
            signal.signal(number, handler)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Inside, SIGTERM and SIGINT raise KeyboardInterrupt, and exit codes of children can be read.

    Whoever was started in the background of a script ignores SIGINT, and so do all its children;
    a cluster that was would cancel nothing.
    """
    previous = (
        signal.signal(signal.SIGTERM, signal.default_int_handler),
        signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.signal(signal.SIGCHLD, signal.SIG_DFL),
    )
    try:
        yield
    finally:
        for number, handler in zip(
            (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD), previous, strict=True
        ):
            signal.signal(number, handler)
