"""The arithmetic against SB3's own loop and against counting moment by moment."""

from typing import Any

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
from game_rl.config.schema import RunConfig
from game_rl.preflight.workload import MeasuredSpeed, forecast_speed, training_arithmetic
from game_rl.system.units import format_duration
from tests.preflight.conftest import make_config


class Idle(gym.Env[np.ndarray, int]):
    observation_space = spaces.Box(0, 1, (2,), np.float32)
    action_space: Any = spaces.Discrete(2)

    def reset(self, **_: object) -> tuple[np.ndarray, dict]:
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


MEASURED = MeasuredSpeed(
    emulation_s=0.004,
    inference_s=0.002,
    gradient_step_s=0.030,
    evaluation_vec_step_s=0.003,
    checkpoint_s=0.050,
    start_s=1.5,
)


def simulated(config: RunConfig, episode_timesteps: int, ways: tuple[str, ...]) -> dict[str, float]:
    """Seconds of each part, by a clock that is moved on event by event."""
    algorithm, evaluation, checkpoints = config.algorithm, config.evaluation, config.checkpoints
    clock = dict.fromkeys(
        ("emulation", "inference", "update", "evaluation", "checkpoints", "start"), 0.0
    )
    clock["start"] = MEASURED.start_s + 10.0  # in which baselines are played
    timesteps, evaluated, saved = 0, 0, 0
    while timesteps < config.total_timesteps:
        for _ in range(algorithm.n_steps):
            clock["emulation"] += MEASURED.emulation_s
            clock["inference"] += MEASURED.inference_s
            timesteps += config.env.n_envs
        for _ in range(algorithm.n_epochs):
            for _ in range(0, algorithm.n_steps * config.env.n_envs, algorithm.batch_size):
                clock["update"] += MEASURED.gradient_step_s
        is_last = timesteps >= config.total_timesteps
        if is_last or timesteps // evaluation.every_timesteps > evaluated:
            for _ in ways:
                clock["evaluation"] += evaluation_s(config, evaluation.episodes, episode_timesteps)
            clock["checkpoints"] += MEASURED.checkpoint_s  # as the best so far
        if is_last or timesteps // checkpoints.every_timesteps > saved:
            clock["checkpoints"] += MEASURED.checkpoint_s
        evaluated = timesteps // evaluation.every_timesteps
        saved = timesteps // checkpoints.every_timesteps
    clock["evaluation"] += evaluation_s(config, evaluation.final_episodes, episode_timesteps)
    return clock


def evaluation_s(config: RunConfig, episodes: int, episode_timesteps: int) -> float:
    """Each env plays its share of the episodes; the others wait for the busiest."""
    left = [0] * min(config.evaluation.n_envs, episodes)
    for episode in range(episodes):
        left[episode % len(left)] += episode_timesteps
    return max(left) * MEASURED.evaluation_vec_step_s


@given(
    n_envs=st.integers(1, 8),
    minibatches=st.integers(1, 4),
    n_epochs=st.integers(1, 3),
    rollouts=st.integers(1, 10),
    rest=st.integers(0, 63),
    ways=st.sampled_from([("the likeliest actions", "drawn ones"), ("drawn ones",)]),
    rhythm=st.tuples(st.integers(64, 2_000), st.integers(64, 2_000)),
    episodes=st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4)),
)
def test_a_forecast_is_the_sum_of_what_happens(
    n_envs: int,
    minibatches: int,
    n_epochs: int,
    rollouts: int,
    rest: int,
    ways: tuple[str, ...],
    rhythm: tuple[int, int],
    episodes: tuple[int, int, int],
) -> None:
    batch, n_steps = 16 * n_envs // minibatches, 16
    rollout = n_steps * n_envs
    if batch < 2 or rollout % batch:
        batch = rollout
    config = make_config(
        total_timesteps=rollouts * rollout + rest,
        env={"n_envs": n_envs},
        algorithm={"n_steps": n_steps, "batch_size": batch, "n_epochs": n_epochs},
        evaluation={
            "every_timesteps": max(rhythm[0], rollout),
            "episodes": episodes[0],
            "final_episodes": episodes[1],
            "n_envs": episodes[2],
            "deterministic": "auto" if len(ways) == 2 else False,
        },
        checkpoints={"every_timesteps": max(rhythm[1], rollout)},
    )
    speed = forecast_speed(config, training_arithmetic(config), MEASURED, episode_timesteps=50)
    expected = simulated(config, 50, ways)
    assert dict(speed.seconds) == pytest.approx(expected)
    assert speed.wall_s == pytest.approx(sum(expected.values()))
    trained = -(-config.total_timesteps // rollout) * rollout
    assert speed.timesteps_per_s == pytest.approx(trained / speed.wall_s)
    assert speed.share(*speed.seconds) == pytest.approx(1)


def test_new_episodes_count_as_often_as_evaluations_can_nominate() -> None:
    def evaluating_s(**keys: object) -> float:
        config = make_config(evaluation={"every_timesteps": 200_000, "episodes": 3}, **keys)
        training = training_arithmetic(config)
        speed = forecast_speed(config, training, MEASURED, episode_timesteps=50)
        return speed.seconds["evaluation"]

    # at 400, 600 and 800 thousand timesteps; at the end nothing is nominated
    # four batches each
    most = 3 * 4 * -(-10 // 3) * 50 * MEASURED.evaluation_vec_step_s
    added = evaluating_s(stop_when={"success_rate": 0.9, "confirm_episodes": 10}) - evaluating_s()
    assert added == pytest.approx(most)
    assert evaluating_s(stop_when={"hours": 9}) == evaluating_s()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (320.2, "5 min 20 s"),
        (3_599.9, "1 h"),
        (11_430, "3 h 10 min"),
        (86_399, "1 d"),
        (187_200, "2 d 4 h"),
    ],
)
def test_durations_are_told_in_two_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
