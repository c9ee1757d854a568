"""RAM and VRAM by phase: sums, directions, and the numbers of a worked example."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.preflight import calibration
from game_rl.preflight.estimate import estimate
from game_rl.preflight.footprint import Phase
from game_rl.preflight.memory import ram_footprint, rollout_buffer_bytes, vram_footprint
from tests.preflight.conftest import FACTS, make_config

ON_GPU = replace(FACTS, uses_gpu=True)

# The run of a published analysis: 2 envs, n_steps 8192, 4 RGB frames of 144 x 160, batches of 2048.
FIGHTER = make_config(
    total_timesteps=10_000_000,
    env__n_envs=2,
    env__frame_stack=4,
    env__observation={"size": "full", "colour": "rgb"},
    algorithm={"n_steps": 8192, "batch_size": 2048, "n_epochs": 10},
    evaluation__every_timesteps=163_840,
    checkpoints__every_timesteps=163_840,
)


def part(phase: Phase, name: str) -> int:
    return next((part.bytes for part in phase.parts if part.name == name), 0)


def phase(phases: tuple[Phase, ...], name: str) -> Phase:
    return next(phase for phase in phases if phase.name == name)


def test_the_rollout_buffer_of_the_worked_example() -> None:
    observations = 16_384 * 276_480  # 4.530 GB
    assert rollout_buffer_bytes(FIGHTER, FACTS) == observations + 16_384 * 32


def test_on_a_gpu_the_peak_of_ram_is_the_reordered_copy() -> None:
    ram = ram_footprint(FIGHTER, ON_GPU)
    assert ram.peak.name == "first minibatch"
    assert part(ram.peak, "reordered copy") == 16_384 * 276_480
    buffers = part(ram.peak, "rollout buffer") + part(ram.peak, "reordered copy")
    assert buffers == pytest.approx(9.060e9, rel=1e-3)


def test_on_a_gpu_vram_is_the_conversion_to_float_plus_overheads() -> None:
    vram = vram_footprint(FIGHTER, ON_GPU)
    assert vram is not None
    assert part(vram.peak, "gradient step") == pytest.approx(5.096e9, rel=1e-3)
    assert part(vram.peak, "network and optimiser") == pytest.approx(0.119e9, rel=1e-2)
    assert vram.peak.bytes == pytest.approx(6.7e9, rel=0.01)


def test_on_a_cpu_the_update_has_the_peak_and_there_is_no_vram() -> None:
    footprint = estimate(FIGHTER, FACTS)
    assert footprint.vram is None
    assert footprint.ram.peak.name == "update"
    # conversion to channels_last comes on top of the 9 bytes a number: uint8 and two floats, and
    # 43,680 activations
    step = part(footprint.ram.peak, "gradient step")
    assert step == 2048 * (9 * 276_480 + 4 * 43_680)
    assert footprint.ram.peak.bytes == pytest.approx(10.5e9, rel=0.05)


def test_one_env_needs_no_reordered_copy() -> None:
    config = make_config(env__n_envs=1, algorithm={"n_steps": 2048, "batch_size": 64})
    ram = ram_footprint(config, FACTS)
    assert part(phase(ram.phases, "first minibatch"), "reordered copy") == 0


def test_small_blocks_are_kept_by_the_allocator_and_large_ones_are_given_back() -> None:
    small = make_config(algorithm={"n_steps": 256, "batch_size": 64})
    large = make_config(algorithm={"n_steps": 2048, "batch_size": 4096})
    kept = [part(p, "kept by the allocator") for p in ram_footprint(small, FACTS).phases]
    assert len(set(kept)) == 1
    assert kept[0] > 0
    update = phase(ram_footprint(small, FACTS).phases, "update")
    assert part(update, "gradient step") == 0
    update = phase(ram_footprint(large, FACTS).phases, "update")
    assert part(update, "gradient step") > 4096 * 9 * 23_040


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
