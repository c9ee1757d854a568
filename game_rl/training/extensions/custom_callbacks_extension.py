"""The custom callbacks: built, called after the run's, saved, restored."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from pydantic import JsonValue
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_files import FileName
from game_rl.config.custom_class import described, line_of
from game_rl.config.custom_part import CustomPart, PartError
from game_rl.config.schema import RunConfig
from game_rl.errors import ConfigError, GameRLError
from game_rl.events import StopConditionMet
from game_rl.events.event_log import EventLog
from game_rl.features.feature_table import (
    CALLBACKS_FILE,
    CustomCallbackState,
    CustomCallbackStates,
)
from game_rl.files.plain_state import (
    array_to_json,
    bytes_to_json,
    checked_json,
    state_from_json,
    state_to_json,
)
from game_rl.files.saved import Saved
from game_rl.games.definition import Game
from game_rl.training.extension import Extension, GivenCallback, RunParts

_METHODS = ("state_dict", "load_state_dict")


class CustomCallback(BaseCallback):
    """Calls a custom callback, as SB3 would, and names it in errors.

    SB3 initialises callbacks at each call of `learn`. The custom one is initialised once a
    session, so that a run trained by stretches is the run that was trained at once.

    Args:
        part: the class and its arguments, or the callback itself.
        folder: folder in which its module is looked for before installed ones.
        end_run: called with the reason once the callback has returned False, which ends the run at
            the next boundary.

    Raises (in any method):
        ConfigError: it raised an error; the message names its class and line.
    """

    def __init__(
        self, part: CustomPart | GivenCallback, folder: Path, end_run: Callable[[str], None]
    ) -> None:
        super().__init__()
        self.part = part
        self._folder = folder
        self._end_run = end_run
        own = part.load_callback(folder)
        self._own: BaseCallback = self._call("__init__", lambda: own(**part.arguments))
        self._initialised_for: BaseAlgorithm | None = None
        self._goes_on = True

    @property
    def has_state(self) -> bool:
        """Whether it has `state_dict` and `load_state_dict`."""
        return all(hasattr(type(self._own), name) for name in _METHODS)

    def saved(self) -> CustomCallbackState:
        """Return its state, as JSON can represent it."""
        if not self.has_state:
            return CustomCallbackState(callback=self.part.reference)
        own: Any = self._own
        found = self._call("state_dict", own.state_dict)
        try:
            state = checked_json(state_to_json(found, "its state", _leaf))
        except ValueError as error:
            raise PartError(
                self.part.key,
                f"{self.part.reference} cannot be saved in a checkpoint: {error}; let state_dict "
                "return plain data (numbers, strings, NumPy arrays, tensors, and lists, tuples and "
                "dicts of them)",
            ) from error
        return CustomCallbackState(
            callback=self.part.reference, has_state=True, n_calls=self._own.n_calls, state=state
        )

    def restore(self, saved: CustomCallbackState) -> None:
        """Continue with the state, if it has one and the class can load it."""
        if not (saved.has_state and self.has_state):
            return
        own: Any = self._own
        state = self._call("load_state_dict", lambda: state_from_json(saved.state, _tensor))
        self._call("load_state_dict", lambda: own.load_state_dict(state))
        self._own.n_calls = saved.n_calls

    def _init_callback(self) -> None:
        if self._initialised_for is not self.model:
            self._initialised_for = self.model
            self._call("_init_callback", lambda: self._own.init_callback(self.model))

    def _on_training_start(self) -> None:
        own = self._own
        self._call("_on_training_start", lambda: own.on_training_start(self.locals, self.globals))
        self.saved()  # what cannot be saved should fail now, not after an hour

    def _on_rollout_start(self) -> None:
        self._call("_on_rollout_start", self._own.on_rollout_start)

    def _on_step(self) -> bool:
        goes_on = self._call("_on_step", self._own.on_step)
        if not goes_on and self._goes_on:
            self._goes_on = False
            self._end_run(f"{self.part.name}, returned False")
        return True

    def _on_rollout_end(self) -> None:
        self._call("_on_rollout_end", self._own.on_rollout_end)

    def _on_training_end(self) -> None:
        self._call("_on_training_end", self._own.on_training_end)

    def update_child_locals(self, locals_: dict[str, Any]) -> None:
        self._own.update_locals(locals_)

    def _call(self, method: str, act: Callable[[], Any]) -> Any:  # noqa: ANN401 - theirs
        try:
            return act()
        except GameRLError:
            raise
        except (Exception, SystemExit) as error:
            line = line_of(error, self._folder)
            way_out = "correct it there" if line else "correct it"
            raise PartError(
                self.part.key,
                f"{self.part.reference} failed in {method} with {described(error)}{line}; "
                f"{way_out}",
            ) from error


def _leaf(value: object) -> JsonValue | None:
    if not isinstance(value, torch.Tensor):
        return array_to_json(value)
    dtype = str(value.dtype).removeprefix("torch.")
    content = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return bytes_to_json("tensor", dtype, tuple(value.shape), content)


def _tensor(dtype: str, shape: tuple[int, ...], content: bytes) -> torch.Tensor:
    kind = getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype):
        raise ConfigError(f"{dtype} is not a type of a tensor")
    if not content:
        return torch.empty(shape, dtype=kind)
    return torch.frombuffer(bytearray(content), dtype=kind).reshape(shape)


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

    @classmethod
    def not_restored(
        cls,
        config: RunConfig,
        game: Game,  # noqa: ARG003
        checkpoint: Checkpoint,
        given_callbacks: Sequence[GivenCallback],
    ) -> Iterable[str]:
        if checkpoint.state.num_timesteps:  # else nothing was played yet
            parts: tuple[CustomPart | GivenCallback, ...]
            parts = (*config.custom_callbacks, *given_callbacks)
            for part, state in zip(parts, _states_of(parts, checkpoint), strict=True):
                if state is None:
                    yield f"{part.name}: the checkpoint has no state of it"
                elif not state.has_state:
                    yield f"{part.name}: it has no state_dict and load_state_dict"
        missing = Counter(checkpoint.state.given_callbacks)
        missing.subtract(each.reference for each in given_callbacks)
        for reference in missing.elements():
            yield (
                f"the callback {reference}, which Python code gave to this run: "
                "game_rl.resume(run, callbacks=[...]) takes it again"
            )

    def last_callbacks(self, checkpoints: CheckpointCallback) -> Sequence[BaseCallback]:
        self._checkpoints = checkpoints
        return self._callbacks

    def restore(self, checkpoint: Checkpoint) -> int:
        """Restore the callbacks, before the random numbers, which they may draw here."""
        saved = _states_of([each.part for each in self._callbacks], checkpoint)
        for callback, state in zip(self._callbacks, saved, strict=True):
            if state is not None:
                callback.restore(state)
        return 0

    def keep(self, model: BaseAlgorithm, name: str) -> Mapping[FileName, Saved]:  # noqa: ARG002
        found = tuple(callback.saved() for callback in self._callbacks)
        return {CALLBACKS_FILE.name: CustomCallbackStates(callbacks=found)}

    def _end_run(self, why: str) -> None:
        """End the run at the next boundary, as a condition of `stop_when` does."""
        assert self._checkpoints is not None
        counters = self._checkpoints.stop_counters
        if not counters.met:
            self._checkpoints.stop_counters = counters.model_copy(update={"met": why})
            self._events.emit(StopConditionMet(timesteps=self._checkpoints.num_timesteps, text=why))


def _states_of(
    parts: Sequence[CustomPart | GivenCallback], checkpoint: Checkpoint
) -> list[CustomCallbackState | None]:
    """Return the state of each callback in the checkpoint; None if it has none."""
    saved = checkpoint.read(CALLBACKS_FILE) or CustomCallbackStates(callbacks=())
    return saved.matched([part.reference for part in parts])
