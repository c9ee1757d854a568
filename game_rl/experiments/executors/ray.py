"""Jobs as tasks of a Ray cluster, whose head is watched by bare connections.

This is the only module that imports Ray, and no module imports it statically: see `make_executor`.
Ray never retries a task, since the retry would write under the claim of the first attempt. A job
that was killed, or whose node was lost, is reported as killed, and the experiment starts it again.

Calls of Ray's own wait for a head that is lost until it comes back.
"""

import atexit
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import ray
from ray import exceptions
from ray._private import worker as ray_worker
from ray.job_config import JobConfig
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from game_rl.config.experiments.executor_config import RayExecutorConfig
from game_rl.errors import ExperimentError, Interrupted, UsageError
from game_rl.experiments.executors.attempt import private_folder, run_attempt
from game_rl.experiments.executors.executor import CompletedJob, Demand, Job
from game_rl.experiments.executors.node_checks import Needs, NodeFacts, introduce, warnings_of
from game_rl.experiments.executors.staging import Staging, shared_files, shared_storage
from game_rl.system.processes import (
    KILLED,
    SHORT_PLACE,
    changed_environment,
    is_own_file,
    python_variables,
)
from game_rl.system.reaper import reaping
from game_rl.system.units import format_bytes

_STORE_BYTES = 80 * 2**20  # Ray refuses less than 75 MiB; results of tasks are far smaller
_ANSWER_TIMEOUT_S = 120.0
_CONNECT_TIMEOUT_S = 10.0
_END_TIMEOUT_S = 20.0
# Ray ends a driver whose head is lost after a minute, without a word of ours; `Head` is faster
_DRIVER_SETTINGS = {"RAY_gcs_rpc_server_reconnect_timeout_s": "86400"}


class Head:
    """The head of a cluster at HOST:PORT.

    Attributes:
        is_lost: whether it was silent for too long, after which it is not asked any more.
    """

    def __init__(self, address: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._address = address
        self._clock = clock
        self._asked_s = self._answered_s = clock()
        self.is_lost = False

    def check(self) -> None:
        """Raise ExperimentError if the head is lost; ask it at most every five seconds."""
        now_s = self._clock()
        if not self.is_lost and now_s >= self._asked_s + _ASKED_EVERY_S:
            self._asked_s = now_s
            with suppress(OSError):
                connect(self._address, _HEAD_ANSWER_TIMEOUT_S)
                self._answered_s = now_s
            self.is_lost = now_s > self._answered_s + _LONGEST_SILENCE_S
        if self.is_lost:
            raise ExperimentError(
                f"the head of the cluster at {self._address} has not answered for "
                f"{_LONGEST_SILENCE_S:g} s, so the cluster is lost; what was saved can be "
                "continued with --resume, on this cluster once Ray is started again, or with "
                "another executor"
            )


class RayExecutor:
    """Runs jobs as tasks that request a member's resources; Ray chooses the node.

    Args:
        slots: number of tasks at once. Ray queues those that the cluster has no room for.
        resources: resources of each task, under Ray's names.
        staging: how jobs reach their nodes, and how their results reach us.
        head: head of the cluster.
    """

    def __init__(
        self, slots: int, *, resources: dict[str, float], staging: Staging, head: Head
    ) -> None:
        self.slots = slots
        self._staging = staging
        self._head = head
        self._is_cut_off = False
        self._options = {"max_retries": 0, **resources}
        self._run_attempt = ray.remote(run_attempt)
        self._running: dict[Any, Job] = {}

    def start(self, job: Job) -> None:
        assert len(self._running) < self.slots
        remote_job = self._staging.stage_in(job)
        task = self._run_attempt.options(name=job.name, **self._options).remote(remote_job)
        self._running[task] = job

    def wait(self, timeout_s: float) -> Sequence[CompletedJob]:
        """Wait as `Executor.wait` does.

        Raises:
            ExperimentError: the head, or Ray on this machine, is lost, so that no job can be
                started any more; later calls raise it again.
        """
        self._head.check()
        if self._is_cut_off:
            raise ExperimentError(_CUT_OFF)
        if not self._running:
            time.sleep(timeout_s)
            return []
        ray.wait(list(self._running), num_returns=1, timeout=timeout_s)
        ready, _ = ray.wait(list(self._running), num_returns=len(self._running), timeout=0)
        ended = [self._ended(task) for task in ready]
        for one in ended:
            self._staging.stage_out(one.job)
        return ended

    def _ended(self, task: Any) -> CompletedJob:  # noqa: ANN401 - Ray's reference
        job = self._running.pop(task)
        try:
            ended: CompletedJob = ray.get(task)
        except exceptions.TaskCancelledError:  # before its process began
            return CompletedJob(job, -signal.SIGTERM, "the cluster")
        except exceptions.LocalRayletDiedError:
            self._is_cut_off = True
            raise ExperimentError(_CUT_OFF) from None
        except exceptions.RayTaskError as error:
            code = ExperimentError.exit_code
            text = _lines(error)[-1]
            return CompletedJob(job, code, "a node of the cluster", text)
        except exceptions.RayError as error:  # its worker or its node is lost
            cause = _lines(error)[0]
            return CompletedJob(job, KILLED, "a node of the cluster", cause=cause)
        return ended

    def ask_to_stop(self) -> None:
        for task in self._running:
            ray.cancel(task, force=False)

    def close(self) -> None:
        """Cancel all tasks, and wait until their processes, and so the members, have ended."""
        tasks = [] if self._head.is_lost else list(self._running)
        for task in tasks:
            ray.cancel(task, force=True)
        if tasks:
            ray.wait(tasks, num_returns=len(tasks), timeout=_END_TIMEOUT_S)
        self._running.clear()


_CUT_OFF = (
    "Ray has died on this machine, so no member can be started any more; continue what was saved "
    "with --resume (if you started the cluster yourself, first start Ray here again)"
)


@contextmanager
def ray_executor(config: RayExecutorConfig, demand: Demand) -> Iterator[RayExecutor]:
    """Make an executor on the configured cluster; everything that was started ends with it.

    Raises:
        UsageError: there is no such cluster, or we may not join it.
        ExperimentError: its nodes cannot run members.
        StorageError: the configured storage cannot be used.
    """
    resources = {"num_cpus": demand.cpus, "memory": demand.ram_bytes, "num_gpus": demand.gpus}
    slots = demand.slots
    if config.parallel == "auto" and not config.starts_cluster:
        slots = demand.members
    files = (
        shared_files(demand) if config.storage is None else shared_storage(config.storage, demand)
    )
    with files as staging, _cluster(config, demand) as head:
        _check_nodes(staging.needs, demand)
        executor = RayExecutor(slots, resources=resources, staging=staging, head=head)
        try:
            yield executor
        finally:
            executor.close()


# ---------------------------------------------------------------------- clusters


@contextmanager
def _cluster(config: RayExecutorConfig, demand: Demand) -> Iterator[Head]:
    cluster = _own_cluster(demand) if config.starts_cluster else _joined_cluster(config.address)
    with changed_environment(_DRIVER_SETTINGS), cluster:
        head = Head(ray.get_runtime_context().gcs_address)
        try:
            yield head
        finally:
            if head.is_lost:
                atexit.register(_leave)
            else:
                ray.shutdown()


def _leave() -> None:
    """End the process before Ray's own handlers, which would wait for the head, can run."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ExperimentError.exit_code)


@contextmanager
def _own_cluster(demand: Demand) -> Iterator[None]:
    """Start a private cluster on this machine.

    It is not registered where `auto` looks, and it requires a token that only this process has (see
    `make_executor`).
    """
    settings = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",
        "RAY_memory_monitor_refresh_ms": "0",  # the preflight planned the memory
        "RAY_kill_worker_timeout_milliseconds": f"{1000 * demand.patience_s:.0f}",
    }
    with private_folder() as folder, reaping(folder), changed_environment(settings):
        _connect(
            address="local",
            num_cpus=demand.slots * demand.cpus,
            _memory=demand.slots * demand.ram_bytes,
            object_store_memory=_STORE_BYTES,
            include_dashboard=False,
            _temp_dir=str(folder),
        )
        yield


@contextmanager
def _joined_cluster(address: str) -> Iterator[None]:
    """Join a cluster; raise UsageError if there is none, or if `auto` finds another user's."""
    if address == "auto":
        _refuse_strangers()
    else:
        try:
            connect(address, _CONNECT_TIMEOUT_S)
        except OSError as error:
            raise UsageError(
                f"executor.address: nothing answers at {address} ({error}); name the head of the "
                "cluster, as `ray start --head` shows it, with --set executor.address=..."
            ) from None
    _connect(address=address)
    yield


def _refuse_strangers() -> None:
    """Raise UsageError if the cluster that Ray would join belongs to another user.

    Ray joins the cluster that was started last on this machine, which it notes in a file that
    belongs to the user who started it.
    """
    if "RAY_ADDRESS" in os.environ:
        return
    places = (os.environ.get(name) for name in ("RAY_TMPDIR", "TMPDIR"))
    noted = Path(next(filter(None, places), SHORT_PLACE)) / "ray" / "ray_current_cluster"
    with suppress(FileNotFoundError):
        if not is_own_file(noted):
            raise UsageError(
                "executor.address: auto finds a Ray cluster of another user on this machine; name "
                "yours as HOST:PORT, or use local"
            )


class _SafePath(JobConfig):  # type: ignore[misc] # Ray ships no types
    """Keeps the driver's current folder out of the path of its workers, where it would be first."""

    def __init__(self) -> None:
        checkout = python_variables({}).get("PYTHONPATH")
        super().__init__(_py_driver_sys_path=[checkout] if checkout else None)

    def _runtime_env_has_working_dir(self) -> bool:
        return True  # with one of its own, a worker gets no folder of the driver's


def _connect(**options: Any) -> None:  # noqa: ANN401 - Ray's own
    """Become the driver of a cluster, and keep the command's signal handlers."""
    # Ray would print news of its nodes to standard output, which `--log json` needs for events
    ray_worker._worker_logs_enabled = False
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        ray.init(
            job_config=_SafePath(),
            log_to_driver=False,
            configure_logging=False,
            logging_level="ERROR",
            **options,
        )
    except SystemExit:  # raised if SIGTERM arrives during `ray.init`
        ray.shutdown()
        raise Interrupted("stopped by SIGTERM", exit_code=128 + signal.SIGTERM) from None
    except (ConnectionError, RuntimeError, ValueError, OSError, exceptions.RayError) as error:
        ray.shutdown()
        raise UsageError(
            f"executor.address: {options['address']} is not a Ray cluster that has this machine "
            f"as a node: {_lines(error)[-1]}"
        ) from None
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


# ---------------------------------------------------------------------- nodes


def _check_nodes(needs: Needs, demand: Demand) -> None:
    """Raise ExperimentError if no node has room for a member, or if one with room is unfit."""
    alive = [node for node in ray.nodes() if node["Alive"]]
    asked = {"CPU": demand.cpus, "memory": demand.ram_bytes, "GPU": demand.gpus}
    able = [
        node["NodeID"]
        for node in alive
        if all(node["Resources"].get(name, 0) >= n for name, n in asked.items())
    ]
    if not able:
        raise ExperimentError(_no_room(alive, demand))
    facts = _introduced(able, needs)
    for node in facts:
        if node.problem is not None:
            raise ExperimentError(f"node {node.host} cannot train members: {node.problem}")
    for warning in warnings_of(facts):
        demand.warn(warning)


def _no_room(nodes: Sequence[dict[str, Any]], demand: Demand) -> str:
    gpus = f", {demand.gpus:g} GPUs" if demand.gpus else ""
    there = "; ".join(
        f"{node['NodeManagerHostname']} has {node['Resources'].get('CPU', 0):g} CPUs, "
        f"{format_bytes(int(node['Resources'].get('memory', 0)))}, "
        f"{node['Resources'].get('GPU', 0):g} GPUs"
        for node in nodes
    )
    return (
        f"no node of the cluster has room for a member, which needs {demand.cpus} CPUs, "
        f"{format_bytes(demand.ram_bytes)}{gpus}: {there or 'there is none'}; add a larger node, "
        "or make the member smaller"
    )


def _introduced(nodes: Sequence[str], needs: Needs) -> list[NodeFacts]:
    """Return the facts of each node; raise ExperimentError if an answer did not arrive."""
    ask = ray.remote(introduce)
    asked = [
        ask.options(
            num_cpus=0, max_retries=3, scheduling_strategy=NodeAffinitySchedulingStrategy(n, False)
        ).remote(needs, n)
        for n in nodes
    ]
    try:
        facts: list[NodeFacts] = ray.get(asked, timeout=_ANSWER_TIMEOUT_S)
    except exceptions.GetTimeoutError:
        raise ExperimentError(
            f"not all nodes of the cluster have answered within {_ANSWER_TIMEOUT_S:g} s; "
            "look at `ray status`, and try again"
        ) from None
    except exceptions.RayError as error:
        raise ExperimentError(
            f"a node of the cluster cannot train members: {_lines(error)[-1]}; install game_rl "
            "there, in the environment that Ray runs in"
        ) from None
    for node, name in zip(facts, nodes, strict=True):
        lost = needs.lost_answer(name) if node.problem is None else None
        if lost is not None:
            raise ExperimentError(f"what node {node.host} {lost}")
    return facts


def _lines(error: BaseException) -> list[str]:
    return str(error).strip().splitlines() or [type(error).__name__]


_ASKED_EVERY_S = 5.0
_HEAD_ANSWER_TIMEOUT_S = 2.0
_LONGEST_SILENCE_S = 30.0


def connect(address: str, timeout_s: float) -> None:
    """Connect to HOST:PORT once; raise OSError if nothing answers there."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
    except OverflowError as error:  # of the port's number
        raise OSError(str(error)) from None
