"""What a process that trains sets for itself, and gives back."""

from collections.abc import Iterator
from contextlib import contextmanager

from game_rl.checkpoints.log import quiet_log_thread
from game_rl.system.machine import effective_cpus
from game_rl.system.threads import torch_threads


@contextmanager
def training_process() -> Iterator[None]:
    """Torch's threads, as the first weights depend on them too, and how its log's thread fails."""
    with torch_threads(effective_cpus()), quiet_log_thread():
        yield
