"""RAM and GPU memory of a run by phase, with that of a gradient step."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from game_rl.algorithms.encoder_sizes import FLOAT_BYTES
from game_rl.algorithms.sizes import NetworkSize, n_minibatch_parts, timesteps_together
from game_rl.buffers.layout import (
    REPLAY_LAYOUTS,
    memory_layout,
    rollout_buffer_layout,
    total_bytes,
)
from game_rl.config.schema import RunConfig
from game_rl.envs.observation import SCREEN
from game_rl.features.feature import Part, PlannedRun
from game_rl.features.feature_table import FEATURES
from game_rl.preflight import calibration
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.workload import training_arithmetic
from game_rl.system.placement import Bf16Way
from game_rl.vec_env.worker import USUAL_START_METHOD
from game_rl.vec_env.worker_protocol import shared_bytes
from game_rl.vec_env.workers import evaluation_workers, training_workers

_IS_FORKED = USUAL_START_METHOD == "forkserver"
CUDA_CONTEXT = "CUDA context"


@dataclass(frozen=True)
class Phase:
    """A phase of the run, with everything that is in memory at its worst moment."""

    name: str
    parts: tuple[Part, ...]

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)


@dataclass(frozen=True)
class MemoryFootprint:
    """Memory of one kind (RAM, or that of one GPU) over the phases of a run."""

    phases: tuple[Phase, ...]

    @property
    def peak(self) -> Phase:
        return max(self.phases, key=lambda phase: phase.bytes)


@dataclass(frozen=True)
class GpuFootprint(MemoryFootprint):
    """Memory of one GPU; `gpu` is torch's number of it."""

    gpu: int

    @property
    def reserved_bytes(self) -> int:
        """What torch's caching allocator reserves at the peak: all but CUDA's context."""
        parts = self.peak.parts
        return sum(part.bytes for part in parts if part.name != CUDA_CONTEXT)


def network_of(config: RunConfig, facts: RunFacts) -> NetworkSize:
    observation_format = facts.observation_format(config)
    return NetworkSize.of(observation_format, config.algorithm, n_actions=facts.n_actions)


def storage(config: RunConfig, facts: RunFacts) -> Part:
    """Return the memory of the rollout buffer or the replay.

    A replay in RAM counts as far as it is filled, because pages are taken when they are written to.
    On a GPU it takes its whole capacity at once.
    """
    n_steps = config.algorithm.n_steps
    if n_steps is not None:
        rollout = rollout_buffer_layout(
            facts.observation_format(config), n_steps=n_steps, n_envs=config.env.n_envs
        )
        memory = config.algorithm.memory
        if memory is not None:
            states = memory_layout(
                memory.state_shape,
                n_steps=n_steps,
                n_envs=config.env.n_envs,
                sequence=memory.sequence,
            )
            rollout = (*rollout, states)
        return Part("rollout buffer", total_bytes(rollout))
    if replay_gpu(config) is not None:
        return Part("replay", reserved_replay_bytes(config, facts))
    return Part("replay", _replay_bytes(config, facts, filled_capacity(config, facts)))


def saved_replay_bytes(config: RunConfig, facts: RunFacts, timesteps: int | None = None) -> int:
    """Return the bytes of the replay in a checkpoint, without slots that were never written.

    Args:
        timesteps: when the checkpoint is written; None: at the run's end.
    """
    if not config.checkpoints.save_replay_buffer:
        return 0
    return _replay_bytes(config, facts, filled_capacity(config, facts, timesteps))


def reserved_replay_bytes(config: RunConfig, facts: RunFacts) -> int:
    """Return the bytes of the replay's whole capacity, which is reserved at the start."""
    assert config.algorithm.replay is not None
    return _replay_bytes(config, facts, config.algorithm.replay.capacity)


def filled_capacity(config: RunConfig, facts: RunFacts, timesteps: int | None = None) -> int:
    """Return how much of the replay's capacity timesteps and the episodes' last frames fill.

    Args:
        timesteps: number of timesteps; None: those of the whole run.
    """
    replay = config.algorithm.replay
    n_envs = config.env.n_envs
    assert replay is not None
    if timesteps is None:
        timesteps = training_arithmetic(config).final_timesteps
    timesteps //= n_envs
    frames = timesteps + timesteps // max(facts.episode_timesteps, 1) + 1
    return min(replay.capacity, frames * n_envs)


def _replay_bytes(config: RunConfig, facts: RunFacts, capacity: int) -> int:
    replay = config.algorithm.replay
    assert replay is not None
    layout = REPLAY_LAYOUTS[replay.store](
        facts.observation_format(config),
        capacity=capacity,
        n_envs=config.env.n_envs,
        n_actions=facts.n_actions,
    )
    return total_bytes(layout)


def ram_footprint(config: RunConfig, facts: RunFacts) -> MemoryFootprint:
    """Predict the summed proportional set size of all processes of a run, in three phases.

    collect: the rollout buffer or the replay fills, a page at a time. What is done between two
        updates counts here.
    update: a gradient step on the CPU; only the packed minibatch if the network is on a GPU.
    recording: the training is closed; the best policy plays, for the last evaluation and a clip.
        The policy reuses the memory of the trained network, which stays with the process.

    Large blocks return to the system when they are freed. Small ones stay with the process, and so
    do the holes between them (`calibration`). A run that only plays has no update.
    """
    planned = facts.planned(config)
    always = _processes(config, facts, planned)
    network = _network_on_cpu(config, facts, planned)
    stored = () if replay_gpu(config) is not None else (storage(config, facts),)
    training = (*always, *network, *stored)
    for feature in FEATURES:
        training = (*training, *feature.memory(planned))
    collect = (*training, _frames_in_flight(config, facts))
    for feature in FEATURES:
        collect = (*collect, *feature.pause_memory(planned))
    recording = (*always[:2], *network, _playing_policy(config, facts, network))
    for feature in FEATURES:
        recording = (*recording, *feature.last_memory(planned))
    if not config.learns:
        return MemoryFootprint((Phase("collect", collect), Phase("recording", recording)))
    step, spare, top = _gradient_step(config, facts)
    return MemoryFootprint(
        phases=(
            Phase("collect", (*collect, top)),
            Phase("update", (*training, step, spare)),
            Phase("recording", (*recording, top)),
        )
    )


def _gradient_step(config: RunConfig, facts: RunFacts) -> tuple[Part, Part, Part]:
    """Return the step's own memory, what the allocator holds in addition, and what it keeps later.

    The allocator's part during the step is spare room in its heaps. The last part stays with the
    process when the step's blocks are freed.
    """
    if facts.uses_gpu:
        moments = [[packed_minibatch_bytes(config, facts)]]
    else:
        moments = list(_network_moments(config, facts).values())
    step = Part("gradient step", max(map(sum, moments)))
    small = max(map(_small, moments))
    heap = small + _holes(config, facts, small)
    optimiser = _optimiser_heap(config, facts)
    spare = max(map(_large, moments)) + heap + optimiser - step.bytes
    top = min(heap, _n_parts(config, facts) * calibration.HEAP_TOP_BYTES) + optimiser
    return step, _kept(spare), _kept(top)


def _optimiser_heap(config: RunConfig, facts: RunFacts) -> int:
    """Return what the main thread's heap keeps of RAdam's step while others compute gradients."""
    if config.algorithm.optimiser != "radam" or facts.uses_gpu:
        return 0  # Adam's fused step needs no memory
    if _n_parts(config, facts) == 1:  # the main thread's blocks for gradients are in the same heap
        return 0
    blocks = network_of(config, facts).radam_blocks()
    kept = calibration.RADAM_BLOCKS_KEPT[facts.precision]
    return _small(blocks[:kept])


def together(config: RunConfig, facts: RunFacts) -> int:
    """Return the number of timesteps that go through the network together."""
    return timesteps_together(
        config.algorithm,
        network_of(config, facts),
        bf16=facts.uses_bf16,
        on_gpu=facts.uses_gpu,
        cpus=facts.cpus,
        cache_bytes=facts.cache_bytes,
    )


def frames_in_a_step(config: RunConfig, facts: RunFacts) -> int:
    """Return the number of frames that are unpacked together."""
    stack = facts.observation_format(config).stack
    return config.algorithm.frames_of_a_sample(stack) * together(config, facts)


def _processes(config: RunConfig, facts: RunFacts, planned: PlannedRun) -> tuple[Part, ...]:
    main = facts.import_bytes + calibration.FIRST_UPDATE_BYTES
    helper = Part("resource tracker", calibration.RESOURCE_TRACKER_BYTES)
    if _IS_FORKED:
        main -= calibration.SHARED_WITH_WORKERS_BYTES
        helper = Part("forkserver", calibration.FORKSERVER_BYTES)
    if facts.uses_gpu:
        main += calibration.CUDA_HOST_BYTES
    elif config.algorithm.memory is not None:
        main += calibration.RECURRENT_KERNELS_BYTES
    n_envs = config.env.n_envs
    n_workers = config.env.n_workers
    workers = training_workers(n_workers, n_envs=n_envs, cpus=facts.cpus)
    training = _workers_bytes(facts, workers=workers, emulators=n_envs)
    n_envs = config.evaluation.envs_for(config.evaluation.episodes)
    workers = evaluation_workers(n_workers, n_envs=n_envs, cpus=facts.cpus)
    evaluation = _workers_bytes(facts, workers=workers, emulators=n_envs)
    return (
        Part("Python, torch, SB3", main),
        helper,
        Part("training workers", training),
        Part("evaluation workers", evaluation),
        *(part for each in FEATURES for part in each.process_memory(planned)),
    )


def _workers_bytes(facts: RunFacts, *, workers: int, emulators: int) -> int:
    emulator = calibration.EMULATOR_BYTES + facts.rom_bytes
    each = calibration.WORKER_BYTES if _IS_FORKED else calibration.SPAWNED_WORKER_BYTES
    return workers * each + emulators * emulator


def _network_on_cpu(config: RunConfig, facts: RunFacts, planned: PlannedRun) -> tuple[Part, ...]:
    if facts.uses_gpu:
        return ()
    if not config.learns:
        return (Part("network", network_of(config, facts).policy_bytes),)
    return (
        Part("network and optimiser", network_of(config, facts).training_bytes),
        *(part for each in FEATURES for part in each.network_memory(planned)),
    )


def _frames_in_flight(config: RunConfig, facts: RunFacts) -> Part:
    """Return the memory of a vec step's observations.

    There are the last and the next stacks in uint8 and one set of stacks in float32. Packed frames
    of the last and the next vec step and the arrays shared with the workers come in addition.
    """
    n_envs = config.env.n_envs
    observation_format = facts.observation_format(config)
    shared = shared_bytes(observation_format, n_envs=n_envs)
    each = (2 + 4) * observation_format.nbytes + 2 * observation_format.row_bytes
    return Part("frames in flight", n_envs * each + shared)


def _network_moments(config: RunConfig, facts: RunFacts) -> dict[str, list[int]]:
    """Return the sizes of the blocks that are alive together, by moment of an update.

    They are in the memory that the network is in, which may be a GPU's.

    On the CPU each core has a part of the minibatch and gradients of its own. PPO and PQN free the
    observations of a part when its loss is computed. DQN draws the whole minibatch and keeps it.
    """
    network = network_of(config, facts)
    n = _n_parts(config, facts)
    size = -(-together(config, facts) // n)
    gradients = [network.weights_bytes] * (n - 1)
    if config.algorithm.replay is not None:
        target = network.kept_weights_bytes(bf16=facts.uses_bf16)
        drawn = kept = [_unpacked_minibatch(config, facts), target]
    else:
        drawn = n * [size * facts.observation_format(config).nbytes]
        kept = []
    way: Bf16Way = "native" if facts.uses_gpu else facts.bf16_way
    moments = {
        moment: [*(kept if moment.startswith("backward") else drawn), *(n * blocks), *gradients]
        for moment, blocks in network.step_blocks(size, bf16=facts.uses_bf16, way=way).items()
    }
    if config.algorithm.optimiser == "radam":  # Adam's fused step, of the others, needs no memory
        moments["optimiser"] = network.radam_blocks()
    if facts.uses_gpu:
        moments["unpack"] = unpack_blocks(config, facts)
    return moments


def _n_parts(config: RunConfig, facts: RunFacts) -> int:
    """Return the number of parts of a minibatch that are in the network at the same time."""
    if facts.uses_gpu:
        return 1
    whole = config.algorithm.whole_timesteps
    return n_minibatch_parts(together(config, facts) // whole, facts.cpus, whole)


def gradient_step_bytes(config: RunConfig, facts: RunFacts) -> int:
    """Return the memory of a gradient step where the network is, without weights and optimiser."""
    return max(map(sum, _network_moments(config, facts).values()))


def packed_minibatch_bytes(config: RunConfig, facts: RunFacts) -> int:
    return frames_in_a_step(config, facts) * facts.observation_format(config).row_bytes


def _unpacked_minibatch(config: RunConfig, facts: RunFacts) -> int:
    observation_format = facts.observation_format(config)
    sizes = {
        name: prod(part.shape) * part.dtype.itemsize for name, part in observation_format.parts
    }
    if observation_format.screen is not None:
        sizes[SCREEN] = prod(observation_format.screen.shape)
    stacks = observation_format.stacks
    frames_of = config.algorithm.frames_of_a_sample
    each = sum(frames_of(stacks[name]) * size for name, size in sizes.items())
    return together(config, facts) * each


def unpack_blocks(config: RunConfig, facts: RunFacts) -> list[int]:
    """Return the blocks that are alive while FramePacking.unpack_into unpacks tensors on a GPU.

    Pixels of fewer than 8 bits need two temporaries: shifted and masked codes, or the quarters from
    which levels are made. On the CPU frames are unpacked in small parts, with hardly any memory
    besides the stacks.
    """
    packed = packed_minibatch_bytes(config, facts)
    screen = facts.observation_format(config).screen
    temporary = [packed, packed] if screen is not None and screen.bits < 8 else []
    return [_unpacked_minibatch(config, facts), packed, *temporary]


def _holes(config: RunConfig, facts: RunFacts, small: int) -> int:
    """Return the size of the holes that the blocks of a step and gradients leave in the heaps."""
    algorithm = config.algorithm
    number: str = facts.precision
    if facts.uses_bf16 and facts.bf16_way == "unfolded" and not facts.uses_gpu:
        number = "unfolded"
    gradient = 0 if facts.uses_gpu else _small_gradient(network_of(config, facts))
    gradients = calibration.HOLES_OF_GRADIENTS
    if together(config, facts) < algorithm.batch_size:
        gradients += calibration.HOLES_OF_MICRO_BATCHES
    return round(calibration.HEAP_HOLES[number] * small + gradients * gradient)


def _small_gradient(network: NetworkSize) -> int:
    """Return the bytes of a gradient without its largest block, if that is no small one."""
    largest = network.largest_parameter * FLOAT_BYTES
    return network.weights_bytes - largest + _small([largest])


def _kept(size: int) -> Part:
    return Part("kept by the allocator", size)


def _playing_policy(config: RunConfig, facts: RunFacts, network: tuple[Part, ...]) -> Part:
    """Return the memory of the policy that plays once the training has closed.

    Its weights and those read from the file use the memory of the trained network first.
    """
    room = sum(part.bytes for part in network)
    policy = 2 * network_of(config, facts).policy_bytes
    return Part("policy that plays", max(policy - room, 0))


def _large(blocks: Iterable[int]) -> int:
    return sum(size for size in blocks if size >= calibration.ALLOCATOR_THRESHOLD_BYTES)


def _small(blocks: Iterable[int]) -> int:
    return sum(size for size in blocks if size < calibration.ALLOCATOR_THRESHOLD_BYTES)


def vram_footprint(config: RunConfig, facts: RunFacts) -> GpuFootprint | None:
    """Return the memory of the network's GPU; None if the network is on the CPU.

    It peaks in a gradient step. It includes the replay if the config puts it on the same GPU. The
    minibatch is transferred packed and unpacked on the GPU. It is an estimate: tensors are counted
    as on the CPU, and what CUDA adds was measured on one kind of GPU (`calibration`).
    """
    gpu = network_gpu(config, facts)
    if gpu is None:
        return None
    planned = facts.planned(config)
    weights = network_of(config, facts).training_bytes
    step = gradient_step_bytes(config, facts)
    factor = calibration.CUDA_STEP_FACTORS[facts.precision]
    parts = (
        Part(CUDA_CONTEXT, calibration.CUDA_CONTEXT_BYTES),
        Part("network and optimiser", weights),
        *(part for each in FEATURES for part in each.network_memory(planned)),
        *([storage(config, facts)] if replay_gpu(config) == gpu else []),
        Part("gradient step", step),
        Part("cuDNN and allocator", round((factor - 1) * step) + calibration.CUDA_WORKSPACE_BYTES),
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
        Part(CUDA_CONTEXT, calibration.CUDA_CONTEXT_BYTES),
        storage(config, facts),
        Part("packed minibatch", packed_minibatch_bytes(config, facts)),
    )
    return GpuFootprint(phases=(Phase("update", parts),), gpu=gpu)


def network_gpu(config: RunConfig, facts: RunFacts) -> int | None:
    """Return the number of the network's GPU; None if the network is on the CPU."""
    return _gpu_number(config.device) if facts.uses_gpu else None


def replay_gpu(config: RunConfig) -> int | None:
    """Return the number of the replay's GPU; None if the replay is in RAM or there is none.

    Frames are by far the largest part of a replay, so all of it counts as being where they are.
    """
    replay = config.algorithm.replay
    return None if replay is None or replay.device == "cpu" else _gpu_number(replay.device)


def _gpu_number(device: str) -> int:
    """Return the number in `device`, or 0 if it has none, as torch reads it."""
    return int(device.partition(":")[2] or 0)
