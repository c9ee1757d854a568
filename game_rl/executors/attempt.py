"""One attempt at a job on a node of a cluster; nothing here knows which cluster it is."""

import os
import platform
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from game_rl.errors import UsageError
from game_rl.executors.executor import Job
from game_rl.executors.job_process import JobProcess
from game_rl.executors.node import NodeNeeds

_LONG_S = 3600.0
_CLUSTER_PREFIX = "RAY_"
_GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Order:
    """A job on its way to a node.

    Attributes:
        needs: what the node must have.
        niceness: of the controller, and so of the job, whatever the cluster's own is.
        has_gpu: the cluster gives it one; without, it sees none.
        patience_s: how long it may take to save and end when it is asked to.
    """

    job: Job
    needs: NodeNeeds
    niceness: int
    has_gpu: bool
    patience_s: float


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
        folder, environment = order.needs.folder, _environment(order)
        process = JobProcess(order.job, folder=folder, environment=environment)
        try:
            _treat_as_own(process.pid, order.niceness)
            while process.wait(_LONG_S) is None:
                pass
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
