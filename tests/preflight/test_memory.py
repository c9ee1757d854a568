"""RAM and VRAM by phase: sums, directions, and the numbers of a worked example."""

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from game_rl.algorithms.policies import ppo_policy_to_load
from game_rl.algorithms.recurrent_policy import recurrent_policy_to_load
from game_rl.buffers.layout import Transitions
from game_rl.buffers.pond import Pond
from game_rl.buffers.replay_buffer import PackedReplayBuffer
from game_rl.buffers.rollout_buffer import PackedRolloutBuffer
from game_rl.config.algorithms import PPOConfig
from game_rl.config.schema import RunConfig
from game_rl.features.features_above import n_pictures
from game_rl.preflight import calibration
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.footprint import estimate, verdict
from game_rl.preflight.memory import (
    Phase,
    _small_gradient,
    frames_in_a_step,
    network_gpu,
    network_of,
    ram_footprint,
    replay_gpu,
    saved_replay_bytes,
    storage,
    together,
    unpack_blocks,
    vram_footprint,
)
from game_rl.preflight.preflight import report_of
from game_rl.system.placement import Gpu
from game_rl.system.units import GIB
from tests.preflight.conftest import FACTS, MACHINE, make_config
from tests.preflight.test_findings import Make, by_code, mended
from tests.preflight.test_preflight_report import text_of
from tests.preflight.torch_account import peak_of_tensors

ON_GPU = replace(FACTS, uses_gpu=True)

# The run of a published analysis: 2 envs, n_steps 8192, 4 RGB frames of 144 x 160, batches of 2048.
FIGHTER = make_config(
    total_timesteps=10_000_000,
    env__n_envs=2,
    env__frame_stack=4,
    env__observation={"size": "full", "colour": "rgb"},
    algorithm={"n_steps": 8192, "batch_size": 2048, "n_epochs": 10, "micro_batch_size": None},
    evaluation__every_timesteps=163_840,
    checkpoints__every_timesteps=163_840,
)


def part(phase: Phase, name: str) -> int:
    return next((part.bytes for part in phase.parts if part.name == name), 0)


def phase(phases: tuple[Phase, ...], name: str) -> Phase:
    return next(phase for phase in phases if phase.name == name)


def test_the_rollout_buffer_holds_each_frame_once() -> None:
    frames = 2 * (8_192 + 3)  # and what the first stack had before
    scalars = 16_384 * 32
    colour, shades = FACTS, replace(FACTS, four_shades=True)
    assert storage(FIGHTER, colour).bytes == frames * 69_120 + scalars  # SB3's takes 4.5 GB
    assert storage(FIGHTER, shades).bytes == frames * 144 * 160 // 4 + scalars
    for facts in (colour, shades):
        arrays = vars(make_buffer(FIGHTER, facts)).values()
        real = sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
        assert storage(FIGHTER, facts).bytes == real


def make_buffer(config: RunConfig, facts: RunFacts) -> PackedRolloutBuffer:
    """The buffer of a run, still empty."""
    observation_format = facts.observation_format(config)
    return PackedRolloutBuffer(
        config.algorithm.n_steps,
        observation_format.space,
        spaces.Discrete(facts.n_actions),
        "cpu",
        n_envs=config.env.n_envs,
        observation_format=observation_format,
    )


def test_on_a_gpu_ram_holds_packed_frames_alone() -> None:
    update = phase(ram_footprint(FIGHTER, ON_GPU).phases, "update")
    assert part(update, "gradient step") == 2048 * 276_480
    assert part(update, "network and optimiser") == 0
    shades = phase(ram_footprint(FIGHTER, replace(ON_GPU, four_shades=True)).phases, "update")
    assert part(shades, "gradient step") == 2048 * 4 * 5_760


def test_on_a_gpu_vram_is_the_gradient_step_plus_overheads() -> None:
    vram = vram_footprint(FIGHTER, ON_GPU)
    assert vram is not None
    # forwards: bytes, floats, and the activations of three layers, the last of them twice
    step = 2048 * (5 * 276_480 + 4 * (43_680 + 18_432 + 2 * 14_336))
    assert part(vram.peak, "gradient step") == step
    assert part(vram.peak, "network and optimiser") == pytest.approx(0.119e9, rel=1e-2)
    assert vram.peak.bytes > 1.1 * step


def test_on_a_cpu_the_update_has_the_peak_and_there_is_no_vram() -> None:
    footprint = estimate(FIGHTER, FACTS)
    assert footprint.vram is None
    assert footprint.ram.peak.name == "update"
    step = part(footprint.ram.peak, "gradient step")
    gradients = 7 * network_of(FIGHTER, FACTS).weights_bytes  # of eight cores; one is the sum
    assert step == 2048 * (5 * 276_480 + 4 * (43_680 + 18_432 + 2 * 14_336)) + gradients
    assert footprint.ram.peak.bytes == pytest.approx(step + 2.6e9, rel=0.05)


@pytest.mark.parametrize("facts", [FACTS, ON_GPU, replace(FACTS, uses_bf16=True)])
@pytest.mark.parametrize("micro", [2048, 1024, 64])
def test_a_step_in_parts_takes_what_a_batch_of_their_size_takes(
    facts: RunFacts, micro: int
) -> None:
    algorithm = {"n_steps": 8192, "batch_size": 2048, "micro_batch_size": micro}
    parts = make_config(env__n_envs=2, algorithm=algorithm)
    at_once = {"n_steps": 8192, "batch_size": micro, "micro_batch_size": None}
    batch = make_config(env__n_envs=2, algorithm=at_once)
    assert vram_footprint(parts, facts) == vram_footprint(batch, facts)
    of_parts, of_batch = ram_footprint(parts, facts), ram_footprint(batch, facts)
    for name in ("rollout buffer", "gradient step"):
        sizes = [part(phase(of.phases, "update"), name) for of in (of_parts, of_batch)]
        assert sizes[0] == sizes[1]
    gradient = network_of(parts, facts).weights_bytes  # of the micro-batches so far
    assert of_batch.peak.bytes <= of_parts.peak.bytes <= of_batch.peak.bytes + 2 * gradient


@pytest.mark.slow
@pytest.mark.parametrize("four_shades", [True, False])
@pytest.mark.parametrize("size", ["full", "half"])
@pytest.mark.parametrize("colour", ["grey", "rgb"])
def test_unpacking_is_what_torch_allocates(size: str, colour: str, *, four_shades: bool) -> None:
    facts = replace(FACTS, four_shades=four_shades)
    config = make_config(
        env__observation={"size": size, "colour": colour},
        algorithm={"n_steps": 64, "batch_size": 256},
    )
    packing = facts.observation_format(config).screen
    frames = torch.zeros(256 * 4, packing.nbytes, dtype=torch.uint8)

    def unpack() -> None:
        pixels = torch.empty(len(frames), prod(packing.shape), dtype=torch.uint8)
        packing.unpack_into(frames, pixels)

    stacks, packed, *temporary = unpack_blocks(config, facts)
    assert peak_of_tensors(unpack) == pytest.approx(stacks + sum(temporary), rel=0.01)
    assert packed == frames.nbytes


def test_on_the_cpu_unpacking_takes_the_stacks_alone() -> None:
    config = make_config(algorithm={"n_steps": 64, "batch_size": 256})
    buffer = make_buffer(config, FACTS)
    buffer.full = True
    indices = next(buffer.minibatches(256))
    stacks = 256 * FACTS.observation_format(config).nbytes
    assert peak_of_tensors(lambda: buffer.samples(indices)) == pytest.approx(stacks, rel=0.01)


def test_small_blocks_are_kept_by_the_allocator_and_large_ones_are_given_back() -> None:
    small = make_config(algorithm={"n_steps": 256, "batch_size": 64})
    large = make_config(algorithm={"n_steps": 2048, "batch_size": 4096, "micro_batch_size": None})
    for config, share_kept in ((small, 1.0), (large, 0.5)):
        phases = ram_footprint(config, replace(FACTS, cpus=1)).phases
        step = part(phase(phases, "update"), "gradient step")
        assert step > 0
        kept = part(phase(phases, "collect"), "kept by the allocator")
        assert kept >= step if share_kept == 1 else kept < share_kept * step


@pytest.mark.parametrize("features", [512, 1_024])
@pytest.mark.parametrize("memory", [None, {"size": 256}])
def test_each_block_of_a_gradient_is_small_or_large(
    features: int, memory: dict[str, int] | None
) -> None:
    """A whole picture and an LSTM have more small blocks together than a large one has bytes."""
    config = make_config(
        algorithm={"memory": memory, "network": {"features": features}},
        env={"observation": {"size": "full"}},
    )
    form = FACTS.observation_format(config)
    load = ppo_policy_to_load if memory is None else recurrent_policy_to_load
    assert isinstance(config.algorithm, PPOConfig)
    policy = load(config.algorithm, form.space, spaces.Discrete(FACTS.n_actions))
    blocks = [4 * parameter.numel() for parameter in policy.parameters()]
    small = sum(size for size in blocks if size < 32 * 2**20)
    assert _small_gradient(network_of(config, FACTS)) == small


def test_evaluation_takes_no_more_emulators_than_episodes() -> None:
    one = make_config(evaluation={"n_envs": 8, "episodes": 1})
    eight = make_config(evaluation={"n_envs": 8, "episodes": 8})
    workers = [
        part(ram_footprint(config, FACTS).phases[0], "evaluation workers")
        for config in (one, eight)
    ]
    emulator = calibration.EMULATOR_BYTES + FACTS.rom_bytes
    assert workers[0] == calibration.WORKER_BYTES + emulator
    assert workers[1] == 8 * workers[0]


@given(
    n_envs=st.integers(1, 16),
    n_steps=st.sampled_from([64, 256, 1024]),
    stack=st.integers(1, 4),
    size=st.sampled_from(["half", "full"]),
    uses_gpu=st.booleans(),
)
def test_more_of_anything_takes_no_less_memory_than_the_allocator_may_give_back(
    n_envs: int, n_steps: int, stack: int, size: str, uses_gpu: bool
) -> None:
    facts = replace(FACTS, uses_gpu=uses_gpu)
    base: dict[str, object] = {
        "env__n_envs": n_envs,
        "env__frame_stack": stack,
        "env__observation": {"size": size},
        "algorithm": {"n_steps": n_steps, "batch_size": 32, "n_epochs": 1},
        "recording": {"episodes": 0},
    }
    peak = ram_footprint(make_config(**base), facts).peak.bytes
    more: tuple[dict[str, object], ...] = (
        {"env__n_envs": n_envs + 1},
        {"env__frame_stack": stack + 1},
        {"env__observation": {"size": "full"}},
        {"algorithm": {"n_steps": n_steps * 2, "batch_size": 64, "n_epochs": 1}},
    )
    for change in more:
        grown = ram_footprint(make_config(**(base | change)), facts).peak.bytes
        assert grown >= peak - calibration.ALLOCATOR_THRESHOLD_BYTES


@pytest.mark.parametrize("facts", [FACTS, ON_GPU])
def test_recording_holds_every_picture(facts: RunFacts) -> None:
    none, one = (make_config(recording={"episodes": episodes}) for episodes in (0, 1))
    without, recording = (
        phase(ram_footprint(config, facts).phases, "recording") for config in (none, one)
    )
    assert recording.bytes - without.bytes == n_pictures(one, facts.episode_timesteps) * 3_300


def test_the_policy_that_plays_at_the_end_needs_no_more_than_the_trained_network_left() -> None:
    config = make_config()
    weights = network_of(config, FACTS).weights_bytes
    trained, on_gpu = (
        phase(ram_footprint(config, facts).phases, "recording") for facts in (FACTS, ON_GPU)
    )
    assert part(trained, "network and optimiser") == 4 * weights
    assert part(trained, "policy that plays") == 0
    assert part(on_gpu, "policy that plays") == 2 * weights


@pytest.mark.parametrize(("frame_skip", "a_second"), [(1, 59.73), (4, 14.93), (8, 14.93)])
def test_a_clip_has_no_more_pictures_than_its_seconds(frame_skip: int, a_second: float) -> None:
    facts = replace(FACTS, episode_timesteps=5_000)
    for max_s, expected in ((10, 10 * a_second), (None, 5_000 * 3 * max(1, frame_skip // 4))):
        config = make_config(
            env={"frame_skip": frame_skip}, recording={"episodes": 3, "max_s": max_s}
        )
        assert n_pictures(config, facts.episode_timesteps) == pytest.approx(expected, rel=0.01)


DQN_RUN: dict[str, Any] = {"name": "dqn", "replay": {"capacity": 1_000_000}, "batch_size": 64}


def test_a_replay_is_the_pond_that_would_be_allocated() -> None:
    config = make_config(algorithm=DQN_RUN | {"replay": {"capacity": 1_001}})
    facts = replace(FACTS, four_shades=True)
    observation_format = facts.observation_format(config)
    buffer = PackedReplayBuffer(
        1_001,
        observation_format.space,
        spaces.Discrete(facts.n_actions),
        "cpu",
        n_envs=8,
        observation_format=observation_format,
    )
    pond: Any = buffer.store
    real = pond._frames.nbytes + sum(array.nbytes for array in pond._small.values())
    assert storage(config, facts).bytes == real


def test_a_replay_of_full_screens_has_six_kilobytes_a_timestep() -> None:
    config = make_config(algorithm=DQN_RUN, env__observation={"size": "full"})
    replay = storage(config, replace(FACTS, four_shades=True))
    assert replay.name == "replay"
    assert replay.bytes / 1_000_000 == pytest.approx(5_760 + 1 + 4 + 1 + 1, rel=1e-4)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_replay_counts_where_its_frames_are(device: str) -> None:
    config = make_config(algorithm=DQN_RUN | {"replay": {"capacity": 1_000_000, "device": device}})
    footprint, replay = estimate(config, ON_GPU), storage(config, ON_GPU).bytes
    assert footprint.vram is not None
    assert part(footprint.vram.peak, "replay") == (replay if device == "cuda" else 0)
    for moment in ("collect", "update"):
        in_ram = part(phase(footprint.ram.phases, moment), "replay")
        assert in_ram == (0 if device == "cuda" else replay)


@pytest.mark.parametrize(("n_step", "n_frames"), [(1, 5), (2, 8), (9, 8)])
def test_dqn_draws_two_stacks_for_each_timestep(n_step: int, n_frames: int) -> None:
    config = make_config(algorithm=DQN_RUN | {"n_step": n_step})
    assert together(config, FACTS) == 64
    assert frames_in_a_step(config, FACTS) == 64 * n_frames


def test_a_replay_that_is_saved_is_in_each_checkpoint_and_in_memory_once() -> None:
    plain = make_config(algorithm=DQN_RUN)
    saving = make_config(algorithm=DQN_RUN, checkpoints__save_replay_buffer=True)
    replay = storage(plain, FACTS).bytes
    before, after = (estimate(config, FACTS) for config in (plain, saving))
    collect = [phase(footprint.ram.phases, "collect").bytes for footprint in (before, after)]
    assert collect[1] == collect[0]
    assert after.disk.checkpoint_bytes - before.disk.checkpoint_bytes == replay


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_replay_that_the_run_cannot_fill_takes_what_it_fills_but_all_of_it_on_a_gpu(
    device: str,
) -> None:
    replay = {"capacity": 50_000_000, "device": device}
    saving = {"checkpoints__save_replay_buffer": True}
    huge = make_config(algorithm=DQN_RUN | {"replay": replay}, **saving)
    plenty = make_config(algorithm=DQN_RUN | {"replay": replay | {"capacity": 2_000_000}}, **saving)
    enough = make_config(algorithm=DQN_RUN | {"replay": replay | {"capacity": 1_000_000}}, **saving)
    sizes = [storage(config, FACTS).bytes for config in (huge, plenty, enough)]
    assert sizes[0] == pytest.approx((50 if device == "cuda" else 1) * sizes[2], rel=0.01)
    saved = [estimate(config, FACTS).disk.checkpoint_bytes for config in (huge, plenty, enough)]
    assert saved[0] == saved[1] == pytest.approx(saved[2], rel=0.01)
    assert saved[1] > saved[2]  # by the last frames of episodes


@pytest.mark.parametrize("episode_length", [1, 7, 40])
def test_a_pond_that_is_not_full_has_written_as_many_slots_as_the_forecast_counts(
    episode_length: int,
) -> None:
    config = make_config(
        total_timesteps=120,
        env={"n_envs": 2, "frame_stack": 2},
        algorithm=DQN_RUN | {"replay": {"capacity": 5_000}, "learning_starts": 8},
        evaluation__every_timesteps=120,
        checkpoints={"every_timesteps": 120, "save_replay_buffer": True},
    )
    facts = replace(FACTS, episode_timesteps=episode_length)
    observation_format = facts.observation_format(config)
    packing = observation_format.screen
    pond = Pond(
        capacity=5_000,
        n_envs=2,
        n_actions=9,
        observation_format=observation_format,
        rng=np.random.default_rng(0),
    )
    channels, height, width = packing.shape
    stacks = np.zeros((2, 2 * channels, height, width), np.uint8)
    for timestep in range(60):
        step = Transitions(
            observations=stacks,
            frames=packing.pack(stacks[:, -channels:]),
            actions=np.zeros(2, np.int64),
            rewards=np.zeros(2, np.float32),
            next_frames=packing.pack(stacks[:, -channels:]),
            terminated=np.full(2, (timestep + 1) % episode_length == 0),
            truncated=np.zeros(2, np.bool_),
        )
        pond.append(step)
    written = sum(array.nbytes for array in pond.state_dict().values())
    forecast = saved_replay_bytes(config, facts)
    slot = 2 * (packing.nbytes + 7)
    assert written - 1_000 <= forecast <= written + 3 * slot


SMALL, LARGE = Gpu(4 * GIB, 3 * GIB), Gpu(80 * GIB, 79 * GIB)


def dqn(replay_device: str) -> dict[str, Any]:
    replay = {"capacity": 1_000_000, "device": replay_device}  # 5.8 GB of full screens
    return {"name": "dqn", "replay": replay, "batch_size": 64}


def run_on(device: str, replay_device: str) -> dict[str, Any]:
    return {
        "device": device,
        "algorithm": dqn(replay_device),
        "env__observation": {"size": "full"},
        "facts__uses_gpu": device != "cpu",
        "facts__four_shades": True,
    }


@pytest.mark.parametrize(
    ("device", "number"), [("auto", 0), ("cuda", 0), ("cuda:0", 0), ("cuda:3", 3)]
)
def test_a_gpu_without_a_number_is_the_first_as_in_torch(device: str, number: int) -> None:
    assert network_gpu(make_config(device=device), ON_GPU) == number
    assert network_gpu(make_config(device="cpu"), FACTS) is None
    if device != "auto":
        assert replay_gpu(make_config(algorithm=dqn(device))) == number
    assert replay_gpu(make_config(algorithm=dqn("cpu"))) is None


@pytest.mark.parametrize("shared", [True, False])
def test_a_replay_is_counted_on_its_own_gpu(*, shared: bool) -> None:
    config = make_config(device="cuda:1", algorithm=dqn("cuda:1" if shared else "cuda"))
    footprint, replay = estimate(config, ON_GPU), storage(config, ON_GPU).bytes
    without = estimate(make_config(device="cuda:1", algorithm=dqn("cpu")), ON_GPU)
    assert footprint.vram is not None
    assert without.vram is not None
    assert footprint.vram.gpu == 1
    added = footprint.vram.peak.bytes - without.vram.peak.bytes
    assert added == (replay if shared else 0)
    if shared:
        assert footprint.replay_vram is None
    else:
        assert footprint.replay_vram is not None
        assert footprint.replay_vram.gpu == 0
        assert footprint.replay_vram.peak.bytes > replay


@pytest.mark.parametrize(
    ("device", "replay_device", "expected"),
    [
        ("cuda:0", "cuda:0", "vram_does_not_fit"),
        ("cuda:1", "cuda:1", None),
        ("cuda:1", "cuda:0", "replay_vram_does_not_fit"),
        ("cuda:0", "cuda:1", None),
        ("auto", "cuda:1", None),
        ("cuda:2", "cpu", "gpu_missing"),
        ("cuda:1", "cuda:2", "replay_gpu_missing"),
    ],
)
def test_each_gpu_is_judged_by_its_own_memory(
    situation: Make, device: str, replay_device: str, expected: str | None
) -> None:
    case = situation(**run_on(device, replay_device), machine__gpus=(SMALL, LARGE))
    found = {
        code: finding for code, finding in by_code(case).items() if finding.severity == "error"
    }
    assert set(found) == ({expected} if expected else set())
    assert (verdict(case.footprint, case.machine) == "does_not_fit") == bool(expected)
    if expected:
        assert expected not in by_code(mended(case, found[expected]))


def test_a_missing_gpu_is_told_with_those_that_are_there(situation: Make) -> None:
    case = situation(**run_on("cuda:2", "cpu"), machine__gpus=(SMALL, LARGE))
    assert "cuda:1" in by_code(case)["gpu_missing"].message
    case = situation(**run_on("cuda:2", "cpu"), machine__gpus=())
    assert "no GPU" in by_code(case)["gpu_missing"].message


def test_the_report_shows_both_gpus() -> None:
    config = make_config(device="cuda:1", algorithm=dqn("cuda:0"))
    report = report_of(config, ON_GPU, replace(MACHINE, gpus=(SMALL, LARGE)))
    found = report.to_json()
    for key, gpu in (("vram", LARGE), ("replay_vram", SMALL)):
        assert found[key]["limit_bytes"] == gpu.free_bytes
        parts = sum(part["bytes"] for part in found[key]["parts"])
        assert parts == found[key]["predicted_peak_bytes"]
    assert {part["name"] for part in found["replay_vram"]["parts"]} >= {"replay"}
    lines = text_of(report).splitlines()
    assert "4.00 GiB + 80.0 GiB VRAM" in lines[0]
    assert any(line.startswith("VRAM of cuda:0") and "3.00 GiB" in line for line in lines)
    one = report_of(make_config(), ON_GPU, replace(MACHINE, gpus=(SMALL,)))
    assert one.to_json()["replay_vram"] is None
