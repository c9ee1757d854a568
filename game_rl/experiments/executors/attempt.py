"""One attempt at a job on a node."""

import os
import platform
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from game_rl.errors import GameRLError, UsageError
from game_rl.experiments.executors.executor import CompletedJob, Job, JobProcess
from game_rl.experiments.executors.staging import GivenUpError, NodeStaging, RemoteJob, StagedJob
from game_rl.system.processes import (
    KILLED,
    SHORT_PLACE,
    handled_signals,
    known_signals,
    treat_as_own,
)

_LONG_S = 3600.0
_LOOK_EVERY_S = 1.0  # for a new checkpoint
_CLUSTER_PREFIX = "RAY_"
_GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"


def run_attempt(remote_job: RemoteJob) -> CompletedJob:
    """Run the job's process to its end, in the main thread.

    A KeyboardInterrupt, which a cluster raises here to cancel a task, or a SIGTERM makes the job
    save and end. When this process ends for any reason, the job ends at once with it.
    """
    # SIGTERM and SIGINT raise KeyboardInterrupt. A process that a script started in the background
    # ignores SIGINT, as do all its children: a cluster started that way could not cancel a task.
    # With SIGCHLD as usual, children's exit codes can be read.
    stop = signal.default_int_handler
    handlers = {signal.SIGTERM: stop, signal.SIGINT: stop}
    with handled_signals(handlers | dict.fromkeys(known_signals("SIGCHLD"), signal.SIG_DFL)):
        problem = remote_job.needs.problem()
        if problem is not None:
            return _ended(remote_job, UsageError.exit_code, problem)
        if remote_job.staged is not None:
            return _on_own_disk(remote_job, remote_job.staged)
        assert remote_job.folder is not None
        return _carried_out(remote_job, remote_job.job, remote_job.folder)


def _ended(remote_job: RemoteJob, code: int, text: str) -> CompletedJob:
    return CompletedJob(remote_job.job, code, platform.node(), text)


def _on_own_disk(remote_job: RemoteJob, staged: StagedJob) -> CompletedJob:
    """Run the job in a folder of this node, which is deleted afterwards."""
    try:
        with private_folder(Path(tempfile.gettempdir())) as scratch:
            staging = NodeStaging(staged, scratch / "files")
            staging.fetch()
            ended = _carried_out(remote_job, staged.job, scratch / "files", staging.save)
            # saved work is delivered even if the task is cancelled
            with handled_signals(dict.fromkeys((signal.SIGTERM, signal.SIGINT), signal.SIG_IGN)):
                staging.deliver(ended.code)
            return ended
    except GivenUpError as error:
        return _ended(remote_job, KILLED, str(error))
    except GameRLError as error:
        return _ended(remote_job, error.exit_code, str(error))


def _carried_out(
    remote_job: RemoteJob, job: Job, folder: Path, meanwhile: Callable[[], None] | None = None
) -> CompletedJob:
    # without the cluster's own variables
    environment = {k: v for k, v in os.environ.items() if not k.startswith(_CLUSTER_PREFIX)}
    if not remote_job.has_gpu:
        environment[_GPUS_VARIABLE] = ""
    process = JobProcess(job, folder=folder, environment=environment)
    try:
        treat_as_own(process.pid, remote_job.niceness)
        while process.wait(_LONG_S if meanwhile is None else _LOOK_EVERY_S) is None:
            if meanwhile is not None:
                meanwhile()
    except KeyboardInterrupt:
        process.ask_to_stop()
        process.wait(remote_job.patience_s)
    finally:
        code = process.kill()  # if it has ended, this only returns the code
    return _ended(remote_job, code, process.tail())


_PREFIX = "game_rl-"


@contextmanager
def private_folder(place: Path = SHORT_PLACE) -> Iterator[Path]:
    """Make a folder that only this user can read, and delete it at the end; it may hold sockets.

    Folders that killed processes left in `place` are deleted first.
    """
    for left in place.glob(f"{_PREFIX}*/lock"):
        with suppress(OSError, Timeout), FileLock(left, timeout=0):
            shutil.rmtree(left.parent, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    try:
        with FileLock(folder / "lock"):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
