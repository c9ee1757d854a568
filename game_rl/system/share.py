"""Limit a process to a share of the machine's CPUs."""

import os

from game_rl.system.machine import CPUS_VARIABLE

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def share_environment(cpus: int) -> dict[str, str]:
    """Return the environment of a process that may use `cpus` of the machine's CPUs."""
    return {**dict.fromkeys(_THREAD_VARIABLES, str(cpus)), CPUS_VARIABLE: str(cpus)}


def take_share(cpus: int) -> None:
    """Limit this process to `cpus` CPUs.

    Call it before torch is loaded, which reads the number of threads once.
    """
    os.environ.update(share_environment(cpus))
