"""Resolution of `auto` in the section `algorithm`, once, when a run begins.

The run's directory and its checkpoints store the resolved values. A resumed run therefore rounds
as before, even on a processor with other caches.
"""

from typing import Any

import torch

from game_rl.algorithms.sizes import NetworkSize, timesteps_together
from game_rl.config.schema import RunConfig
from game_rl.envs.make_env import make_observation_format
from game_rl.envs.observation import ObservationFormat
from game_rl.errors import ConfigError
from game_rl.games.definition import Game
from game_rl.system.machine import cache_bytes_per_cpu, cpu_has_bf16, effective_cpus
from game_rl.system.placement import Hardware, Placement, find_placement, is_gpu_missing


def resolve_auto(config: RunConfig, game: Game) -> RunConfig:
    """Return the config with each `auto` in the section `algorithm` resolved for this machine.

    Raises:
        ConfigError: the game's pictures cannot have the format that the config asks for.
    """
    return resolved_on(config, make_observation_format(config.env, game), this_hardware())


def resolved_on(
    config: RunConfig, observation_format: ObservationFormat, hardware: Hardware
) -> RunConfig:
    """Resolve as `resolve_auto` does, from the arguments alone; idempotent.

    Args:
        config: its `device` stays as it is, because a run may be resumed on another device.
        observation_format: decides the size of the network.
        hardware: of the machine on which the run begins.
    """
    algorithm = config.algorithm
    placement = find_placement(
        device=config.device, precision=algorithm.precision, hardware=hardware
    )
    update: dict[str, Any] = {"precision": placement.precision}
    if algorithm.micro_batch_size == "auto":
        update["micro_batch_size"] = timesteps_together(
            algorithm,
            NetworkSize.of(observation_format, algorithm, n_actions=1),  # any number will do
            bf16=placement.precision == "bf16",
            on_gpu=placement.is_on_gpu,
            cpus=hardware.cpus,
            cache_bytes=hardware.cache_bytes,
        )
    return config.model_copy(update={"algorithm": algorithm.model_copy(update=update)})


def placement_of(config: RunConfig) -> Placement:
    """Return the device and the number format in which this process computes the network.

    Raises:
        ConfigError: `device` names a GPU that does not exist.
    """
    find_device(config.device)
    return find_placement(
        device=config.device, precision=config.algorithm.precision, hardware=this_hardware()
    )


def find_device(name: str) -> str:
    """Return the device that `name` stands for in this process.

    Raises:
        ConfigError: it is a GPU that does not exist.
    """
    n_gpus = torch.cuda.device_count()
    if is_gpu_missing(name, n_gpus=n_gpus):
        raise ConfigError(
            f"device is {name}, but PyTorch sees {n_gpus} CUDA device(s); "
            "use device: auto, or install a CUDA build of torch"
        )
    return find_placement(device=name, precision="float32", hardware=this_hardware()).device


def this_hardware() -> Hardware:
    """Return the hardware of this machine that torch can use."""
    return Hardware(
        has_gpu=torch.cuda.device_count() > 0,
        cpu_has_bf16=cpu_has_bf16(),
        cpus=effective_cpus(),
        cache_bytes=cache_bytes_per_cpu(),
    )
