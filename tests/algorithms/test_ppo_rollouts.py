"""Rollouts by turns against a plain loop in which nothing overlaps."""

import copy

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.utils import obs_as_tensor

from game_rl.algorithms.make_algorithm import make_ppo
from game_rl.config.algorithms import PPOConfig
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from tests.algorithms.conftest import Witness
from tests.tiny_context import tiny_context

N_STEPS = 12


def make(vec_env: HalvedVecEnv) -> PPO:
    model = make_ppo(
        PPOConfig(n_steps=N_STEPS, batch_size=N_STEPS, gamma=0.9),
        tiny_context(vec_env, frame_stack=2),
    )
    model.set_logger(Logger(None, []))
    return model


def plain_rollout(model: PPO, vec_env: HalvedVecEnv, callback: BaseCallback) -> None:
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
        model, witness = make(vec_env), Witness()
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
    model, witness = make(vec_env), Witness(last_step=9)
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
    actions, _ = model.predict(vec_env.reset(), deterministic=True)
    assert actions.tolist() == [1, 1, 1]
