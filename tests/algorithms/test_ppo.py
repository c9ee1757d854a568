"""Gradient accumulation against SB3's own PPO, which takes the minibatch at once."""

import copy
import inspect
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from game_rl.algorithms.data_parallel import torch_threads
from game_rl.algorithms.ppo import make_ppo
from game_rl.buffers.rollout_buffer import PackedRolloutBuffer
from game_rl.config.algorithms import PPOConfig
from game_rl.config.values import LinearSchedule
from game_rl.system.placement import Precision
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from tests.algorithms.conftest import Witness
from tests.tiny_context import tiny_context
from tests.tiny_env import TinyEnv

NEITHER_DEFAULT: dict[str, Any] = {
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
    schedules: dict[str, Any] = {name: LinearSchedule(start=0.4, end=0.1)}
    model = make(**NEITHER_DEFAULT, **schedules)
    value = getattr(model, SCHEDULES[name])
    assert [value(p) for p in (1.0, 0.5, 0.0)] == pytest.approx([0.4, 0.25, 0.1])


def test_the_value_function_is_clipped_only_if_asked() -> None:
    assert make(**NEITHER_DEFAULT).clip_range_vf is None
    assert make(**NEITHER_DEFAULT, clip_range_vf=0.3).clip_range_vf(0.5) == pytest.approx(0.3)


def test_the_memory_order_changes_no_gradient() -> None:
    model = make(**NEITHER_DEFAULT)
    plain = copy.deepcopy(model.policy)
    plain.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]  # torch's stub lacks it
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


@pytest.mark.slow
def test_ppo_learns_to_take_the_rewarded_action() -> None:
    model = make_tiny_ppo(PPOConfig(n_steps=32, batch_size=64, n_epochs=4, learning_rate=1e-3))
    model.learn(1_500)
    observation: Any = model.get_env().reset()
    actions, _ = model.predict(observation, deterministic=True)
    assert actions.tolist() == [1, 1]


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


@pytest.mark.slow
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


@pytest.mark.slow
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
    assert isinstance(model.rollout_buffer, PackedRolloutBuffer)
    samples = model.rollout_buffer.samples

    def counted(indices: np.ndarray) -> Any:
        sizes.append(len(indices))
        return samples(indices)

    monkeypatch.setattr(model.rollout_buffer, "samples", counted)
    learned(model, 48)
    assert sizes == [8] * 12


N_STEPS = 12


def make_in_halves(vec_env: HalvedVecEnv) -> PPO:
    model = make_ppo(
        PPOConfig(n_steps=N_STEPS, batch_size=N_STEPS, gamma=0.9),
        tiny_context(vec_env, frame_stack=2),
    )
    model.set_logger(Logger(None, []))
    return model


def plain_rollout(model: Any, vec_env: HalvedVecEnv, callback: BaseCallback) -> None:
    """First half, second half, one vec step, and again."""
    buffer, policy = model.rollout_buffer, model.policy
    policy.set_training_mode(False)
    buffer.reset()
    callback.on_rollout_start()
    for _ in range(N_STEPS):
        parts = []
        for bounds in vec_env.bounds:
            with torch.no_grad():
                parts.append(policy(obs_as_tensor(model._last_obs[bounds], model.device)))
        actions, values, log_probs = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
        new_obs, rewards, dones, infos = vec_env.step(actions.numpy())
        model.num_timesteps += vec_env.num_envs
        callback.update_locals(locals())
        callback.on_step()
        model._update_info_buffer(infos, dones)
        for number, info in enumerate(infos):
            if dones[number] and info["TimeLimit.truncated"]:
                last = torch.from_numpy(info["terminal_observation"])[None]
                with torch.no_grad():
                    rewards[number] += model.gamma * policy.predict_values(last).item()
        buffer.add(model._last_obs, actions, rewards, model._last_episode_starts, values, log_probs)
        model._last_obs, model._last_episode_starts = new_obs, dones
    with torch.no_grad():
        last_values = policy.predict_values(torch.from_numpy(model._last_obs))
    buffer.compute_returns_and_advantage(last_values, dones)
    callback.on_rollout_end()


def arrays(model: PPO) -> dict[str, np.ndarray]:
    found = {k: v for k, v in vars(model.rollout_buffer).items() if isinstance(v, np.ndarray)}
    return copy.deepcopy(found)


def test_rollouts_are_those_of_a_plain_loop(vec_env: HalvedVecEnv) -> None:
    outcomes = []
    for collect in ("by turns", "plainly"):
        model, witness = make_in_halves(vec_env), Witness()
        model._setup_learn(10**6, witness)
        rollouts = []
        for _ in range(3):  # the next one goes on where the last one ended
            if collect == "plainly":
                plain_rollout(model, vec_env, witness)
            else:
                model.collect_rollouts(vec_env, witness, model.rollout_buffer, N_STEPS)
            rollouts.append(arrays(model))
        outcomes.append((rollouts, witness.seen, model.num_timesteps, model._last_obs))
    np.testing.assert_equal(outcomes[0], outcomes[1])
    dones = [seen[1] for seen in outcomes[0][1] if isinstance(seen, list)]
    assert np.any(dones)


def test_a_callback_can_end_the_rollout(vec_env: HalvedVecEnv) -> None:
    model, witness = make_in_halves(vec_env), Witness(last_step=9)
    model.learn(1_000, callback=witness)
    assert model.num_timesteps == 9
    assert witness.seen[-1] != "end"
    vec_env.reset()  # the half that was under way is in nobody's way


@pytest.mark.slow  # without halves, PPO learns with the fast ones
def test_it_learns_to_take_the_rewarded_action(vec_env: HalvedVecEnv) -> None:
    model = make_ppo(
        PPOConfig(n_steps=32, batch_size=96, n_epochs=4, learning_rate=1e-3),
        tiny_context(vec_env, frame_stack=2),
    )
    model.learn(2_000)
    observation: Any = vec_env.reset()
    actions, _ = model.predict(observation, deterministic=True)
    assert actions.tolist() == [1, 1, 1]
