"""The callbacks of a person's own: built, called after the run's, saved, restored."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.callbacks.custom_callback import CustomCallback, GivenCallback
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_files import FileName
from game_rl.checkpoints.checkpoint_state import CustomCallbackStates
from game_rl.config.custom_part import CustomPart
from game_rl.events import StopConditionMet
from game_rl.events.event_log import EventLog
from game_rl.files.saved import Saved
from game_rl.training.extensions import Extension, RunParts


class CustomCallbacksExtension(Extension):
    """The callbacks that the config names and those that Python code has given.

    Each is restored if it can save its state.
    """

    def __init__(self, parts: Sequence[CustomPart | GivenCallback], events: EventLog) -> None:
        self._events = events
        folder = Path.cwd()
        self._callbacks = [CustomCallback(part, folder, self._end_run) for part in parts]
        self._checkpoints: CheckpointCallback | None = None

    @classmethod
    def of(cls, parts: RunParts) -> Self | None:
        """Build the callbacks, which runs their code; None if there are none.

        Raises:
            ConfigError: a class is missing or no callback, or making its object failed.
        """
        own: tuple[CustomPart | GivenCallback, ...]
        own = (*parts.config.custom_callbacks, *parts.given_callbacks)
        return cls(own, parts.events) if own else None

    def last_callbacks(self, checkpoints: CheckpointCallback) -> Sequence[BaseCallback]:
        self._checkpoints = checkpoints
        return self._callbacks

    def restore(self, checkpoint: Checkpoint) -> int:
        """Restore the callbacks, before the random numbers, which they may draw here."""
        saved = checkpoint.custom_callbacks([each.part.reference for each in self._callbacks])
        for callback, state in zip(self._callbacks, saved, strict=True):
            if state is not None:
                callback.restore(state)
        return 0

    def keep(self, model: BaseAlgorithm, name: str) -> Mapping[FileName, Saved]:  # noqa: ARG002
        found = tuple(callback.saved() for callback in self._callbacks)
        return {"callbacks.json": CustomCallbackStates(callbacks=found)}

    def _end_run(self, why: str) -> None:
        """End the run at the next boundary, as a condition of `stop_when` does."""
        assert self._checkpoints is not None
        counters = self._checkpoints.stop_counters
        if not counters.met:
            self._checkpoints.stop_counters = counters.model_copy(update={"met": why})
            self._events.emit(StopConditionMet(timesteps=self._checkpoints.num_timesteps, text=why))
