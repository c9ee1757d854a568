"""Which GPU a run puts its network and its replay on, by torch's numbers."""

from game_rl.config.algorithms import DQNConfig
from game_rl.config.schema import RunConfig
from game_rl.preflight.facts import RunFacts


def network_gpu(config: RunConfig, facts: RunFacts) -> int | None:
    """The number of the GPU that the network is on; None: it is on the CPU."""
    return _gpu_number(config.device) if facts.uses_gpu else None


def replay_gpu(config: RunConfig) -> int | None:
    """The number of the GPU that the replay is on; None: it is in RAM, or there is none.

    Frames are by far the most of it, and all of it counts as where they are.
    """
    algorithm = config.algorithm
    if not isinstance(algorithm, DQNConfig) or algorithm.replay.device == "cpu":
        return None
    return _gpu_number(algorithm.replay.device)


def _gpu_number(device: str) -> int:
    """As torch reads it: the first one if it has no number."""
    return int(device.partition(":")[2] or 0)
