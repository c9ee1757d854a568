"""Evaluation while training: SB3's EvalCallback by timesteps, with a history that survives."""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import KVWriter
from stable_baselines3.common.type_aliases import PolicyPredictor
from stable_baselines3.common.vec_env import VecEnv

from game_rl.callbacks.boundary import BoundaryCallback, Interval
from game_rl.callbacks.checkpoint import CheckpointCallback
from game_rl.run_dir import RunDir, write_atomic
from game_rl.system.threads import torch_threads


@dataclass(frozen=True)
class Evaluation:
    """What so many episodes gave; reward undiscounted, length in timesteps.

    Attributes:
        success_rate: share of episodes whose game file calls them a success, 0..1; None if it
            does not say what success is.
    """

    episodes: int
    mean_reward: float
    std_reward: float
    success_rate: float | None
    mean_length: float


def evaluate(
    policy: PolicyPredictor, vec_env: VecEnv, *, episodes: int, deterministic: bool, seed: int
) -> Evaluation:
    """Play whole episodes; the same seed plays the same start states and idle frames."""
    successes: list[bool] = []

    def note_success(local: dict[str, Any], _: dict[str, Any]) -> None:
        # evaluate_policy counts an episode only while the env's share of episodes is open
        counted = local["episode_counts"][local["i"]] < local["episode_count_targets"][local["i"]]
        success = local["info"].get("is_success")
        if local["done"] and counted and success is not None:
            successes.append(bool(success))

    vec_env.seed(seed)
    with torch_threads(1):
        rewards, lengths = evaluate_policy(
            policy,
            vec_env,
            n_eval_episodes=episodes,
            deterministic=deterministic,
            return_episode_rewards=True,
            callback=note_success,
        )
    return Evaluation(
        episodes=episodes,
        mean_reward=float(np.mean(rewards)),
        std_reward=float(np.std(rewards)),
        success_rate=float(np.mean(successes)) if successes else None,
        mean_length=float(np.mean(lengths)),
    )


class EvaluationCallback(BoundaryCallback):
    """Plays `episodes` episodes at the first boundary after each multiple, and at the end.

    Every evaluation of a run plays the same seeds, so that they compare. Writes `eval/…` to
    TensorBoard, a row to `eval.csv`, and has the checkpoint callback keep the best model.
    """

    def __init__(
        self,
        vec_env: VecEnv,
        checkpoints: CheckpointCallback,
        run_dir: RunDir,
        *,
        every_timesteps: int,
        episodes: int,
        deterministic: bool,
        seed: int,
    ) -> None:
        super().__init__()
        self.latest: Evaluation | None = None
        self._vec_env = vec_env
        self._checkpoints = checkpoints
        self._run_dir = run_dir
        self._interval = Interval(every_timesteps)
        self._evaluate: Callable[[PolicyPredictor], Evaluation] = lambda policy: evaluate(
            policy, vec_env, episodes=episodes, deterministic=deterministic, seed=seed
        )
        self._evaluated_at: int | None = None

    def _on_training_start(self) -> None:
        super()._on_training_start()
        self._interval.last_timesteps = self.num_timesteps

    def on_boundary(self, *, is_last: bool) -> None:
        due = self._interval.crossed(self.boundary_timesteps)
        is_complete = is_last and self.boundary_timesteps >= self.model._total_timesteps
        if due or (is_complete and self.boundary_timesteps != self._evaluated_at):
            self._evaluated_at = self.boundary_timesteps
            self._evaluate_now()

    def _evaluate_now(self) -> None:
        evaluation = self._evaluate(self.model)
        self.latest = evaluation
        best = self._checkpoints.best
        is_best = best is None or evaluation.mean_reward > best.mean_reward
        self._log(evaluation)
        self._append_row(evaluation, is_best=is_best)
        if is_best:
            self._checkpoints.keep_as_best(
                evaluation.mean_reward
            )  # last: it saves the run as it is

    def _log(self, evaluation: Evaluation) -> None:
        values: dict[str, Any] = {
            "eval/mean_reward": evaluation.mean_reward,
            "eval/mean_ep_length": evaluation.mean_length,
        }
        if evaluation.success_rate is not None:
            values["eval/success_rate"] = evaluation.success_rate
        # not by the logger's `dump`: it would write what the update recorded for the next one
        for output in self.logger.output_formats:
            if isinstance(output, KVWriter):
                output.write(values, dict.fromkeys(values, ()), self.boundary_timesteps)

    def _append_row(self, evaluation: Evaluation, *, is_best: bool) -> None:
        row: dict[str, object] = {
            "timesteps": self.boundary_timesteps,
            "episodes": evaluation.episodes,
            "mean_reward": round(evaluation.mean_reward, 4),
            "std_reward": round(evaluation.std_reward, 4),
            "success_rate": evaluation.success_rate,
            "mean_length": round(evaluation.mean_length, 1),
            "is_best": is_best,
        }
        path = self._run_dir.evaluations
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(row), lineterminator="\n")
        if path.exists():
            text.write(path.read_text())
        else:
            writer.writeheader()
        writer.writerow(row)
        write_atomic(path, text.getvalue())
