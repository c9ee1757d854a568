"""The phase of learning from Lakes before the first timestep."""

import time
from collections.abc import Sequence

from game_rl.algorithms.dqn import LeanDQN
from game_rl.config.learn_from import OfflineConfig
from game_rl.system.stop_request import StopRequest
from game_rl.training.extension import Extension, RunParts
from game_rl.training.phase_before_play import PhaseBeforePlay

_AT_A_TIME = 50  # gradient steps between two looks at what is due and whether to stop
_CURVES_EVERY = 500  # gradient steps


class OfflinePhase(PhaseBeforePlay):
    """A number of gradient steps on rows of Lakes, with evaluations and checkpoints in between.

    Args:
        config: settings of the phase.
        model: the run's algorithm.
    """

    _model: LeanDQN

    def __init__(
        self,
        config: OfflineConfig,
        model: LeanDQN,
        parts: RunParts,
        extensions: Sequence[Extension],
    ) -> None:
        super().__init__(parts, extensions)
        self._config = config
        # as many gradient steps between two updates of the target network as when the run plays
        plays = model.target_update_interval / parts.config.rollout_timesteps
        self._sync_every = max(1, round(plays * model.gradient_steps))

    @property
    def _is_at_end(self) -> bool:
        return self.gradient_steps == self._config.gradient_steps

    def learn(self, stop: StopRequest) -> bool:
        """Learn until the phase ends or a stop is requested, and save; return whether it has ended.

        Raises:
            TrainingError: the weights became non-finite.
            CheckpointError: a checkpoint could not be written.
        """
        total = self._config.gradient_steps
        started = time.monotonic()
        began_at = self.gradient_steps
        self._training_time.start()
        if self._evaluation_due:
            self._evaluate()
        while self.gradient_steps < total and not stop.is_asked:
            self._model.learn_offline(self._most_steps(), sync_every=self._sync_every)
            done = self.gradient_steps - began_at
            self._tell_progress(done / max(time.monotonic() - started, 1e-9), total)
            self._act_where_due()
        if stop.is_asked and (self._evaluation_due or self.gradient_steps < total):
            self.save()
            return False
        self._end()
        return True

    # ------------------------------------------------------------------ what is due

    def _most_steps(self) -> int:
        """Return the gradient steps until something is due, and count them as done."""
        now = self.gradient_steps
        config = self._config
        rhythms = (
            config.evaluate_every_gradient_steps,
            config.save_every_gradient_steps,
            _CURVES_EVERY,
            _AT_A_TIME,
        )
        n = min(*(every - now % every for every in rhythms), config.gradient_steps - now)
        self.gradient_steps += n
        return n

    def _act_where_due(self) -> None:
        now = self.gradient_steps
        config = self._config
        is_end = now == config.gradient_steps
        if is_end:
            self._model.sync_target()
        if is_end or now % _CURVES_EVERY == 0:
            self._write_curves()
            assert self._model.mixed_replay is not None
            self._events.emit(self._model.mixed_replay.rows_drawn(0))
        if is_end or now % config.evaluate_every_gradient_steps == 0:
            self._evaluate()
        if not is_end and now % config.save_every_gradient_steps == 0:
            self.save()


def make_offline_phase(
    parts: RunParts, model: LeanDQN, extensions: Sequence[Extension]
) -> OfflinePhase | None:
    """Build the offline phase of a run; None if the run has none, or is beyond it."""
    config = parts.config
    if config.offline is None or not parts.is_offline:
        return None
    return OfflinePhase(config.offline, model, parts, extensions)
