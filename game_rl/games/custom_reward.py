"""`reward: module:Class` in game.yaml: a custom reward class, what its methods take, and its state.

A game.yaml may come from a stranger, so its Python code runs only when an env is built.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from pydantic import JsonValue

from game_rl.config.custom_class import (
    class_source,
    described,
    line_of,
    load_class,
    places_beside,
)
from game_rl.config.schema_guide import closest
from game_rl.emulator.emulator import Emulator
from game_rl.errors import GameFileError
from game_rl.files.plain_state import checked_json, state_from_json, state_to_json
from game_rl.games.variables import Value

Sources = Mapping[str, Callable[[], object]]
"""What a method may take besides the variables, by the parameter's name."""

VARIABLES = "variables"
_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_ANY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class CustomMethod:
    """A method of a person's class, called with what its parameters name.

    A method with one parameter takes the variables under any name that is not an offered one.

    Args:
        method: the method, of an object.
        name: its name, `module:Class.method`, for messages.
        sources: what it may take besides the variables.

    Attributes:
        takes: names of its parameters that are offered.
        call: calls it; takes the variables.

    Raises:
        GameFileError: a parameter is not known; the message has its line, and the known ones.
    """

    def __init__(self, method: Callable[..., Any], name: str, sources: Sources) -> None:
        self._method = method
        self._sources = sources
        self._positional: list[str] = []
        self._named: list[str] = []
        try:
            parameters = list(inspect.signature(method).parameters.values())
        except (TypeError, ValueError):  # not written in Python
            parameters = [inspect.Parameter(VARIABLES, inspect.Parameter.POSITIONAL_ONLY)]
        required = [p for p in parameters if p.default is p.empty and p.kind in _ANY_POSITION]
        offered = (VARIABLES, *sources)
        if len(required) == 1 and required[0].name not in offered:
            self._positional.append(VARIABLES)  # whatever it is called there
            parameters.remove(required[0])
        for parameter in parameters:
            if parameter.name in offered:
                is_first = parameter.kind is parameter.POSITIONAL_ONLY
                (self._positional if is_first else self._named).append(parameter.name)
            elif parameter.kind is parameter.VAR_POSITIONAL and not required:
                self._positional.append(VARIABLES)
            elif parameter.default is parameter.empty and parameter.kind not in _REST:
                raise GameFileError(_unknown(parameter.name, name, offered, method))
        self.takes = frozenset({*self._positional, *self._named})
        is_plain = not parameters and self._positional == [VARIABLES]
        self.call: Callable[..., Any] = method if is_plain else self._call

    def _call(self, variables: Mapping[str, Any]) -> Any:  # noqa: ANN401 - what it returns
        positional = [self._offered(name, variables) for name in self._positional]
        named = {name: self._offered(name, variables) for name in self._named}
        return self._method(*positional, **named)

    def _offered(self, name: str, variables: Mapping[str, Any]) -> object:
        return variables if name == VARIABLES else self._sources[name]()


def _unknown(
    parameter: str, name: str, offered: tuple[str, ...], method: Callable[..., Any]
) -> str:
    code = getattr(inspect.unwrap(method), "__code__", None)
    line = "" if code is None else f" in {code.co_filename}, line {code.co_firstlineno}"
    guess = closest(parameter, offered)
    way_out = f"did you mean {guess}?" if guess else "remove it, or give it a default"
    known = ", ".join(offered)
    return f"{name} takes `{parameter}`{line}, and may take {known}; {way_out}"


class GameMemory:
    """The console's memory, to be read by address.

    `memory[0xD347]` is a byte and `memory[0xD747:0xD87E]` are bytes; with a bank,
    `memory[1, 0xD347]` and `memory[1, 0xD747:0xD87E]`.
    """

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator

    def __getitem__(self, place: int | slice | tuple[int, int | slice]) -> int | bytes:
        bank, where = place if isinstance(place, tuple) else (None, place)
        if not isinstance(where, slice):
            return self._emulator.read(where, bank=bank)
        if where.start is None or where.stop is None:
            raise IndexError("a slice of the memory needs both ends, as in memory[0xC000:0xC010]")
        addresses = range(where.start, where.stop, where.step or 1)
        return bytes(self._emulator.read(address, bank=bank) for address in addresses)


SCREEN_ARGUMENT = "screen"
MEMORY = "memory"
ACTION = "action"
ENDINGS = "endings"
TRUNCATIONS = "truncations"
_PARTS = "parts"

CUSTOM_TERM = "custom"
"""Name of the reward term for a class that returns a bare number."""


class CustomReward(Protocol):
    """A user's reward class; each env makes an object of it, without arguments.

    `variables` has the variables of game.yaml by name; an array is a tuple. The methods may also
    have parameters called `screen` (the whole picture, uint8 [144, 160, 3], a copy), `memory` (a
    `GameMemory`) and, apart from `reset`, `action` (the name of the action that was played).

    The methods `endings` and `truncations` may be added. They are called after each `step`, with
    parameters like its, and return a mapping of names to whether the episode ends so: the game is
    over, or the episode only stops.

    The method `parts` may be added, with parameters like those of `reset`. It returns a mapping
    with an array for each entry of `parts` in game.yaml that is `own`. It is called after `reset`
    and after each `step` where observations have such a part, and must change no attribute.

    A checkpoint saves the
    object's attributes, which must be plain data: numbers, strings, and lists, tuples and dicts of
    them (see `plain_state`). A class with other attributes needs two more methods:
    `save_state(self)`, which returns plain data, and `load_state(self, state)`, which restores it.
    """

    def reset(self, variables: Mapping[str, Value]) -> None:
        """Begin an episode."""

    def step(self, variables: Mapping[str, Value]) -> float | Mapping[str, float]:
        """Return the reward of a timestep, or a mapping of term to reward."""


def reward_source(reference: str, folder: Path) -> str:
    """Return the file or installed module that `module:Class` names, without running its code.

    Raises:
        GameFileError: there is no such module, or the file is not valid Python or lacks the class.
    """
    return class_source(reference, places_beside(folder), error=GameFileError)


def load_custom_reward(
    reference: str, folder: Path, sources: Sources = MappingProxyType({})
) -> "GameReward":
    """Return a new object of `module:Class`; `custom_class` says where `module` is.

    Args:
        folder: folder of the game.yaml.
        sources: what its methods may take besides the variables.

    Raises:
        GameFileError: there is no such module or class, or importing it or making the object
            failed, or the class lacks `reset` or `step`, or a parameter of a method is not known.
    """
    found, module = load_class(reference, places_beside(folder), error=GameFileError)
    return GameReward(found, reference, Path(module.__file__ or folder).parent, sources)


class GameReward:
    """A custom reward that can be saved; its methods raise nothing but GameFileError.

    That error names the class, and the line, where the user's code fails.

    Attributes:
        needs_screen: whether a method takes the picture.
        has_endings: whether it adds endings to those of the game file.
        parts_need_screen: whether the method `parts` takes the picture.
    """

    def __init__(self, reward_class: type, reference: str, folder: Path, sources: Sources) -> None:
        self._class = reward_class
        self._reference = reference
        self._folder = folder
        self._sources = sources
        try:
            self._reward = reward = reward_class()
        except (Exception, SystemExit) as error:
            raise GameFileError(
                f"{reference}() failed with {self._told(error)}; a reward class is called without "
                "arguments"
            ) from error
        for method in ("reset", "step"):
            if not callable(getattr(reward, method, None)):
                raise GameFileError(
                    f"{reference} has no method {method}; a reward class has "
                    "`reset(self, variables)` and `step(self, variables)`"
                )
        at_reset = {name: source for name, source in sources.items() if name != ACTION}
        self._reset = CustomMethod(getattr(reward, "reset"), f"{reference}.reset", at_reset)  # noqa: B009 - checked above
        self._step = CustomMethod(getattr(reward, "step"), f"{reference}.step", sources)  # noqa: B009 - checked above
        self._ends = {
            name: CustomMethod(getattr(reward, name), f"{reference}.{name}", sources)
            for name in (ENDINGS, TRUNCATIONS)
            if callable(getattr(reward, name, None))
        }
        self._parts: CustomMethod | None = None
        if callable(parts := getattr(reward, _PARTS, None)):
            self._parts = CustomMethod(parts, f"{reference}.{_PARTS}", at_reset)
        self.parts_need_screen = self._parts is not None and SCREEN_ARGUMENT in self._parts.takes
        self.has_endings = bool(self._ends)
        takes = (method.takes for method in (self._reset, self._step, *self._ends.values()))
        self.needs_screen = any(SCREEN_ARGUMENT in names for names in takes)

    def reset(self, variables: Mapping[str, Value]) -> None:
        try:
            self._reset.call(variables)
        except (Exception, SystemExit) as error:
            raise self._failure("reset", error) from error

    def step(self, variables: Mapping[str, Value]) -> float | Mapping[str, float]:
        try:
            earned = self._step.call(variables)
            if isinstance(earned, Mapping):
                return {str(name): float(reward) for name, reward in earned.items()}
            return float(earned)
        except (Exception, SystemExit) as error:
            raise self._failure("step", error) from error

    def ends(self, name: str, variables: Mapping[str, Value]) -> dict[str, bool]:
        """Return what `endings` or `truncations` says; nothing if the class lacks it."""
        if name not in self._ends:
            return {}
        try:
            found = self._ends[name].call(variables)
            return {str(ending): bool(holds) for ending, holds in found.items()}
        except (Exception, SystemExit) as error:
            raise self._failure(name, error) from error

    def check_parts(self, names: Iterable[str]) -> None:
        """Raise GameFileError if there are parts for it to make and it has no method for them."""
        wanted = ", ".join(names)
        if wanted and self._parts is None:
            raise GameFileError(
                f"{self._reference} has no method {_PARTS}, which makes {wanted} of the "
                "observation; add `parts(self, variables)`, which returns a mapping of names to "
                "arrays"
            )

    def parts(self, variables: Mapping[str, Value]) -> Mapping[str, Any]:
        """Return what the class makes of an observation, by the names of the parts."""
        assert self._parts is not None
        try:
            return dict(self._parts.call(variables))
        except (Exception, SystemExit) as error:
            raise self._failure(_PARTS, error) from error

    def save_state(self) -> JsonValue:
        save = getattr(self._reward, "save_state", None)
        try:
            state = state_to_json(vars(self._reward) if save is None else save(), "the state")
            return checked_json(state)
        except (Exception, SystemExit) as error:
            raise GameFileError(
                f"{self._reference} cannot be saved in a checkpoint: {self._told(error)}; keep "
                "only plain data in its attributes (numbers, strings, and lists, tuples and dicts "
                "of them), or give the class `save_state(self)`, which returns plain data, and "
                "`load_state(self, state)`"
            ) from error

    def load_state(self, state: JsonValue) -> None:
        load = getattr(self._reward, "load_state", None)
        try:
            if load is not None:
                load(state_from_json(state))
            else:
                vars(self._reward).clear()
                vars(self._reward).update(state_from_json(state))
        except (Exception, SystemExit) as error:
            raise self._failure("load_state", error) from error

    def renewed(self) -> "GameReward":
        """Return a new object with this one's saved state, as a resumed run makes it."""
        reward = GameReward(self._class, self._reference, self._folder, self._sources)
        reward.load_state(self.save_state())
        return reward

    def _failure(self, method: str, error: BaseException) -> GameFileError:
        told = described(error)
        line = line_of(error, self._folder)
        returns = "a number or a mapping of them"
        if method in (ENDINGS, TRUNCATIONS):
            returns = "a mapping of names to True or False"
        elif method == _PARTS:
            returns = "a mapping of names to arrays"
        way_out = "correct it there" if line else f"`{method}` returns {returns}"
        return GameFileError(f"{self._reference}.{method} failed with {told}{line}; {way_out}")

    def _told(self, error: BaseException) -> str:
        return described(error) + line_of(error, self._folder)
