"""The executor that an experiment's config asks for."""

import os
import sys
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import cast

from game_rl.config.experiments.executor_config import (
    ExecutorConfig,
    LocalExecutorConfig,
    RayExecutorConfig,
)
from game_rl.errors import UsageError
from game_rl.experiments.executors.executor import Demand, Executor
from game_rl.experiments.executors.local import LocalExecutor
from game_rl.system.extras import check_extra, load_with_extra


def make_executor(config: ExecutorConfig, demand: Demand) -> AbstractContextManager[Executor]:
    """Make the executor; raise UsageError if a package that it needs is not installed."""
    if isinstance(config, LocalExecutorConfig):
        return LocalExecutor(demand.slots)
    return _ray_executor(config)(config, demand)


def check_installed(config: ExecutorConfig) -> None:
    """Raise UsageError as `make_executor` would, before anything is written."""
    if isinstance(config, RayExecutorConfig):
        _ray_executor(config)


_Make = Callable[[RayExecutorConfig, Demand], AbstractContextManager[Executor]]


def _ray_executor(config: RayExecutorConfig) -> _Make:
    if not hasattr(os, "fork"):  # as on Windows: nothing there ends all processes of a cluster
        raise UsageError(
            "executor.kind: ray does not work on this system, which cannot fork processes; set "
            "executor.kind to local"
        )
    if config.starts_cluster and "ray" not in sys.modules:
        # Ray reads these once, at import; without them it writes a token to the user's home folder
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=uuid.uuid4().hex)
    needed_by = "executor.kind: ray"
    way_out = "set executor.kind to local"
    check_extra("ray", needed_by, way_out=way_out)
    # imported by name: local members must neither need Ray nor wait for its import
    module = load_with_extra(
        "game_rl.experiments.executors.ray", "obstore", needed_by, way_out=way_out
    )
    return cast("_Make", module.ray_executor)
