"""Gradient accumulation against SB3's own PPO, which takes the minibatch at once."""

from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from game_rl.algorithms.make_algorithm import make_ppo
from game_rl.config.algorithms import PPOConfig
from game_rl.system.threads import torch_threads
from tests.tiny_context import tiny_context
from tests.tiny_env import TinyEnv

CONFIG = {"n_steps": 24, "batch_size": 24, "n_epochs": 2, "ent_coef": 0.02, "learning_rate": 1e-3}


class Curves(KVWriter):
    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def write(self, key_values: dict[str, Any], *_: object, **__: object) -> None:
        self.values |= key_values

    def close(self) -> None:
        pass


def sb3(**values: object) -> PPO:
    """SB3's PPO with SB3's buffer, network and optimiser, but our seed."""
    arguments = {name: value for name, value in values.items() if name != "micro_batch_size"}
    vec_env = VecMonitor(DummyVecEnv([TinyEnv] * 2))
    return PPO("CnnPolicy", vec_env, seed=0, device="cpu", **arguments)  # type: ignore[arg-type]


def ours(**values: object) -> PPO:
    return make_ppo(
        PPOConfig.model_validate(values),
        tiny_context(VecMonitor(DummyVecEnv([TinyEnv] * 2))),
    )


def learned(model: PPO, timesteps: int) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    curves = Curves()
    model.set_logger(Logger(None, [curves]))
    model.learn(timesteps, log_interval=1)
    model.logger.dump()
    return dict(model.policy.state_dict()), curves.values


@pytest.mark.parametrize("micro_batch_size", [None, 24, 8, 7, 1])
@pytest.mark.parametrize(
    "extra",
    [{}, {"normalize_advantage": False}, {"clip_range_vf": 0.05}, {"target_kl": 1e-7}],
    ids=lambda extra: next(iter(extra), "defaults"),
)
def test_parts_of_a_minibatch_move_the_weights_as_the_whole_does(
    micro_batch_size: int | None, extra: dict[str, object]
) -> None:
    expected, their_curves = learned(sb3(**CONFIG, **extra), 96)
    values = {**CONFIG, **extra, "micro_batch_size": micro_batch_size}
    found, our_curves = learned(ours(**values), 96)
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=1e-3, atol=2e-4, msg=name)
    for name, value in their_curves.items():
        if name.startswith("train/"):
            assert our_curves[name] == pytest.approx(value, rel=2e-2, abs=2e-4), name


@pytest.mark.parametrize("micro_batch_size", [None, 80])
def test_cores_that_share_a_minibatch_move_the_weights_as_one_does(
    micro_batch_size: int | None,
) -> None:
    values = {**CONFIG, "n_steps": 60, "batch_size": 120}
    expected, their_curves = learned(sb3(**values), 240)
    values["micro_batch_size"] = micro_batch_size
    with torch_threads(3):
        found, our_curves = learned(ours(**values), 240)
        again, _ = learned(ours(**values), 240)
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=1e-3, atol=2e-4, msg=name)
        assert torch.equal(found[name], again[name]), name
    for name, value in their_curves.items():
        if name.startswith("train/"):
            assert our_curves[name] == pytest.approx(value, rel=2e-2, abs=2e-4), name


def test_every_curve_of_sb3_is_there() -> None:
    _, theirs = learned(sb3(**CONFIG, clip_range_vf=0.2), 48)
    _, found = learned(ours(**CONFIG, clip_range_vf=0.2, micro_batch_size=8), 48)
    assert found.keys() == theirs.keys()


def test_a_minibatch_is_never_unpacked_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ours(**CONFIG, micro_batch_size=8)
    sizes: list[int] = []
    samples = model.rollout_buffer.samples

    def counted(indices: np.ndarray) -> Any:
        sizes.append(len(indices))
        return samples(indices)

    monkeypatch.setattr(model.rollout_buffer, "samples", counted)
    learned(model, 48)
    assert sizes == [8] * 12
