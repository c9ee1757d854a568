"""Memory of the GPUs that a run uses."""

from game_rl.config.schema import RunConfig
from game_rl.preflight import calibration
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.footprint import GpuFootprint, Part, Phase
from game_rl.preflight.gpus import network_gpu, replay_gpu
from game_rl.preflight.memory import (
    gradient_step_bytes,
    network_of,
    packed_minibatch_bytes,
    storage,
    teacher_network,
)


def vram_footprint(config: RunConfig, facts: RunFacts) -> GpuFootprint | None:
    """Return the memory of the network's GPU; None if the network is on the CPU.

    It peaks in a gradient step. It includes the replay if the config puts it on the same GPU. The
    minibatch is transferred packed and unpacked on the GPU. None of this was measured: tensors are
    counted as on the CPU, and what CUDA adds is a guess (`calibration`).
    """
    gpu = network_gpu(config, facts)
    if gpu is None:
        return None
    weights = network_of(config, facts).training_bytes
    step = gradient_step_bytes(config, facts)
    parts = (
        Part("CUDA context", calibration.CUDA_CONTEXT_BYTES),
        Part("network and optimiser", weights),
        *teacher_network(config, facts),
        *([storage(config, facts)] if replay_gpu(config) == gpu else []),
        Part("gradient step", step),
        Part(
            "cuDNN and allocator", round((calibration.CUDA_ALLOCATOR_FACTOR - 1) * (weights + step))
        ),
    )
    return GpuFootprint(phases=(Phase("update", parts),), gpu=gpu)


def replay_vram_footprint(config: RunConfig, facts: RunFacts) -> GpuFootprint | None:
    """Return the memory of the replay's GPU.

    None if the replay is in RAM, on the network's GPU, or does not exist.
    """
    gpu = replay_gpu(config)
    if gpu is None or gpu == network_gpu(config, facts):
        return None
    parts = (
        Part("CUDA context", calibration.CUDA_CONTEXT_BYTES),
        storage(config, facts),
        Part("packed minibatch", packed_minibatch_bytes(config, facts)),
    )
    return GpuFootprint(phases=(Phase("update", parts),), gpu=gpu)
