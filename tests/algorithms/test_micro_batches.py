"""`micro_batch_size: auto`: what it may be, and that it learns as the whole batch does."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor

from game_rl.algorithms.automatic import resolved_on
from game_rl.algorithms.make_algorithm import make_algorithm
from game_rl.algorithms.ppo import LeanPPO
from game_rl.algorithms.sizes import (
    NetworkSize,
    micro_batch_size,
    n_minibatch_parts,
    timesteps_together,
)
from game_rl.config.algorithms import DQNConfig, PPOConfig, PQNConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.packing import FramePacking
from game_rl.run_dir import RunDir
from game_rl.system.placement import Hardware
from game_rl.system.threads import torch_threads
from game_rl.system.units import MIB
from tests.tiny_env import TinyEnv

STACK = (4, 72, 80)
ONE_CPU = Hardware(has_gpu=False, cpu_has_bf16=False, cpus=1)
BATCHES = st.integers(1, 100_000)
SAMPLES = st.integers(1, 100 * MIB)
CPUS = st.integers(1, 256)
CACHES = st.integers(1, 1024 * MIB)


@given(batch_size=BATCHES, sample_bytes=SAMPLES, cpus=CPUS, cache_bytes=CACHES, more=CACHES)
def test_a_micro_batch_is_some_of_the_batch_and_grows_with_the_cache(
    batch_size: int, sample_bytes: int, cpus: int, cache_bytes: int, more: int
) -> None:
    def size(cache_bytes: int) -> int:
        return micro_batch_size(
            batch_size, sample_bytes=sample_bytes, cpus=cpus, cache_bytes=cache_bytes
        )

    found = size(cache_bytes)
    assert found == size(cache_bytes)
    assert 1 <= found <= size(cache_bytes + more) <= batch_size


@given(batch_size=BATCHES, sample_bytes=SAMPLES, cpus=CPUS, cache_bytes=CACHES)
def test_a_part_is_of_112_mib_at_most_unless_threads_would_have_too_little_to_do(
    batch_size: int, sample_bytes: int, cpus: int, cache_bytes: int
) -> None:
    found = micro_batch_size(
        batch_size, sample_bytes=sample_bytes, cpus=cpus, cache_bytes=cache_bytes
    )
    assert n_minibatch_parts(found, cpus) == n_minibatch_parts(batch_size, cpus)
    part = -(-found // n_minibatch_parts(found, cpus))
    assert part <= 64 or part * sample_bytes <= 112 * MIB
    if batch_size * sample_bytes <= cpus * 56 * MIB:
        assert found == batch_size


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("stack", [(12, 144, 160), (4, 144, 160), (4, 72, 80), (2, 37, 50)])
def test_a_sample_takes_what_a_step_of_many_takes_for_each(
    stack: tuple[int, int, int], bf16: bool
) -> None:
    network = network_of(*stack)
    most = [max(map(sum, network.step_blocks(n, bf16=bf16).values())) for n in (10_000, 20_000)]
    assert network.sample_bytes(bf16=bf16) == (most[1] - most[0]) / 10_000


def network_of(channels: int, height: int, width: int) -> NetworkSize:
    return NetworkSize(channels=channels, height=height, width=width, n_actions=9)


@pytest.mark.parametrize(
    ("algorithm", "on_gpu", "expected"),
    [
        (PPOConfig(batch_size=2048), False, 71),
        (PPOConfig(batch_size=2048), True, 2048),
        (PPOConfig(batch_size=2048, micro_batch_size=None), False, 2048),
        (PPOConfig(batch_size=2048, micro_batch_size=7), False, 7),
        (PPOConfig(batch_size=2048, micro_batch_size=7), True, 7),
        (PPOConfig(batch_size=64), False, 64),
        (PQNConfig(name="pqn", batch_size=1024), False, 1024),
        (DQNConfig(name="dqn", batch_size=1024), False, 1024),
    ],
)
def test_what_goes_through_the_network_together_on_two_cores(
    algorithm: PPOConfig | DQNConfig | PQNConfig, on_gpu: bool, expected: int
) -> None:
    found = timesteps_together(
        algorithm,
        network_of(12, 144, 160),
        bf16=False,
        on_gpu=on_gpu,
        cpus=2,
        cache_bytes=16 * MIB,
    )
    assert found == expected


class Noise(TinyEnv):
    observation_space = spaces.Box(0, 255, (1, *STACK[1:]), np.uint8)

    def _frame(self) -> NDArray[np.uint8]:
        size = self.observation_space.shape
        return self.np_random.integers(0, 256, size=size, dtype=np.uint8)


def config_of(**algorithm: Any) -> RunConfig:
    head = {"game": "duel", "total_timesteps": 1_000, "run_dir": "runs/x", "device": "cpu"}
    return RunConfig.model_validate(head | {"env": {"n_envs": 16}, "algorithm": algorithm})


def updated(config: RunConfig, folder: Path) -> tuple[LeanPPO, dict[str, torch.Tensor]]:
    """The model after one update, and its weights."""
    stacked = VecFrameStack(DummyVecEnv([Noise] * 16), STACK[0], channels_order="first")
    with torch_threads(1):
        model = make_algorithm(
            config,
            VecMonitor(stacked),
            RunDir(folder),
            packing=FramePacking((1, *STACK[1:])),
            stream="algorithm",
        )
        assert isinstance(model, LeanPPO)
        model.learn(512)
    return model, dict(model.policy.state_dict())


def test_a_batch_in_the_parts_that_auto_chooses_moves_the_weights_as_the_whole_does(
    tmp_path: Path,
) -> None:
    values = {"n_steps": 32, "batch_size": 512, "n_epochs": 1, "precision": "float32"}
    config = resolved_on(config_of(**values), STACK, ONE_CPU)
    parted, found = updated(config, tmp_path)
    assert parted.micro_batch_size == 256
    whole, expected = updated(config_of(**values, micro_batch_size=None), tmp_path)
    assert whole.micro_batch_size is None
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=1e-3, atol=2e-4, msg=name)
