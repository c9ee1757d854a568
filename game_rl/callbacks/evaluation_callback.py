"""SB3's EvalCallback, due by timesteps, with a history and the best checkpoint."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.logger import KVWriter

from game_rl.callbacks.boundary import BoundaryCallback, Interval
from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.callbacks.evaluation import (
    Evaluation,
    EvaluationGames,
    EvaluationInterrupted,
    better_of,
    evaluated_event,
)
from game_rl.callbacks.stop_conditions import StopDecision, StopWhen
from game_rl.checkpoints.checkpoint_state import StopCounters
from game_rl.checkpoints.evaluation_files import (
    EpisodeLists,
    append_row,
    read_episodes,
    write_episodes,
)
from game_rl.events import Evaluating, StopConditionMet
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir


class EvaluationCallback(EvalCallback, BoundaryCallback):
    """SB3's EvalCallback at the first boundary after each multiple of `every_timesteps`.

    It also evaluates at the end of the run. Every evaluation of a run plays the same games. If it
    plays them in two ways, SB3's attributes and the best hold the better one. The callback writes
    `eval/…` to TensorBoard, `evaluations.npz` as SB3 does, and a row of `eval.csv` for each way. It
    has the checkpoint callback save the best model.

    A stop interrupts an evaluation. The checkpoint then notes that it is due, and the resumed run
    plays it first.

    With conditions that end the run before its total, each evaluation is judged before anything is
    saved. A policy that new episodes have confirmed becomes the best, so that the run ends with it.
    Once a condition is met, the policy of that boundary is evaluated, as at the total.

    Args:
        callback_on_new_best: SB3's; called after the best was saved. If it or the next one returns
            False, the training ends at this boundary.
        callback_after_eval: SB3's.
        on_evaluated: called with each evaluation's success rate before anything is saved.
        on_played: called with what each evaluation has played, and the timestep, before that.
        stop_when: conditions that end the run before its total, if there are any.
    """

    def __init__(
        self,
        games: EvaluationGames,
        checkpoints: CheckpointCallback,
        run_dir: RunDir,
        events: EventLog,
        *,
        every_timesteps: int,
        callback_on_new_best: BaseCallback | None = None,
        callback_after_eval: BaseCallback | None = None,
        on_evaluated: Callable[[float | None], None] = lambda _: None,
        on_played: Callable[[Sequence[Evaluation], int], None] = lambda *_: None,
        stop_when: StopWhen | None = None,
    ) -> None:
        super().__init__(
            games.vec_env,
            callback_on_new_best,
            callback_after_eval,
            n_eval_episodes=games.episodes,
            eval_freq=0,  # turns off SB3's own rhythm, which counts calls
            log_path=str(run_dir.root),
            deterministic=games.ways[0],
            verbose=0,
        )
        self._games = games
        self._checkpoints = checkpoints
        self._run_dir = run_dir
        self._events = events
        self._on_evaluated = on_evaluated
        self._on_played = on_played
        self._stop_when = stop_when
        self._interval = Interval(every_timesteps)
        self._evaluated_at: int | None = None
        self._goes_on = True

    def continue_from_files(self) -> None:
        """Load the evaluations that a checkpoint has restored in the run directory."""
        episodes = read_episodes(self._run_dir)
        self.evaluations_timesteps = episodes.timesteps
        self.evaluations_results = episodes.results
        self.evaluations_length = episodes.lengths
        self.evaluations_successes = episodes.successes
        if episodes.results:
            self.last_mean_reward = float(np.mean(episodes.results[-1]))

    def _init_callback(self) -> None:
        """As SB3's, without the warning that training and evaluation envs differ in type."""
        if self.callback_on_new_best is not None:
            self.callback_on_new_best.init_callback(self.model)

    def _on_training_start(self) -> None:
        BoundaryCallback._on_training_start(self)
        super()._on_training_start()
        self._interval.last_timesteps = self.num_timesteps
        best = self._checkpoints.best
        self.best_mean_reward = -np.inf if best is None else best.mean_reward
        self._goes_on = True

    def _on_rollout_start(self) -> None:
        super()._on_rollout_start()
        if self._checkpoints.evaluation_due and self.num_timesteps == self._started_at:
            self._evaluate_now()

    def _on_step(self) -> bool:
        return self._goes_on

    def on_boundary(self, *, is_last: bool) -> None:
        due = self._interval.crossed(self.boundary_timesteps)
        self._look_at_the_clock()
        is_complete = (is_last and self._is_at_total) or bool(self._checkpoints.stop_counters.met)
        if due or (is_complete and self.boundary_timesteps != self._evaluated_at):
            self._evaluate_now()

    @property
    def _is_at_total(self) -> bool:
        total: int = self.model._total_timesteps
        return self.boundary_timesteps >= total

    def _look_at_the_clock(self) -> None:
        counters = self._checkpoints.stop_counters
        if self._stop_when is None or counters.met or self._is_at_total:
            return
        if self._stop_when.has_trained_long_enough(self._checkpoints.training_time.seconds()):
            self._count(self._stop_when.after_hours(counters))

    def _count(self, counters: StopCounters) -> None:
        """Keep the counters for the next checkpoint, and report a condition that is met now."""
        was_met = self._checkpoints.stop_counters.met
        self._checkpoints.stop_counters = counters
        if counters.met and not was_met:
            self._events.emit(
                StopConditionMet(timesteps=self.boundary_timesteps, text=counters.met)
            )

    def _evaluate_now(self) -> None:
        timesteps = self.boundary_timesteps
        episodes = self._games.episodes * len(self._games.ways)
        self._events.emit(
            Evaluating(timesteps=timesteps, policy_timesteps=timesteps, episodes=episodes)
        )
        try:
            played = self._games.play(self.model)
            verdict = self._judge(better_of(played))
        except EvaluationInterrupted:
            self._checkpoints.evaluation_due = True
            return
        self._checkpoints.evaluation_due = False
        self._evaluated_at = timesteps
        self._keep(played, verdict)

    def _judge(self, better: Evaluation) -> StopDecision:
        counters = self._checkpoints.stop_counters
        if self._stop_when is None or self._is_at_total:
            return StopDecision(counters)
        return self._stop_when.judge(
            self.model,
            better,
            counters,
            is_best=better.beats(self._checkpoints.best),
            timesteps=self.boundary_timesteps,
        )

    def _keep(self, played: Sequence[Evaluation], verdict: StopDecision) -> None:
        better = better_of(played)
        is_best = better.beats(self._checkpoints.best) or verdict.is_confirmed
        self._fill_attributes(better)
        self._on_played(played, self.boundary_timesteps)
        self._on_evaluated(better.success_rate)
        self._log(better, played)
        for evaluation in played:
            is_it = is_best and evaluation is better
            append_row(
                self._run_dir, evaluation_row(evaluation, self.boundary_timesteps, is_best=is_it)
            )
            self._events.emit(
                evaluated_event(
                    evaluation,
                    timesteps=self.boundary_timesteps,
                    policy_timesteps=self.boundary_timesteps,
                    is_best=is_it,
                )
            )
        if (confirmation := verdict.event(self.boundary_timesteps)) is not None:
            self._events.emit(confirmation)
        self._count(verdict.counters)
        if is_best:  # after everything is written, because it saves the run
            self.best_mean_reward = better.mean_reward
            self._checkpoints.keep_as_best(better.mean_reward, deterministic=better.deterministic)
        self._goes_on = True
        if is_best and self.callback_on_new_best is not None:
            self._goes_on = self.callback_on_new_best.on_step()
        if self._goes_on:
            self._goes_on = self._on_event()

    def _fill_attributes(self, better: Evaluation) -> None:
        """Set SB3's attributes, and write `evaluations.npz`.

        The lists start anew when the number of episodes changes, because the file needs as many
        episodes in each evaluation.
        """
        self.deterministic = better.deterministic
        self.last_mean_reward = better.mean_reward
        lists = EpisodeLists(
            self.evaluations_timesteps,
            self.evaluations_results,
            self.evaluations_length,
            self.evaluations_successes,
        )
        if lists.results and len(lists.results[-1]) != better.episodes:
            lists.clear()
        lists.timesteps.append(self.boundary_timesteps)
        # in the types of SB3's file, whose evaluation has no Monitor here
        lists.results.append(list(np.array(better.rewards, np.float32)))
        lists.lengths.append(list(np.array(better.lengths, np.int32)))
        if better.successes:
            lists.successes.append(list(better.successes))
        write_episodes(self._run_dir, lists)

    def _log(self, better: Evaluation, played: Sequence[Evaluation]) -> None:
        values: dict[str, Any] = {
            "eval/mean_reward": better.mean_reward,
            "eval/mean_ep_length": better.mean_length,
        }
        if better.success_rate is not None:
            values["eval/success_rate"] = better.success_rate
        if better.q_minus_return is not None:
            values["eval/q_minus_return"] = better.q_minus_return
        for name, result in (better.by_start_state or {}).items():
            if result.success_rate is None:
                values[f"eval/mean_reward/{name}"] = result.mean_reward
            else:
                values[f"eval/success_rate/{name}"] = result.success_rate
        if len(played) > 1:
            for each in played:
                way = "deterministic" if each.deterministic else "drawn"
                values[f"eval/mean_reward_{way}"] = each.mean_reward
        values["time/total_timesteps"] = self.boundary_timesteps  # as SB3's, for tables
        excluded: dict[str, tuple[str, ...]] = dict.fromkeys(values, ())
        excluded["time/total_timesteps"] = ("tensorboard",)
        # not with the logger's `dump`, which would also write the update's records, too early
        for output in self.logger.output_formats:
            if isinstance(output, KVWriter):
                output.write(values, excluded, self.boundary_timesteps)


def evaluation_row(evaluation: Evaluation, timesteps: int, *, is_best: bool) -> dict[str, object]:
    """Return a row of `eval.csv`."""
    return {
        "timesteps": timesteps,
        "episodes": evaluation.episodes,
        "mean_reward": round(evaluation.mean_reward, 4),
        "std_reward": round(evaluation.std_reward, 4),
        "success_rate": evaluation.success_rate,
        "mean_length": round(evaluation.mean_length, 1),
        "is_best": is_best,
        "deterministic": evaluation.deterministic,
    }
