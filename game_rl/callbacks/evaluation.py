"""Evaluation while training: SB3's EvalCallback by timesteps, with a history that survives."""

import csv
import io
import time
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
from game_rl.callbacks.stop import StopRequest
from game_rl.checkpoints.random_numbers import restore_random_numbers, save_random_numbers
from game_rl.events import Evaluated, Evaluating, EventLog
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


class EvaluationInterrupted(Exception):  # noqa: N818 - not an error
    """The run was asked to stop, and an evaluation can be played again."""


def evaluate(
    policy: PolicyPredictor,
    vec_env: VecEnv,
    *,
    episodes: int,
    deterministic: bool,
    seed: int,
    stop: StopRequest | None = None,
) -> Evaluation:
    """Play whole episodes; the same seed plays the same start states and idle frames.

    Raises:
        EvaluationInterrupted: `stop` was asked for meanwhile.
    """
    onlooker = _Onlooker(stop)
    vec_env.seed(seed)
    with torch_threads(1):
        rewards, lengths = evaluate_policy(
            policy,
            vec_env,
            n_eval_episodes=episodes,
            deterministic=deterministic,
            return_episode_rewards=True,
            callback=onlooker,
        )
    return Evaluation(
        episodes=episodes,
        mean_reward=float(np.mean(rewards)),
        std_reward=float(np.std(rewards)),
        success_rate=float(np.mean(onlooker.successes)) if onlooker.successes else None,
        mean_length=float(np.mean(lengths)),
    )


class _Onlooker:
    """What SB3's evaluate_policy calls after each timestep of each env."""

    def __init__(self, stop: StopRequest | None) -> None:
        self.successes: list[bool] = []
        self._stop = stop

    def __call__(self, local: dict[str, Any], _: dict[str, Any]) -> None:
        if self._stop is not None and self._stop.is_asked:
            raise EvaluationInterrupted
        # an episode counts only while the env's share of episodes is open
        counted = local["episode_counts"][local["i"]] < local["episode_count_targets"][local["i"]]
        success = local["info"].get("is_success")
        if local["done"] and counted and success is not None:
            self.successes.append(bool(success))


def evaluated_event(
    evaluation: Evaluation,
    *,
    timesteps: int,
    policy_timesteps: int,
    seconds: float,
    is_best: bool = False,
    is_final: bool = False,
) -> Evaluated:
    return Evaluated(
        timesteps=timesteps,
        policy_timesteps=policy_timesteps,
        episodes=evaluation.episodes,
        mean_reward=evaluation.mean_reward,
        std_reward=evaluation.std_reward,
        success_rate=evaluation.success_rate,
        mean_length=evaluation.mean_length,
        seconds=round(seconds, 3),
        is_best=is_best,
        is_final=is_final,
    )


class EvaluationCallback(BoundaryCallback):
    """Plays `episodes` episodes at the first boundary after each multiple, and at the end.

    Every evaluation of a run plays the same seeds, so that they compare. Writes `eval/…` to
    TensorBoard, a row to `eval.csv`, and has the checkpoint callback keep the best model.

    A stop does not wait for an evaluation: it is broken off and noted in the checkpoint, and the
    run that goes on from there plays it first.

    Args:
        evaluate: plays `episodes` episodes with a policy; see the function of that name.
    """

    def __init__(
        self,
        evaluate: Callable[[PolicyPredictor], Evaluation],
        checkpoints: CheckpointCallback,
        run_dir: RunDir,
        *,
        every_timesteps: int,
        episodes: int,
        events: EventLog,
    ) -> None:
        super().__init__()
        self._evaluate = evaluate
        self._checkpoints = checkpoints
        self._run_dir = run_dir
        self._interval = Interval(every_timesteps)
        self._episodes = episodes
        self._events = events
        self._evaluated_at: int | None = None

    def _on_training_start(self) -> None:
        super()._on_training_start()
        self._interval.last_timesteps = self.num_timesteps

    def _on_rollout_start(self) -> None:
        super()._on_rollout_start()
        if self._checkpoints.evaluation_due and self.num_timesteps == self._started_at:
            self._evaluate_now()

    def on_boundary(self, *, is_last: bool) -> None:
        due = self._interval.crossed(self.boundary_timesteps)
        is_complete = is_last and self.boundary_timesteps >= self.model._total_timesteps
        if due or (is_complete and self.boundary_timesteps != self._evaluated_at):
            self._evaluate_now()

    def _evaluate_now(self) -> None:
        timesteps, started = self.boundary_timesteps, time.monotonic()
        random = save_random_numbers()
        self._events.emit(
            Evaluating(timesteps=timesteps, policy_timesteps=timesteps, episodes=self._episodes)
        )
        try:
            evaluation = self._evaluate(self.model)
        except EvaluationInterrupted:
            restore_random_numbers(random)
            self._checkpoints.evaluation_due = True
            return
        self._checkpoints.evaluation_due = False
        self._evaluated_at = timesteps
        self._keep(evaluation, seconds=time.monotonic() - started)

    def _keep(self, evaluation: Evaluation, *, seconds: float) -> None:
        best, timesteps = self._checkpoints.best, self.boundary_timesteps
        is_best = best is None or evaluation.mean_reward > best.mean_reward
        self._log(evaluation)
        self._append_row(evaluation, is_best=is_best)
        self._events.emit(
            evaluated_event(
                evaluation,
                timesteps=timesteps,
                policy_timesteps=timesteps,
                seconds=seconds,
                is_best=is_best,
            )
        )
        if is_best:  # last: it saves the run as it is
            self._checkpoints.keep_as_best(evaluation.mean_reward)

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
