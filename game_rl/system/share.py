"""A process that has a share of the machine's CPUs beside others."""

import os

from game_rl.system.machine import CPUS_VARIABLE

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def share_environment(cpus: int) -> dict[str, str]:
    """What tells a process that so many of the machine's CPUs are its own."""
    return {**dict.fromkeys(_THREAD_VARIABLES, str(cpus)), CPUS_VARIABLE: str(cpus)}


def take_share(cpus: int) -> None:
    """Of this process; before torch is loaded, which asks once for its threads."""
    os.environ.update(share_environment(cpus))
