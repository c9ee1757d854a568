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
    """Memory of the network's GPU, which peaks in a gradient step; None if it is on the CPU.

    A replay is there too if the config says so. The minibatch travels packed and is unpacked on
    the GPU. Not measured: tensors are counted as on the CPU, and what CUDA adds is a guess
    (`calibration`).
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
    """Memory of the replay's GPU if the network is not on the same; None if it is, or in RAM."""
    gpu = replay_gpu(config)
    if gpu is None or gpu == network_gpu(config, facts):
        return None
    parts = (
        Part("CUDA context", calibration.CUDA_CONTEXT_BYTES),
        storage(config, facts),
        Part("packed minibatch", packed_minibatch_bytes(config, facts)),
    )
    return GpuFootprint(phases=(Phase("update", parts),), gpu=gpu)
