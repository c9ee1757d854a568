"""Variables that are computed from others, and the reading of all that an env needs."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from operator import sub
from typing import Any

from game_rl.config.strict_model import Problem
from game_rl.emulator.emulator import Emulator
from game_rl.games.variable_spec import UNSIGNED, Specs, VariableSpec
from game_rl.games.variables import MemoryVariable, Value, Values

TAKES_ARRAYS = ("count", "sum", "minimum", "maximum", "bit_of")
"""The operations whose variables may be arrays."""


def _ratio(dividend: float, divisor: float) -> float:
    return dividend / divisor if divisor else 0.0


def _count(numbers: Iterable[int]) -> int:
    return sum(number.bit_count() for number in numbers)


def _bit(bits: int | tuple[int, ...], index: int) -> int:
    return bits[index] if isinstance(bits, tuple) else bits >> index & 1


def _as_tuple(value: Value) -> tuple[int | float, ...]:
    return value if isinstance(value, tuple) else (value,)


_OF_TWO: dict[str, Callable[[Any, Any], int | float]] = {"ratio": _ratio, "difference": sub}
_OF_MANY: dict[str, Callable[[Iterable[Any]], int | float]] = {
    "count": _count,
    "sum": sum,
    "minimum": min,
    "maximum": max,
}


@dataclass(frozen=True, slots=True)
class DerivedVariable:
    """A number that is computed from other variables.

    Attributes:
        operation: one of `OPERATIONS`.
        index: number of the bit of `bit_of`.
    """

    name: str
    operation: str
    sources: tuple[str, ...]
    index: int = 0

    def compute(self, values: Values) -> int | float:
        found = [values[source] for source in self.sources]
        if self.operation == "bit_of":
            return _bit(found[0], self.index)
        if self.operation in _OF_TWO:
            return _OF_TWO[self.operation](found[0], found[1])
        return _OF_MANY[self.operation](chain.from_iterable(map(_as_tuple, found)))


def derived_in_order(specs: Specs) -> tuple[DerivedVariable, ...]:
    """Return the variables that are computed, each after those that it is computed from."""
    found = []
    for name in TopologicalSorter({n: spec.sources for n, spec in specs.items()}).static_order():
        spec = specs[name]
        if spec.operation is not None:
            index = 0 if spec.bit_of is None else spec.bit_of.index
            found.append(DerivedVariable(name, spec.operation, spec.sources, index))
    return tuple(found)


def derivation_problems(specs: Specs) -> Iterator[Problem]:
    """Yield what is wrong with the operations, apart from unknown names and arrays.

    No variable is computed from itself if nothing is yielded.
    """
    cycles = list(_cycles(specs))
    yield from (_cycle_problem(cycle, specs) for cycle in cycles)
    in_cycles = set(chain.from_iterable(cycles))
    for name, spec in specs.items():
        if spec.operation not in ("count", "bit_of") or spec.sources[0] not in specs:
            continue
        source = spec.sources[0]
        if source in in_cycles:
            continue
        if message := _bit_problem(spec, source, specs[source]):
            key = ("variables", name, spec.operation)
            yield Problem(key, message, reads=(("variables", source),))


def _bit_problem(spec: VariableSpec, source: str, of: VariableSpec) -> str | None:
    """Return why the bits of `source` cannot be counted or named, or None if they can."""
    if of.operation is not None or of.type not in (*UNSIGNED, "bit", "bits"):
        what = f"is computed by `{of.operation}`" if of.operation else f"is of type {of.type}"
        return f"{source} {what}; name a variable of type {', '.join(UNSIGNED)} or bits"
    if spec.bit_of is None:
        return None
    if of.addresses is not None:
        return f"{source} is an array of numbers; name one number, or a variable of type bits"
    n_bits = 1 if of.type == "bit" else 8 * of.n_bytes
    if spec.bit_of.index >= n_bits:
        found = spec.bit_of.index
        last = n_bits - 1
        return f"{source} has no bit {found:,}; write the number of one that it has, 0 to {last:,}"
    return None


def _cycles(specs: Specs) -> Iterator[list[str]]:
    left = {name: spec.sources for name, spec in specs.items()}
    while cycle := _cycle(left):
        yield cycle
        for name in cycle:
            del left[name]


def _cycle_problem(cycle: list[str], specs: Specs) -> Problem:
    first = next(name for name in specs if name in cycle)
    at = cycle.index(first)
    way = (*cycle[at:], *cycle[:at], first)
    return Problem(
        ("variables", first, str(specs[first].operation)),
        f"is computed from itself ({' from '.join(way)}); compute one of them from something else",
        reads=tuple(("variables", name) for name in cycle),
    )


def _cycle(sources: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return variables that are computed each from the next, the last from the first, if any."""
    try:
        TopologicalSorter(sources).prepare()
    except CycleError as error:
        found: list[str] = error.args[1][:0:-1]
        return found
    return []


class VariableReader:
    """Reads variables from memory and computes those that are computed from others.

    Args:
        variables: the game's variables in memory.
        specs: all of its variables, as game.yaml has them.
        names: the variables that are needed; None for all.
    """

    def __init__(
        self,
        variables: Iterable[MemoryVariable],
        specs: Specs,
        names: Collection[str] | None = None,
    ) -> None:
        derived = derived_in_order(specs)
        needed = set(specs if names is None else names)
        for one in reversed(derived):
            if one.name in needed:
                needed.update(one.sources)
        self._memory = tuple(v for v in variables if v.name in needed)
        self._derived = tuple(d for d in derived if d.name in needed)

    def read(self, emulator: Emulator) -> dict[str, Value]:
        values: dict[str, Value] = {v.name: v.read(emulator) for v in self._memory}
        for derived in self._derived:
            values[derived.name] = derived.compute(values)
        return values
