import csv
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.vec_env import VecEnv

from game_rl.callbacks.checkpoint import CheckpointCallback
from game_rl.callbacks.evaluation import (
    EvaluationCallback,
    evaluate,
)
from game_rl.checkpoints.checkpoint import Best, Checkpoint
from game_rl.events import EventLog
from game_rl.run_dir import RunDir
from tests.callbacks.conftest import make_checkpoints, tiny_vec_env
from tests.tiny_env import EPISODE_LENGTH, TinyEnv

MakeModel = Callable[..., PPO]


class Scripted:
    """Plays a fixed list of actions round and round, whatever it sees."""

    def __init__(self, actions: list[int]) -> None:
        self._actions = actions
        self._calls = 0

    def predict(
        self,
        observation: np.ndarray,
        state: object = None,  # noqa: ARG002
        episode_start: object = None,  # noqa: ARG002
        deterministic: bool = False,  # noqa: ARG002
    ) -> tuple[np.ndarray, None]:
        action = self._actions[self._calls % len(self._actions)]
        self._calls += 1
        return np.full(len(observation), action), None


def callbacks(run_dir: RunDir, env: VecEnv, every: int) -> tuple[CallbackList, CheckpointCallback]:
    checkpoints = make_checkpoints(run_dir, every=10_000, keep_last=1)
    evaluation = EvaluationCallback(
        partial(evaluate, vec_env=env, episodes=3, deterministic=True, seed=0),
        checkpoints,
        run_dir,
        every_timesteps=every,
        episodes=3,
        events=EventLog(),
    )
    return CallbackList([evaluation, checkpoints]), checkpoints


def rows(run_dir: RunDir) -> list[dict[str, str]]:
    with run_dir.evaluations.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("n_envs", [1, 2, 3])
def test_evaluation_agrees_with_a_plain_loop_over_episodes(n_envs: int) -> None:
    actions = [0, 1, 1, 0, 1, 1, 0]
    found = evaluate(
        Scripted(actions), tiny_vec_env(n_envs), episodes=6, deterministic=True, seed=0
    )

    rewards, successes = [], []
    script = Scripted(actions)
    for _ in range(6 // n_envs):
        env = TinyEnv()
        env.reset(seed=0)
        episode = [script.predict(np.zeros(1))[0][0] for _ in range(EPISODE_LENGTH)]
        results = [env.step(action) for action in episode]
        rewards += [sum(result[1] for result in results)] * n_envs
        successes += [results[-1][4]["is_success"]] * n_envs
    assert found.mean_reward == pytest.approx(np.mean(rewards))
    assert found.std_reward == pytest.approx(np.std(rewards))
    assert found.success_rate == pytest.approx(np.mean(successes))
    assert (found.mean_length, found.episodes) == (EPISODE_LENGTH, 6)


def test_evaluates_after_each_multiple_and_at_the_end(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    both, _ = callbacks(run_dir, tiny_vec_env(), every=20)
    make_model().learn(48, callback=both)
    assert [int(row["timesteps"]) for row in rows(run_dir)] == [24, 40, 48]


def test_best_model_is_the_one_with_the_highest_mean_reward(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    both, checkpoints = callbacks(run_dir, tiny_vec_env(), every=8)
    make_model().learn(48, callback=both)
    history = [float(row["mean_reward"]) for row in rows(run_dir)]
    running_best = [
        all(history[i] > earlier for earlier in history[:i]) for i in range(len(history))
    ]
    assert [row["is_best"] == "True" for row in rows(run_dir)] == running_best
    best_at = 8 * (history.index(max(history)) + 1)
    assert checkpoints.best is not None
    assert checkpoints.best.timesteps == best_at
    assert checkpoints.best.mean_reward == pytest.approx(max(history), abs=1e-4)  # rounded there
    saved = Checkpoint(run_dir.checkpoint(best_at)).state
    assert saved.best == checkpoints.best


def test_a_better_model_from_before_a_resume_is_kept(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    both, checkpoints = callbacks(run_dir, tiny_vec_env(), every=8)
    best = Best(timesteps=8, mean_reward=EPISODE_LENGTH + 1.0)  # more than the env can give
    checkpoints.best = best
    make_model().learn(16, callback=both)
    assert Checkpoint(run_dir.checkpoint(16)).state.best == best
    assert {row["is_best"] for row in rows(run_dir)} == {"False"}


def test_an_interrupted_training_is_not_evaluated_again(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    class StopAtOnce(BaseCallback):
        def _on_step(self) -> bool:
            return False

    both, _ = callbacks(run_dir, tiny_vec_env(), every=8)
    make_model().learn(48, callback=CallbackList([both, StopAtOnce()]))
    assert not run_dir.evaluations.exists()
