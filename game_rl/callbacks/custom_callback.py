"""SB3 callbacks of a person's own, named in errors, and their saved state.

The config names their classes, or Python code gives them to `game_rl.train` as objects.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import JsonValue
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, ConvertCallback

from game_rl.checkpoints.checkpoint_state import CustomCallbackState
from game_rl.config.custom_class import described, line_of
from game_rl.config.custom_part import CustomPart, PartError
from game_rl.errors import ConfigError, GameRLError, UsageError
from game_rl.files.plain_state import (
    array_to_json,
    bytes_to_json,
    checked_json,
    state_from_json,
    state_to_json,
)

_METHODS = ("state_dict", "load_state_dict")

CallbackFunction = Callable[[dict[str, Any], dict[str, Any]], bool]
"""A function that SB3 calls after each vec step with the locals and globals of its loop."""

PythonCallbacks = BaseCallback | CallbackFunction | Sequence[BaseCallback | CallbackFunction] | None
"""What SB3's `learn` takes as its callback."""


@dataclass(frozen=True)
class GivenCallback:
    """A callback that Python code has made; of what a `CustomPart` has, what is needed here.

    Attributes:
        key: its place among the callbacks that were given.
        reference: `module:Class` of its class, or of the function.
        own: the callback.
    """

    key: tuple[str, ...]
    reference: str
    own: BaseCallback

    @property
    def arguments(self) -> Mapping[str, JsonValue]:
        return {}

    @property
    def name(self) -> str:
        """Its place and class, for messages."""
        return f"{self.key[0]}, {self.reference}"

    def load_callback(self, folder: Path) -> Callable[..., BaseCallback]:  # noqa: ARG002
        return lambda: self.own


def given_callbacks(callbacks: PythonCallbacks) -> tuple[GivenCallback, ...]:
    """Return the callbacks of a call in Python; those of a `CallbackList` one by one.

    Raises:
        UsageError: one is no callback.
    """
    if callbacks is None:
        return ()
    several = callbacks if isinstance(callbacks, list | tuple) else [callbacks]
    flat: list[object] = []
    for each in several:
        flat += each.callbacks if isinstance(each, CallbackList) else [each]
    return tuple(_given(each, f"callbacks[{number}]") for number, each in enumerate(flat))


def _given(callback: object, key: str) -> GivenCallback:
    if isinstance(callback, BaseCallback):
        return GivenCallback((key,), _reference(type(callback)), callback)
    if isinstance(callback, type):
        name = callback.__name__
        raise UsageError(f"{key} is the class {name}, not an object of it; write {name}()")
    if not callable(callback):
        raise UsageError(
            f"{key} is {callback!r:.60}; give an object of BaseCallback of Stable-Baselines3, or a "
            "function of locals and globals, and name classes in the config's key callbacks"
        )
    return GivenCallback((key,), _reference(callback), ConvertCallback(callback))


def _reference(named: object) -> str:
    return f"{getattr(named, '__module__', '')}:{getattr(named, '__qualname__', 'callback')}"


class CustomCallback(BaseCallback):
    """Calls a callback of a person's own, as SB3 would, and names it in errors.

    SB3 initialises callbacks at each call of `learn`. The person's own is initialised once a
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
        self.part, self._folder, self._end_run = part, folder, end_run
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
        raise ConfigError(f"{dtype} is no type of a tensor")
    if not content:
        return torch.empty(shape, dtype=kind)
    return torch.frombuffer(bytearray(content), dtype=kind).reshape(shape)
