"""The GPUs, by torch's numbers, on which a run has its network and its replay."""

from game_rl.config.algorithms import DQNConfig
from game_rl.config.schema import RunConfig
from game_rl.preflight.facts import RunFacts


def network_gpu(config: RunConfig, facts: RunFacts) -> int | None:
    """Return the number of the network's GPU; None if the network is on the CPU."""
    return _gpu_number(config.device) if facts.uses_gpu else None


def replay_gpu(config: RunConfig) -> int | None:
    """Return the number of the replay's GPU; None if the replay is in RAM or there is none.

    Frames are by far the largest part of a replay, so all of it counts as being where they are.
    """
    algorithm = config.algorithm
    if not isinstance(algorithm, DQNConfig) or algorithm.replay.device == "cpu":
        return None
    return _gpu_number(algorithm.replay.device)


def _gpu_number(device: str) -> int:
    """Return the number in `device`, or 0 if it has none, as torch reads it."""
    return int(device.partition(":")[2] or 0)
