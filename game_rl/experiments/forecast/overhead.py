"""Memory that an experiment takes in addition to its runs."""

from game_rl.config.experiments.executor_config import ExecutorConfig, RayExecutorConfig

CONTROLLER_BYTES = 60_000_000  # its resident size at the end of 25 generations of 16 members
# Memory that local members share, as a process that has loaded torch forks them. 2 and 4 members of
# duel_population took 869 and 1,273 MB with their controller, where the forecast of one alone was
# 525 MB. When each loaded torch itself, 2 took 930 MB.
LOADED_BYTES = 200_000_000
RAY_CONTROLLER_BYTES = 120_000_000  # the controller's size with Ray loaded
RAY_NODE_BYTES = 400_000_000  # Ray's own processes on a node that is also the head
RAY_WORKER_BYTES = 80_000_000
STORAGE_BYTES = 40_000_000  # obstore and its buffers, measured with three files of 30 MB to S3


def is_on_nodes(executor: ExecutorConfig) -> bool:
    """Whether members train on the nodes of an existing cluster instead of on this machine."""
    return isinstance(executor, RayExecutorConfig) and not executor.starts_cluster


def controller_bytes(executor: ExecutorConfig) -> int:
    """Return the memory of everything that runs once, whatever the number of members."""
    if isinstance(executor, RayExecutorConfig):
        return RAY_CONTROLLER_BYTES + RAY_NODE_BYTES + (STORAGE_BYTES if executor.storage else 0)
    return CONTROLLER_BYTES + LOADED_BYTES


def task_bytes(executor: ExecutorConfig) -> int:
    """Return the memory that each member takes in addition to a run of its own.

    It is that of Ray's worker; on the local executor it is negative, as members share what they
    have loaded.
    """
    if isinstance(executor, RayExecutorConfig):
        return RAY_WORKER_BYTES + (STORAGE_BYTES if executor.storage else 0)
    return -LOADED_BYTES
