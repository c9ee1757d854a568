"""A method of a person's reward class, which is called with what its parameters name."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from game_rl.config.schema_guide import closest
from game_rl.emulator.emulator import Emulator
from game_rl.errors import GameFileError

Sources = Mapping[str, Callable[[], object]]
"""What a method may take besides the variables, by the parameter's name."""

VARIABLES = "variables"
_ANY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class OwnMethod:
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
        parameters = _parameters(method)
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
            elif parameter.default is parameter.empty and not _is_rest(parameter):
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


def _parameters(method: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(method).parameters.values())
    except (TypeError, ValueError):  # not written in Python
        return [inspect.Parameter(VARIABLES, inspect.Parameter.POSITIONAL_ONLY)]


def _is_rest(parameter: inspect.Parameter) -> bool:
    return parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)


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
