"""Resolution of `auto` in the section `algorithm`, once, when a run begins.

The run's directory and its checkpoints store the resolved values. A resumed run therefore rounds
as before, even on a processor with other caches.
"""

from typing import Any

from game_rl.algorithms.micro_batches import timesteps_together
from game_rl.algorithms.network_size import NatureCnn
from game_rl.algorithms.networks import this_hardware
from game_rl.config.algorithms import PPOConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.make_env import make_frame_format
from game_rl.games.definition import Game
from game_rl.system.placement import Hardware, find_placement

Shape = tuple[int, ...]


def resolved(config: RunConfig, game: Game) -> RunConfig:
    """Return the config with each `auto` in the section `algorithm` resolved for this machine.

    Raises:
        ConfigError: the game's pictures cannot have the format that the config asks for.
    """
    channels, height, width = make_frame_format(config.env.observation, game).shape
    stack = (config.env.frame_stack * channels, height, width)
    return resolved_on(config, stack, this_hardware())


def resolved_on(config: RunConfig, stack: Shape, hardware: Hardware) -> RunConfig:
    """Resolve as `resolved` does, from the arguments alone; idempotent.

    Args:
        config: its `device` stays as it is, because a run may be resumed on another device.
        stack: shape of an observation, [frame_stack * C, H, W].
        hardware: of the machine on which the run begins.
    """
    algorithm = config.algorithm
    placement = find_placement(
        device=config.device, precision=algorithm.precision, hardware=hardware
    )
    update: dict[str, Any] = {"precision": placement.precision}
    if isinstance(algorithm, PPOConfig) and algorithm.micro_batch_size == "auto":
        update["micro_batch_size"] = timesteps_together(
            algorithm,
            _network(stack),
            bf16=placement.precision == "bf16",
            on_gpu=placement.is_on_gpu,
            cpus=hardware.cpus,
            cache_bytes=hardware.cache_bytes,
        )
    return config.model_copy(update={"algorithm": algorithm.model_copy(update=update)})


def _network(stack: Shape) -> NatureCnn:
    channels, height, width = stack
    return NatureCnn(channels=channels, height=height, width=width, n_actions=1)
