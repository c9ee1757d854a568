"""Settings that a member cannot have if its node shares no files with the controller."""

from collections.abc import Iterator

from game_rl.config.algorithms import DQNConfig
from game_rl.config.experiments.executors import ExecutorConfig, RayExecutorConfig
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, Problem

_PLACE: Key = ("executor", "storage")
_WAY_OUT = (
    "name a folder that all nodes share as run_dir, and remove executor.storage, or train this "
    "population on one machine"
)


def storage_problems(executor: ExecutorConfig, run: RunConfig) -> Iterator[Problem]:
    """Yield settings of a member's config that need other folders of this machine, or an upload."""
    if not isinstance(executor, RayExecutorConfig) or executor.storage is None:
        return
    algorithm = run.algorithm
    if isinstance(algorithm, DQNConfig) and algorithm.teacher is not None:
        yield _refused("algorithm.teacher", f"the run {algorithm.teacher.run}")
    if isinstance(algorithm, DQNConfig) and algorithm.learn_from is not None:
        yield _refused("algorithm.learn_from", "Lakes of other runs")
    if run.lake is not None and run.lake.path is not None:
        yield _refused("lake.path", f"{run.lake.path}, which members share")
    if run.upload is not None:
        yield Problem(
            _PLACE,
            "the files of members that train on their nodes' own disks come to run_dir, and are "
            "not uploaded from the nodes as well: remove member.upload; a population's own "
            "`upload` sends all of run_dir",
            (("member", "upload"),),
        )


def _refused(key: str, what: str) -> Problem:
    message = f"member.{key} names {what}, but members reach only storage; {_WAY_OUT}"
    return Problem(_PLACE, message, (("member", *key.split(".")),))
