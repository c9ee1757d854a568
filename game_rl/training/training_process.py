"""Settings of the process in which a training runs."""

from collections.abc import Iterator
from contextlib import contextmanager

from game_rl.checkpoints.tensorboard_log import quiet_log_thread
from game_rl.system.machine import effective_cpus
from game_rl.system.threads import torch_threads


@contextmanager
def training_process() -> Iterator[None]:
    """Set torch's number of threads and quiet TensorBoard's thread; restore both afterwards.

    The number of threads is set this early because the initial weights depend on it, too.
    """
    with torch_threads(effective_cpus()), quiet_log_thread():
        yield
