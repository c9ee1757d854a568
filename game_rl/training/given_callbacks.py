"""Callbacks of Python code, as `game_rl.train` takes them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, ConvertCallback

from game_rl.errors import UsageError

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
