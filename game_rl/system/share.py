"""A process that has a share of the machine's CPUs beside others."""

import os

from game_rl.system.machine import CPUS_VARIABLE

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def share_environment(cpus: int) -> dict[str, str]:
    """What tells a process that so many of the machine's CPUs are its own."""
    return {**dict.fromkeys(_THREAD_VARIABLES, str(cpus)), CPUS_VARIABLE: str(cpus)}


def take_share(cpus: int, n_processes: int) -> None:
    """Make this process one of so many that have all of the machine's CPUs.

    To be called before torch is loaded, which asks once for its threads.

    Args:
        cpus: that it counts as its own.
    """
    os.environ.update(share_environment(cpus))
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[-max(cpus, len(cores) // n_processes) :])
