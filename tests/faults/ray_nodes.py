"""A Ray cluster of several nodes on this machine, which can lose a node as in a power cut."""

import os
import random
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

_STORE_BYTES = 80 * 2**20
_TASK = "ray::"
_SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
# With these, a lost node is noticed in seconds instead of half a minute.
_SYSTEM = {
    "health_check_initial_delay_ms": 1_000,
    "health_check_period_ms": 1_000,
    "health_check_timeout_ms": 2_000,
    "health_check_failure_threshold": 4,
}


class RayNodes:
    """A cluster with a head that runs no members, and nodes that do; a context manager."""

    def __init__(self, nodes: int = 2, *, cpus: int = 1, seed: int = 0) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="grt", dir="/tmp"))  # short, for sockets
        (self._folder / "ray").mkdir()
        settings = _SETTINGS | {"RAY_TMPDIR": str(self._folder)}
        self._before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)
        self._random = random.Random(seed)
        self._cpus = cpus
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": _SYSTEM}
        head["object_store_memory"] = _STORE_BYTES
        from ray.cluster_utils import Cluster  # after the environment is set

        self._cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        self._nodes = [self._new() for _ in range(nodes)]

    @property
    def folder(self) -> Path:
        """Folder of Ray's own files."""
        return self._folder

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def lose_node(self) -> None:
        """Kill all of Ray's processes on a random node, and add a new node."""
        lost = self._nodes.pop(self._random.randrange(len(self._nodes)))
        self._cluster.remove_node(lost, allow_graceful=False)
        self._nodes.append(self._new())

    def tasks(self) -> list[psutil.Process]:
        """Return Ray's processes that are running members now."""
        found = []
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                name = "".join(process.cmdline()[:1])
                if name.startswith(_TASK) and "member" in name:
                    found.append(process)
        return found

    def members(self) -> list[psutil.Process]:
        """Return our processes on the nodes, and their children."""
        found = []
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                words = process.cmdline()
                if "game_rl.experiments.jobs" in words:
                    found += [process, *process.children(recursive=True)]
        return found

    def close(self) -> None:
        self._cluster.shutdown()
        for name, value in self._before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _new(self) -> Any:
        return self._cluster.add_node(num_cpus=self._cpus, object_store_memory=_STORE_BYTES)
