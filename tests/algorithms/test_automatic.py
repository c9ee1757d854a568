"""What `auto` becomes, from numbers alone, and the same for who predicts and who computes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.algorithms.automatic import resolve_auto, resolved_on, this_hardware
from game_rl.config.algorithms import PPOConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.games.definition import load_game
from game_rl.preflight.facts import run_facts
from game_rl.preflight.memory import together
from game_rl.system.machine import detect_machine
from game_rl.system.placement import Hardware
from game_rl.system.units import MIB

FULL_RGB = ObservationFormat(FramePacking((3, 144, 160)), 4)
CPU = Hardware(has_gpu=False, cpu_has_bf16=False, cpus=2, cache_bytes=16 * MIB)
HARDWARE = st.builds(
    Hardware,
    has_gpu=st.booleans(),
    cpu_has_bf16=st.booleans(),
    cpus=st.integers(1, 64),
    cache_bytes=st.integers(1, 64 * MIB),
)


def config_of(device: str = "auto", **algorithm: Any) -> RunConfig:
    head = {"game": "duel", "total_timesteps": 100_000, "run_dir": "runs/x", "device": device}
    env = {"n_envs": 2, "observation": {"size": "full", "colour": "rgb"}}
    return RunConfig.model_validate(head | {"env": env, "algorithm": algorithm})


LARGE = config_of(n_steps=8_192, batch_size=2_048)


@given(hardware=HARDWARE)
def test_once_is_enough_and_the_same_hardware_decides_the_same(hardware: Hardware) -> None:
    found = resolved_on(LARGE, FULL_RGB, hardware)
    assert resolved_on(LARGE, FULL_RGB, replace(hardware)) == found
    assert RunConfig.model_validate(found.model_dump()) == found  # a valid config, as a file has it
    algorithm = found.algorithm
    assert algorithm.precision in {"float32", "bf16"}
    assert isinstance(algorithm, PPOConfig)
    assert isinstance(algorithm.micro_batch_size, int)
    other = Hardware(has_gpu=False, cpu_has_bf16=not hardware.cpu_has_bf16, cpus=7)
    assert resolved_on(found, FULL_RGB, other) == found


@pytest.mark.parametrize(
    ("hardware", "precision", "micro_batch_size"),
    [
        (CPU, "float32", 71),
        (replace(CPU, cpu_has_bf16=True), "bf16", 137),
        (replace(CPU, cpus=8), "float32", 256),
        (replace(CPU, cache_bytes=MIB), "float32", 71),
        (replace(CPU, cache_bytes=32 * MIB), "float32", 121),
        (replace(CPU, has_gpu=True), "bf16", 2_048),
    ],
)
def test_auto_is_what_the_hardware_decides(
    hardware: Hardware, precision: str, micro_batch_size: int
) -> None:
    algorithm = resolved_on(LARGE, FULL_RGB, hardware).algorithm
    assert isinstance(algorithm, PPOConfig)
    assert (algorithm.precision, algorithm.micro_batch_size) == (precision, micro_batch_size)


@pytest.mark.parametrize("micro_batch_size", [None, 64])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_what_the_config_names_stays(micro_batch_size: int | None, precision: str) -> None:
    config = config_of(batch_size=256, micro_batch_size=micro_batch_size, precision=precision)
    assert resolved_on(config, FULL_RGB, CPU) == config


@pytest.mark.parametrize("name", ["pqn", "dqn"])
def test_every_algorithm_has_a_precision(name: str) -> None:
    config = config_of(name=name, batch_size=64)
    wanted = config.algorithm.model_copy(update={"precision": "bf16"})
    found = resolved_on(config, FULL_RGB, replace(CPU, cpu_has_bf16=True))
    assert found == config.model_copy(update={"algorithm": wanted})


def test_a_device_is_not_decided_for_good() -> None:
    assert resolved_on(config_of("auto"), FULL_RGB, CPU).device == "auto"


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [64, 2_048])
def test_the_preflight_plans_with_what_a_run_gets(batch_size: int, tmp_path: Path) -> None:
    config, game = config_of(n_steps=2_048, batch_size=batch_size), load_game("duel")
    algorithm = resolve_auto(config, game).algorithm
    assert isinstance(algorithm, PPOConfig)
    machine = detect_machine(tmp_path)
    assert machine.hardware == this_hardware()
    assert together(config, run_facts(config, game, machine)) == algorithm.micro_batch_size
