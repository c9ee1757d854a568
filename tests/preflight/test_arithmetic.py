"""The arithmetic against SB3's own loop and against counting moment by moment."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

from game_rl.callbacks.boundary import Interval
from game_rl.preflight.arithmetic import training_arithmetic
from tests.preflight.conftest import make_config


class Idle(gym.Env[np.ndarray, int]):
    observation_space = spaces.Box(0, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, **_: object) -> tuple[np.ndarray, dict]:  # type: ignore[override]
        return np.zeros(2, np.float32), {}

    def step(self, _: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        return np.zeros(2, np.float32), 0.0, False, False, {}


class Counter(BaseCallback):
    def __init__(self, every: int) -> None:
        super().__init__()
        self.updates = 0
        self.due = 0
        self.interval = Interval(every)

    def _on_rollout_start(self) -> None:
        self.due += self.interval.crossed(self.num_timesteps)

    def _on_rollout_end(self) -> None:
        self.updates += 1

    def _on_training_end(self) -> None:
        self.due += 1

    def _on_step(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("n_envs", "n_steps", "batch", "epochs", "total"),
    [(2, 8, 4, 3, 100), (3, 5, 15, 1, 45), (1, 16, 8, 2, 17), (4, 4, 2, 2, 16)],
)
def test_sb3_does_what_the_arithmetic_says(
    n_envs: int, n_steps: int, batch: int, epochs: int, total: int
) -> None:
    every = n_envs * n_steps + 3
    config = make_config(
        total_timesteps=total,
        env__n_envs=n_envs,
        algorithm__n_steps=n_steps,
        algorithm__batch_size=batch,
        algorithm__n_epochs=epochs,
        evaluation__every_timesteps=every,
    )
    model = PPO(
        "MlpPolicy",
        DummyVecEnv([Idle] * n_envs),
        n_steps=n_steps,
        batch_size=batch,
        n_epochs=epochs,
        device="cpu",
    )
    gradient_steps = []
    model.policy.optimizer.register_step_post_hook(lambda *_: gradient_steps.append(1))
    counter = Counter(every)
    model.learn(total, callback=counter)

    expected = training_arithmetic(config)
    assert expected.updates == counter.updates
    assert expected.final_timesteps == model.num_timesteps
    assert expected.gradient_steps_per_update * counter.updates == len(gradient_steps)
    assert expected.evaluations == counter.due


@given(
    n_envs=st.integers(1, 8),
    n_steps=st.integers(2, 50),
    total=st.integers(1, 5_000),
    every=st.integers(1, 5_000),
)
def test_checkpoints_and_evaluations_are_those_of_a_dumb_count(
    n_envs: int, n_steps: int, total: int, every: int
) -> None:
    rollout = n_envs * n_steps
    total, every = max(total, rollout), max(every, rollout)
    config = make_config(
        total_timesteps=total,
        env__n_envs=n_envs,
        algorithm__n_steps=n_steps,
        algorithm__batch_size=rollout,
        evaluation__every_timesteps=every,
        checkpoints__every_timesteps=every,
    )
    timesteps, due, at_the_end = 0, 0, False
    while timesteps < total:
        crossed = any(n % every == 0 for n in range(timesteps + 1, timesteps + rollout + 1))
        timesteps += rollout
        due += crossed
        at_the_end = crossed
    found = training_arithmetic(config)
    assert found.evaluations == due + (not at_the_end)
    assert found.checkpoints == due + (not at_the_end)


@pytest.mark.parametrize(
    ("n_envs", "train_freq", "gradient_steps", "starts", "total"),
    [(2, 4, 3, 20, 100), (1, 5, 1, 0, 43), (3, 2, 2, 24, 90), (2, 1, 1, 90, 90)],
)
def test_sb3s_dqn_does_what_the_arithmetic_says(
    n_envs: int, train_freq: int, gradient_steps: int, starts: int, total: int
) -> None:
    every = n_envs * train_freq + 3
    config = make_config(
        total_timesteps=total,
        env__n_envs=n_envs,
        algorithm={
            "name": "dqn",
            "train_freq": train_freq,
            "gradient_steps": gradient_steps,
            "learning_starts": starts,
        },
        evaluation__every_timesteps=every,
    )
    model = DQN(
        "MlpPolicy",
        DummyVecEnv([Idle] * n_envs),
        buffer_size=1_000,
        train_freq=train_freq,
        gradient_steps=gradient_steps,
        learning_starts=starts,
        batch_size=2,
        device="cpu",
    )
    steps = []
    model.policy.optimizer.register_step_post_hook(lambda *_: steps.append(1))
    counter = Counter(every)
    model.learn(total, callback=counter)

    expected = training_arithmetic(config)
    assert expected.updates == counter.updates
    assert expected.final_timesteps == model.num_timesteps
    assert expected.gradient_steps == len(steps)
    assert expected.evaluations == counter.due
    assert expected.minibatches_per_epoch is None
