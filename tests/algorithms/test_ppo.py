import copy
import inspect

import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from game_rl.algorithms.make_algorithm import make_ppo
from game_rl.config.algorithms import PPOConfig
from game_rl.config.values import LinearSchedule
from game_rl.system.placement import Precision
from tests.tiny_context import tiny_context
from tests.tiny_env import TinyEnv

NEITHER_DEFAULT = {
    "n_steps": 8,
    "batch_size": 4,
    "n_epochs": 3,
    "gamma": 0.9,
    "gae_lambda": 0.8,
    "normalize_advantage": False,
    "ent_coef": 0.02,
    "vf_coef": 0.7,
    "max_grad_norm": 0.3,
    "target_kl": 0.05,
}
SCHEDULES = {"learning_rate": "lr_schedule", "clip_range": "clip_range"}


def tiny(n_envs: int = 2) -> VecMonitor:
    return VecMonitor(DummyVecEnv([TinyEnv] * n_envs))


def make(precision: Precision = "float32", **values: object) -> PPO:
    return make_tiny_ppo(PPOConfig.model_validate(values), precision)


def make_tiny_ppo(config: PPOConfig, precision: Precision = "float32") -> PPO:
    return make_ppo(config, tiny_context(tiny(), precision=precision))


def test_every_number_of_the_config_reaches_ppo() -> None:
    model = make(**NEITHER_DEFAULT)
    defaults = inspect.signature(PPO).parameters
    for name, value in NEITHER_DEFAULT.items():
        assert value != defaults[name].default
        assert getattr(model, name) == value, name


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_fall_from_start_to_end(name: str) -> None:
    model = make(**NEITHER_DEFAULT, **{name: LinearSchedule(start=0.4, end=0.1)})
    value = getattr(model, SCHEDULES[name])
    assert [value(p) for p in (1.0, 0.5, 0.0)] == pytest.approx([0.4, 0.25, 0.1])


def test_the_value_function_is_clipped_only_if_asked() -> None:
    assert make(**NEITHER_DEFAULT).clip_range_vf is None
    assert make(**NEITHER_DEFAULT, clip_range_vf=0.3).clip_range_vf(0.5) == pytest.approx(0.3)


def test_the_memory_order_changes_no_gradient() -> None:
    model = make(**NEITHER_DEFAULT)
    plain = copy.deepcopy(model.policy)
    plain.to(memory_format=torch.contiguous_format)
    observations = torch.randint(0, 256, (4, *TinyEnv.observation_space.shape), dtype=torch.uint8)
    for policy in (model.policy, plain):
        values, log_prob, _ = policy.evaluate_actions(observations, torch.tensor([0, 1, 1, 0]))
        (values.sum() + log_prob.sum()).backward()
    for ours, theirs in zip(model.policy.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_the_network_is_sb3s_own_cnn_policy(precision: Precision) -> None:
    ours = make(**NEITHER_DEFAULT, precision=precision).policy.state_dict()
    theirs = PPO("CnnPolicy", tiny(), n_steps=4, batch_size=4, device="cpu").policy.state_dict()
    assert {k: v.shape for k, v in ours.items()} == {k: v.shape for k, v in theirs.items()}


def test_ppo_learns_to_take_the_rewarded_action() -> None:
    model = make_tiny_ppo(PPOConfig(n_steps=32, batch_size=64, n_epochs=4, learning_rate=1e-3))
    model.learn(1_500)
    observation = model.get_env().reset()
    actions, _ = model.predict(observation, deterministic=True)
    assert actions.tolist() == [1, 1]
