"""The phase of imitating played episodes before the first timestep."""

import time
from collections.abc import Sequence

from game_rl.algorithms.cloning import ClonedEpoch, Cloning
from game_rl.algorithms.dqn import LeanDQN
from game_rl.events import Cloned
from game_rl.system.stop_request import StopRequest
from game_rl.training.extension import Extension, RunParts
from game_rl.training.phase_before_play import PhaseBeforePlay


class ClonePhase(PhaseBeforePlay):
    """Passes over played episodes until they no longer help, and one evaluation.

    It has no checkpoints within: one that is stopped begins again, and learns the same.
    """

    def __init__(
        self,
        cloning: Cloning,
        parts: RunParts,
        extensions: Sequence[Extension],
        *,
        most_epochs: int,
    ) -> None:
        super().__init__(parts, extensions)
        self._cloning = cloning
        self._most_steps = most_epochs * cloning.gradient_steps_of_epoch

    @property
    def _is_at_end(self) -> bool:
        return True  # only then is something evaluated

    def learn(self, stop: StopRequest) -> bool:
        """Learn, evaluate and save, and return True; or False if a stop was requested meanwhile.

        Raises:
            TrainingError: the weights became non-finite.
            CheckpointError: a checkpoint could not be written.
        """
        if not self.gradient_steps:
            self._training_time.start()
            epochs = self._learned(stop)
            if stop.is_asked:
                self.gradient_steps = 0  # nothing of it is kept
                return False
            self._tell(epochs)
        self._evaluate()
        if self._evaluation_due:  # it was stopped
            self.save()
            return False
        self._end()
        return True

    def _learned(self, stop: StopRequest) -> list[ClonedEpoch]:
        began = time.monotonic()

        def tell(steps: int) -> None:
            self.gradient_steps = steps
            self._tell_progress(steps / max(time.monotonic() - began, 1e-9), self._most_steps)

        epochs = []
        for epoch in self._cloning.epochs(is_stopped=lambda: stop.is_asked, tell=tell):
            epochs.append(epoch)
            names = ("loss", "accuracy", "held_out_loss", "held_out_accuracy")
            self._write({f"clone/{name}": getattr(epoch, name) for name in names})
        if isinstance(self._model, LeanDQN):
            self._model.sync_target()
        return epochs

    def _tell(self, epochs: Sequence[ClonedEpoch]) -> None:
        best = [each for each in epochs if each.is_best]
        if not best:  # every loss was NaN, and `_end` says so
            return
        chosen = best[-1]
        self._events.emit(
            Cloned(
                epochs=len(epochs),
                best_epoch=chosen.epoch,
                gradient_steps=self.gradient_steps,
                accuracy=round(chosen.accuracy, 4),
                held_out=len(self._cloning.held_out),
                held_out_accuracy=round(chosen.held_out_accuracy, 4),
                held_out_loss=chosen.held_out_loss,
                usual_accuracy=round(self._cloning.usual_accuracy, 4),
            )
        )
