"""`micro_batch_size: auto`: what it may be, and that it learns as the whole batch does."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from stable_baselines3.common.policies import ActorCriticCnnPolicy
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor
from stable_baselines3.dqn import CnnPolicy

from game_rl.algorithms.automatic import resolved_on
from game_rl.algorithms.data_parallel import torch_threads
from game_rl.algorithms.encoder_sizes import NatureSize
from game_rl.algorithms.make_algorithm import make_algorithm
from game_rl.algorithms.networks import Adam, RAdam
from game_rl.algorithms.policies import DQNPolicy, LeanCnnPolicy, PQNPolicy
from game_rl.algorithms.ppo import LeanPPO
from game_rl.algorithms.recurrent_policy import recurrent_policy_to_load
from game_rl.algorithms.sizes import (
    NetworkSize,
    micro_batch_size,
    n_minibatch_parts,
    timesteps_together,
)
from game_rl.config.algorithms import DQNConfig, LayerNorm, PPOConfig, PQNConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.files.run_dir import RunDir
from game_rl.preflight.memory import gradient_step_bytes, network_of, together
from game_rl.system.machine import bf16_way
from game_rl.system.placement import Hardware, Precision
from game_rl.system.units import MIB
from tests.preflight.conftest import FACTS, make_config
from tests.preflight.torch_account import peak_of_tensors
from tests.tiny_env import TinyEnv

STACK = (4, 72, 80)
STACKS = ObservationFormat(FramePacking((1, *STACK[1:])), STACK[0])
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
    network = network_with(*stack)
    most = [max(map(sum, network.step_blocks(n, bf16=bf16).values())) for n in (10_000, 20_000)]
    assert network.sample_bytes(bf16=bf16) == (most[1] - most[0]) / 10_000


def network_with(channels: int, height: int, width: int) -> NetworkSize:
    return network_in((channels, height, width))


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
        network_with(12, 144, 160),
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
            observation_format=STACKS,
            stream="algorithm",
        )
        assert isinstance(model, LeanPPO)
        model.learn(512)
    return model, dict(model.policy.state_dict())


def test_a_batch_in_the_parts_that_auto_chooses_moves_the_weights_as_the_whole_does(
    tmp_path: Path,
) -> None:
    values = {"n_steps": 32, "batch_size": 512, "n_epochs": 1, "precision": "float32"}
    config = resolved_on(config_of(**values), STACKS, ONE_CPU)
    parted, found = updated(config, tmp_path)
    assert parted.micro_batch_size == 256
    whole, expected = updated(config_of(**values, micro_batch_size=None), tmp_path)
    assert whole.micro_batch_size is None
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=1e-3, atol=2e-4, msg=name)


SIDES = ((4, 72, 80), (4, 73, 83))
SHAPES = [(4, 72, 80), (4, 84, 84), (12, 144, 160), (1, 36, 36), (2, 37, 50)]


def policy_of(shape: tuple[int, int, int], n_actions: int) -> ActorCriticCnnPolicy:
    space = spaces.Box(0, 255, shape, np.uint8)
    return ActorCriticCnnPolicy(space, spaces.Discrete(n_actions), lambda _: 1e-3)


def network_in(
    shape: tuple[int, int, int], n_actions: int = 9, layer_norm: LayerNorm = "none"
) -> NetworkSize:
    channels, height, width = shape
    screen = NatureSize(channels=channels, height=height, width=width, layer_norm=layer_norm)
    return NetworkSize(encoders=(("screen", screen),), n_actions=n_actions, layer_norm=layer_norm)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_actions", [2, 9])
def test_parameters_are_those_of_the_policy(shape: tuple[int, int, int], n_actions: int) -> None:
    sizes = [p.numel() for p in policy_of(shape, n_actions).parameters()]
    network = network_in(shape, n_actions)
    assert network.parameters == sum(sizes)
    assert network.weights_bytes == 4 * sum(sizes)
    assert network.training_bytes == 16 * sum(sizes)
    assert network.largest_parameter <= max(sizes)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize(("layers", "hidden"), [(1, []), (2, [32])])
def test_parameters_are_those_of_the_policy_with_a_memory(
    kind: str, layers: int, hidden: list[int]
) -> None:
    memory = {"kind": kind, "size": 48, "layers": layers}
    network = {"hidden": hidden, "features": 64}
    config = PPOConfig.model_validate({"memory": memory, "network": network})
    policy = recurrent_policy_to_load(config, STACKS.space, spaces.Discrete(5))
    sizes = [p.numel() for p in policy.parameters()]
    size = NetworkSize.of(STACKS, config, n_actions=5)
    assert size.parameters == sum(sizes)
    assert size.largest_parameter <= max(sizes)


@pytest.mark.parametrize("micro_batch_size", ["auto", 100, 1])
def test_whole_sequences_go_through_the_network_together(micro_batch_size: int | str) -> None:
    memory = {"memory": {"sequence": 64}, "batch_size": 2048}
    config = PPOConfig.model_validate({**memory, "micro_batch_size": micro_batch_size})
    found = timesteps_together(
        config,
        NetworkSize.of(STACKS, config, n_actions=5),
        bf16=False,
        on_gpu=False,
        cpus=2,
        cache_bytes=MIB,
    )
    assert found % 64 == 0
    assert 64 <= found <= 2048


@pytest.mark.parametrize("shape", SHAPES)
def test_activations_are_what_the_convolutions_give(shape: tuple[int, int, int]) -> None:
    found = []
    layers = policy_of(shape, 9).features_extractor.cnn
    picture = torch.zeros(1, *shape)
    for layer in layers:
        picture = layer(picture)
        if isinstance(layer, torch.nn.Conv2d):
            found.append(picture.numel())
    channels, height, width = shape
    size = NatureSize(channels=channels, height=height, width=width)
    assert size.activations == tuple(found)


def most_bytes(network: NetworkSize, batch_size: int, *, bf16: bool) -> int:
    """Return the bytes of a step's most expensive part on this processor."""
    blocks = network.step_blocks(batch_size, bf16=bf16, way=bf16_way())
    return max(map(sum, blocks.values()))


def profiled_peak(shape: tuple[int, int, int], batch_size: int, precision: Precision) -> int:
    """The most bytes in tensors that a gradient step makes, by torch's own account."""
    space = spaces.Box(0, 255, shape, np.uint8)
    policy = LeanCnnPolicy(space, spaces.Discrete(9), lambda _: 1e-3, precision=precision)
    policy.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stub lacks it
    pictures = torch.zeros((batch_size, *shape), dtype=torch.uint8)

    def step() -> None:
        values, log_prob, _ = policy.evaluate_actions(pictures, torch.zeros(batch_size))
        (values.mean() - log_prob.mean()).backward()

    return peak_of_tensors(step)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(4, 72, 80), (12, 144, 160), (4, 90, 98)])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_the_step_is_what_torch_allocates(
    shape: tuple[int, int, int], precision: Precision
) -> None:
    network, batch_size, bf16 = network_in(shape), 128, precision == "bf16"
    gradients = 0 if bf16 else network.weights_bytes  # bf16 ones take the place of their weights
    expected = most_bytes(network, batch_size, bf16=bf16) + gradients
    assert profiled_peak(shape, batch_size, precision) == pytest.approx(expected, rel=0.03)


def test_radam_allocates_what_is_forecast_and_fused_adam_nothing() -> None:
    policy = policy_of((4, 72, 80), 9)
    for parameter in policy.parameters():
        parameter.grad = torch.ones_like(parameter)
    peaks = []
    for optimiser in (RAdam(policy.parameters()), Adam(policy.parameters(), fused=True)):
        for _ in range(6):  # RAdam's first steps are simpler
            optimiser.step()
        peaks.append(peak_of_tensors(optimiser.step))
    radam, adam = peaks
    assert radam == pytest.approx(sum(network_in((4, 72, 80)).radam_blocks()), rel=0.01)
    assert adam < 1_000


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["AVX2", "AVX512_CORE"])
def test_the_step_is_what_torch_allocates_on_a_processor_without_bf16(limit: str) -> None:
    """The test above once more, in a process whose oneDNN knows no newer instructions."""
    test = f"{__file__}::{test_the_step_is_what_torch_allocates.__name__}"
    words = [test, "-q", "-k", "bf16 and shape0", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        env=os.environ | {"ONEDNN_MAX_CPU_ISA": limit},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    assert "1 passed" in ended.stdout


@pytest.mark.parametrize("bf16", [False, True])
def test_the_step_grows_with_the_batch(*, bf16: bool) -> None:
    small, large = (network_in((4, 72, 80)).step_blocks(size, bf16=bf16) for size in (64, 128))
    for moment, blocks in small.items():
        assert sum(blocks) < sum(large[moment])


def test_pictures_whose_sides_are_no_multiples_of_four_are_copied_once_more() -> None:
    whole, odd = (network_in(shape).step_blocks(8, bf16=False) for shape in SIDES)
    assert whole["to blocks"] == [8 * 4 * 72 * 80, 4 * 8 * 4 * 72 * 80]
    assert odd["to blocks"] == [8 * 4 * 72 * 80] * 2 + [4 * 8 * 4 * 72 * 80]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_network_with_a_target_is_that_of_dqn(shape: tuple[int, int, int]) -> None:
    policy = CnnPolicy(spaces.Box(0, 255, shape, np.uint8), spaces.Discrete(7), lambda _: 1e-3)
    network = replace(network_in(shape, 7), has_value_head=False, has_target=True)
    both = 4 * sum(p.numel() for p in policy.parameters())
    one = 4 * sum(p.numel() for p in policy.q_net.parameters())
    assert (network.policy_bytes, network.weights_bytes) == (both, one)
    assert network.training_bytes == both + 3 * one  # two moments, and gradients


def pqn_policy(
    shape: tuple[int, int, int], layer_norm: LayerNorm, precision: Precision = "float32"
) -> PQNPolicy:
    space = spaces.Box(0, 255, shape, np.uint8)
    policy = PQNPolicy(
        space, spaces.Discrete(9), lambda _: 1e-3, layer_norm=layer_norm, precision=precision
    )
    return policy.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layer_norm", ["channels", "picture", "none"])
def test_parameters_of_a_normed_network_are_those_of_pqn(
    shape: tuple[int, int, int], layer_norm: LayerNorm
) -> None:
    network = replace(network_in(shape, layer_norm=layer_norm), has_value_head=False)
    policy = pqn_policy(shape, layer_norm)
    assert network.parameters == sum(p.numel() for p in policy.parameters())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layer_norm", ["channels", "picture", "none"])
def test_parameters_of_a_normed_network_with_a_target_are_those_of_dqn(
    shape: tuple[int, int, int], layer_norm: LayerNorm
) -> None:
    space = spaces.Box(0, 255, shape, np.uint8)
    policy = DQNPolicy(space, spaces.Discrete(9), lambda _: 1e-3, layer_norm=layer_norm)
    network = replace(
        network_in(shape, layer_norm=layer_norm), has_value_head=False, has_target=True
    )
    assert network.policy_bytes == sum(p.nbytes for p in policy.parameters())
    assert network.weights_bytes == sum(p.nbytes for p in policy.q_net.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(4, 72, 80), (12, 144, 160), (4, 84, 84)])
@pytest.mark.parametrize("layer_norm", ["channels", "picture"])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_the_step_of_a_normed_network_is_what_torch_allocates(
    shape: tuple[int, int, int], layer_norm: LayerNorm, precision: Precision
) -> None:
    network = replace(network_in(shape, layer_norm=layer_norm), has_value_head=False)
    policy, batch_size = pqn_policy(shape, layer_norm, precision), 128
    pictures, bf16 = torch.zeros((batch_size, *shape), dtype=torch.uint8), precision == "bf16"
    found = peak_of_tensors(lambda: policy(pictures).mean().backward())
    gradients = 0 if bf16 else network.weights_bytes  # bf16 ones take the place of their weights
    expected = most_bytes(network, batch_size, bf16=bf16) + gradients
    assert found == pytest.approx(expected, rel=0.03)


FRAME = (1, 72, 80)
N_ENVS, BATCH = 16, 512
ROLLOUT = {"n_steps": BATCH // N_ENVS, "n_epochs": 1, "batch_size": BATCH}
REPLAY = {"batch_size": BATCH, "learning_starts": BATCH, "replay": {"capacity": 2 * BATCH}}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "ppo": {"name": "ppo", "micro_batch_size": None, **ROLLOUT},
    "ppo, auto": {"name": "ppo", "micro_batch_size": "auto", **ROLLOUT},
    "pqn": {"name": "pqn", "layer_norm": "none", **ROLLOUT},
    "pqn, channels": {"name": "pqn", "layer_norm": "channels", **ROLLOUT},
    "pqn, picture": {"name": "pqn", "layer_norm": "picture", **ROLLOUT},
    "dqn": {"name": "dqn", **REPLAY},
    "dqn, channels": {"name": "dqn", "layer_norm": "channels", **REPLAY},
    "dqn, picture": {"name": "dqn", "layer_norm": "picture", **REPLAY},
    "dqn, double_q": {"name": "dqn", "layer_norm": "channels", "double_q": True, **REPLAY},
    "dqn, n_step 3": {"name": "dqn", "n_step": 3, **REPLAY},
}
FAST = ("ppo, auto", "pqn, channels")  # others run with the slow tests


class Dark(TinyEnv):
    observation_space = spaces.Box(0, 255, FRAME, np.uint8)

    def _frame(self) -> NDArray[np.uint8]:
        return np.zeros(FRAME, np.uint8)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize(
    "algorithm",
    [
        pytest.param(values, marks=() if name in FAST else pytest.mark.slow, id=name)
        for name, values in ALGORITHMS.items()
    ],
)
def test_a_trainings_gradient_step_is_what_torch_allocates(
    algorithm: dict[str, Any], precision: str, tmp_path: Path
) -> None:
    config = make_config(
        algorithm=algorithm | {"precision": precision},
        env__n_envs=N_ENVS,
        device="cpu",
    )
    facts = replace(FACTS, cpus=1, uses_bf16=precision == "bf16", bf16_way=bf16_way(), n_actions=2)
    predicted = gradient_step_bytes(config, facts)
    hardware = Hardware(has_gpu=False, cpu_has_bf16=False, cpus=1)
    config = resolved_on(config, STACKS, hardware)
    assert gradient_step_bytes(config, facts) == predicted
    assert facts.observation_format(config).nbytes == 4 * 72 * 80
    stacked = VecFrameStack(DummyVecEnv([Dark] * N_ENVS), 4, channels_order="first")
    model = make_algorithm(
        config,
        VecMonitor(stacked),
        RunDir(tmp_path),
        observation_format=facts.observation_format(config),
        stream="training",
    )
    arguments = (1, BATCH) if algorithm["name"] == "dqn" else ()  # gradient steps; samples in each
    with torch_threads(1):
        model.learn(2 * BATCH)
        model.policy.optimizer.zero_grad()  # what was there before is none of the step's
        model.policy.train()
        found = peak_of_tensors(lambda: model.train(*arguments))  # type: ignore[attr-defined]
    # bf16 gradients take the place of their weights; parts leave the sum of those before, which
    # the estimate counts among the holes between blocks
    n_gradients = (0 if facts.uses_bf16 else 1) + (together(config, facts) < BATCH)
    gradients = n_gradients * network_of(config, facts).weights_bytes
    assert found == pytest.approx(gradient_step_bytes(config, facts) + gradients, rel=0.01)
