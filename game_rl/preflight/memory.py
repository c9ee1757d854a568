"""RAM and VRAM of a run by phase."""

from collections.abc import Iterable

from game_rl.buffers.layout import rollout_buffer_layout, total_bytes
from game_rl.config.schema import RunConfig
from game_rl.emulator.watched_emulator import picture_frames
from game_rl.envs.frames import FrameFormat, frame_shape
from game_rl.preflight import calibration
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.footprint import MemoryFootprint, Part, Phase
from game_rl.preflight.network import NatureCnn


def network_of(config: RunConfig, facts: RunFacts) -> NatureCnn:
    observation = config.env.observation
    channels, height, width = frame_shape(
        size=observation.size, colour=observation.colour, crop=facts.crop
    )
    return NatureCnn(
        channels=channels * config.env.frame_stack,
        height=height,
        width=width,
        n_actions=facts.n_actions,
    )


def rollout_buffer_bytes(config: RunConfig, facts: RunFacts) -> int:
    observation = config.env.observation
    frame_format = FrameFormat(
        size=observation.size,
        colour=observation.colour,
        four_shades=facts.four_shades,
        crop=facts.crop,
    )
    return total_bytes(
        rollout_buffer_layout(
            n_steps=config.algorithm.n_steps,
            n_envs=config.env.n_envs,
            frame_bytes=frame_format.packing.nbytes,
            frame_stack=config.env.frame_stack,
        )
    )


def ram_footprint(config: RunConfig, facts: RunFacts) -> MemoryFootprint:
    """Summed proportional set size of all processes of a run.

    collect: the rollout buffer fills, a page at a time.
    first minibatch: SB3 reorders the buffer's observations into a copy, unless there is one env.
    update: a gradient step, on the CPU; the minibatch alone if the network is on a GPU.
    recording: pictures of the clip when the training is closed.

    Small blocks that were freed stay with the process (`calibration`), large ones do not.
    """
    rollout = Part("rollout buffer", rollout_buffer_bytes(config, facts))
    always = _processes(config, facts)
    training = (*always, *_network_on_cpu(config, facts), rollout)
    reorder = _reorder_blocks(config, facts)
    step = _step_blocks(config, facts)
    kept = Part(
        "kept by the allocator",
        _small_peak([reorder, *step.values()]) + _heap_holes(config, facts),
    )
    left = Part("left by the training", _small([*_weight_blocks(config, facts), rollout.bytes]))
    return MemoryFootprint(
        phases=(
            Phase("collect", (*training, _frames_in_flight(config, facts), kept)),
            Phase("first minibatch", (*training, Part("reordered copy", _large(reorder)), kept)),
            Phase("update", (*training, Part("gradient step", _large_peak(step.values())), kept)),
            Phase("recording", (*always[:2], kept, left, _recording(config, facts))),
        )
    )


def vram_footprint(config: RunConfig, facts: RunFacts) -> MemoryFootprint | None:
    """Memory of the GPU, which peaks in a gradient step; None if the network is on the CPU."""
    if not facts.uses_gpu:
        return None
    network = network_of(config, facts)
    weights = network.training_bytes
    step = network.gpu_step_bytes(config.algorithm.batch_size)
    parts = (
        Part("CUDA context", calibration.CUDA_CONTEXT_BYTES),
        Part("network and optimiser", weights),
        Part("gradient step", step),
        Part(
            "cuDNN and allocator", round((calibration.CUDA_ALLOCATOR_FACTOR - 1) * (weights + step))
        ),
    )
    return MemoryFootprint(phases=(Phase("update", parts),))


def _processes(config: RunConfig, facts: RunFacts) -> tuple[Part, ...]:
    main = calibration.MAIN_PROCESS_BYTES + calibration.FIRST_UPDATE_BYTES
    if facts.uses_gpu:
        main += calibration.CUDA_HOST_BYTES
    return (
        Part("Python, torch, SB3", main),
        Part("forkserver", calibration.FORKSERVER_BYTES),
        Part("training workers", _workers_bytes(config, facts, config.env.n_envs)),
        Part("evaluation workers", _workers_bytes(config, facts, evaluation_envs(config))),
    )


def evaluation_envs(config: RunConfig) -> int:
    """No more emulators than episodes."""
    return min(config.evaluation.n_envs, config.evaluation.episodes)


def n_workers(config: RunConfig, facts: RunFacts, n_envs: int) -> int:
    return min(config.env.n_workers or facts.cpus, n_envs)


def _workers_bytes(config: RunConfig, facts: RunFacts, n_envs: int) -> int:
    workers = n_workers(config, facts, n_envs)
    emulator = calibration.EMULATOR_BYTES + facts.rom_bytes
    return workers * calibration.WORKER_BYTES + n_envs * emulator


def _network_on_cpu(config: RunConfig, facts: RunFacts) -> tuple[Part, ...]:
    if facts.uses_gpu:
        return ()
    return (Part("network and optimiser", network_of(config, facts).training_bytes),)


def _weight_blocks(config: RunConfig, facts: RunFacts) -> list[int]:
    """Weights, gradients and two moments of the largest layer, which has nearly all of them."""
    return [] if facts.uses_gpu else [network_of(config, facts).training_bytes // 4] * 4


def _heap_holes(config: RunConfig, facts: RunFacts) -> int:
    """Room in the heap that blocks of the largest weight's size left and nothing else fills."""
    weight = 0 if facts.uses_gpu else 4 * network_of(config, facts).largest_parameter
    return round(calibration.HEAP_HOLES * weight)


def _frames_in_flight(config: RunConfig, facts: RunFacts) -> Part:
    """A vec step's stacks: the last and the next, the shifted, and two copies for the buffer."""
    return Part("frames in flight", 5 * config.env.n_envs * network_of(config, facts).observation)


def _reorder_blocks(config: RunConfig, facts: RunFacts) -> list[int]:
    """SB3 swaps axes and reshapes, a copy; with a single env or step it is a view."""
    if config.env.n_envs == 1 or config.algorithm.n_steps == 1:
        return []
    return [config.rollout_timesteps * network_of(config, facts).observation]


def _step_blocks(config: RunConfig, facts: RunFacts) -> dict[str, list[int]]:
    network = network_of(config, facts)
    batch_size = config.algorithm.batch_size
    if facts.uses_gpu:
        return {"minibatch": [network.observation * batch_size] * 3}
    return network.step_blocks(batch_size, bf16=facts.uses_bf16)


def n_pictures(config: RunConfig, facts: RunFacts) -> int:
    """Of the clip: several a timestep if the frame skip is long."""
    frame_skip = config.env.frame_skip
    timesteps = config.recording.episodes * facts.episode_timesteps
    return timesteps * (frame_skip // picture_frames(frame_skip))


def _recording(config: RunConfig, facts: RunFacts) -> Part:
    size = n_pictures(config, facts) * calibration.RECORDED_PICTURE_BYTES
    return Part("pictures of the clip", size)


def _large(blocks: Iterable[int]) -> int:
    return sum(size for size in blocks if size >= calibration.ALLOCATOR_THRESHOLD_BYTES)


def _small(blocks: Iterable[int]) -> int:
    return sum(size for size in blocks if size < calibration.ALLOCATOR_THRESHOLD_BYTES)


def _large_peak(moments: Iterable[list[int]]) -> int:
    return max(_large(blocks) for blocks in moments)


def _small_peak(moments: Iterable[list[int]]) -> int:
    """The heap stays as large as the small blocks of its worst moment."""
    return max(_small(blocks) for blocks in moments)
