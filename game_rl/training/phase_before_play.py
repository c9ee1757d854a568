"""What learning before the first timestep has in common: evaluations, curves, checkpoints."""

import shutil
import time
from collections.abc import Sequence

from stable_baselines3.common.logger import KVWriter

from game_rl.callbacks.checkpoint_callback import TrainingTime, check_finite
from game_rl.callbacks.evaluation import (
    Evaluation,
    EvaluationInterrupted,
    better_of,
    evaluated_event,
)
from game_rl.callbacks.evaluation_callback import evaluation_row
from game_rl.checkpoints.checkpoint_folder import best_checkpoint
from game_rl.checkpoints.checkpoint_state import Best, CheckpointState
from game_rl.checkpoints.checkpoint_store import CheckpointStore
from game_rl.checkpoints.evaluation_files import EpisodeLists, append_row, seed_of, write_episodes
from game_rl.events import Evaluating, OfflineProgress
from game_rl.training.extension import Extension, RunParts

_PROGRESS_EVERY_S = 0.2


class PhaseBeforePlay:
    """A phase of gradient steps before the run plays its first timestep.

    The phase's checkpoints are in `RunDir.offline`. All but the best are deleted when the phase
    ends, and its final state is the run's checkpoint of timestep 0.

    Args:
        parts: the run, whose envs only stand in for real ones.
        extensions: features that keep what a checkpoint needs.

    Attributes:
        gradient_steps: number of gradient steps so far.
        best: the best evaluation so far, or None before the first one.
    """

    def __init__(self, parts: RunParts, extensions: Sequence[Extension]) -> None:
        self._model = parts.model
        self._games = parts.games(extensions)
        self._run_dir = parts.run_dir
        self._fixed = parts.fixed
        self._events = parts.events
        self._stores = tuple(
            CheckpointStore(
                parts.run_dir,
                keep_last=parts.config.checkpoints.keep_last,
                keep_every_timesteps=None,
                companions=extensions,
                is_offline=is_within,
            )
            for is_within in (True, False)
        )
        self.gradient_steps = 0
        self.best: Best | None = None
        self._evaluation_due = False
        self._saved_at = 0
        self._told_s = 0.0
        self._training_time = TrainingTime()

    @property
    def _is_at_end(self) -> bool:
        """Whether all gradient steps have been taken."""
        raise NotImplementedError

    def continue_from(self, state: CheckpointState, best: Best | None) -> None:
        """Take over the counters of the phase's checkpoint from which the model was restored."""
        self.gradient_steps = self._saved_at = state.offline_gradient_steps
        self.best = best
        self._evaluation_due = state.evaluation_due
        self._training_time = TrainingTime(state.training_s)

    def save(self) -> None:
        """Write a checkpoint of this moment, unless it exists or nothing was learned yet."""
        if self.gradient_steps not in (0, self._saved_at):
            self._save(self._stores[0])

    def _end(self) -> None:
        """Save the run's checkpoint of timestep 0, and delete the phase's except the best one."""
        self._save(self._stores[1])
        place = self._run_dir.offline
        best = None if self.best is None else best_checkpoint(self._run_dir, self.best)
        for path in place.checkpoints_newest_first():
            if path != best:
                self._stores[0].delete(path)
        if place.checkpoints.is_dir() and not any(place.checkpoints.iterdir()):
            shutil.rmtree(place.checkpoints)

    # ------------------------------------------------------------------ evaluations

    def _evaluate(self) -> None:
        episodes = self._games.episodes * len(self._games.ways)
        self._events.emit(
            Evaluating(
                policy_timesteps=0, episodes=episodes, offline_gradient_steps=self.gradient_steps
            )
        )
        try:
            played = self._games.play(self._model)
        except EvaluationInterrupted:
            self._evaluation_due = True
            return
        self._evaluation_due = False
        self._keep(played)

    def _keep(self, played: Sequence[Evaluation]) -> None:
        better = better_of(played)
        is_end = self._is_at_end
        is_best = better.beats(self.best)
        for evaluation in played:
            is_it = is_best and evaluation is better
            event = evaluated_event(evaluation, timesteps=0, policy_timesteps=0, is_best=is_it)
            steps = {"offline_gradient_steps": self.gradient_steps}
            self._events.emit(event.model_copy(update=steps))
            if is_end:
                append_row(self._run_dir, evaluation_row(evaluation, 0, is_best=is_it))
        if is_end:  # earlier evaluations have no timestep of their own
            successes = [list(better.successes)] if better.successes else []
            lists = EpisodeLists([0], [list(better.rewards)], [list(better.lengths)], successes)
            write_episodes(self._run_dir, lists)
        for name in ("mean_reward", "success_rate", "q_minus_return"):
            if (value := getattr(better, name)) is not None:
                self._write({f"offline/eval_{name}": value})
        if is_best:
            self.best = Best(
                timesteps=0,
                offline_gradient_steps=0 if is_end else self.gradient_steps,
                mean_reward=better.mean_reward,
                deterministic=better.deterministic,
                seed=seed_of(self._fixed.config),
            )
            if not is_end:  # at the end `_end` saves
                self.save()

    def _write_curves(self) -> None:
        logger = self._model.logger
        values = {k: v for k, v in logger.name_to_value.items() if k.startswith("offline/")}
        self._write(values)
        for name in values:
            del logger.name_to_value[name]
            logger.name_to_count.pop(name, None)
            logger.name_to_excluded.pop(name, None)

    def _write(self, values: dict[str, float]) -> None:
        for output in self._model.logger.output_formats:
            if isinstance(output, KVWriter):
                output.write(values, dict.fromkeys(values, ()), self.gradient_steps)

    # ------------------------------------------------------------------ checkpoints and progress

    def _save(self, store: CheckpointStore) -> None:
        check_finite(self._model.policy, 0)
        saved = store.save(self._model, self._state(), None)
        self._saved_at = self.gradient_steps
        best = None if self.best is None else best_checkpoint(self._run_dir, self.best)
        is_best = saved.checkpoint.path == best
        self._events.emit(saved.event(is_best=is_best, offline_gradient_steps=self.gradient_steps))

    def _state(self) -> CheckpointState:
        return CheckpointState(
            num_timesteps=0,
            n_updates=self._model._n_updates,
            offline_gradient_steps=self.gradient_steps,
            best=self.best,
            evaluation_due=self._evaluation_due,
            training_s=round(self._training_time.seconds(), 3),
            events_bytes=self._events.n_bytes(),
            **vars(self._fixed),
        )

    def _tell_progress(self, per_s: float, total: int) -> None:
        now = time.monotonic()
        if now - self._told_s > _PROGRESS_EVERY_S:
            self._told_s = now
            self._events.emit(
                OfflineProgress(
                    gradient_steps=self.gradient_steps,
                    total=total,
                    gradient_steps_per_s=round(per_s, 1),
                )
            )
