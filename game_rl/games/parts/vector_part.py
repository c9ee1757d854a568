"""`vector`: a part that has variables in a row, as numbers."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from game_rl.config.strict_model import Key, Problem, StrictModel
from game_rl.emulator.emulator import Emulator
from game_rl.errors import GameFileError
from game_rl.games.parts.part_format import Bits, PartFormat, Stretch
from game_rl.games.parts.part_kind import GamePart, unfit
from game_rl.games.variable_spec import VariableSpec, is_always_whole
from game_rl.games.variables import Values, as_tuple

_LARGEST_SCALE = 1e6

Scale = Annotated[float, Field(ge=-_LARGEST_SCALE, le=_LARGEST_SCALE)]


class NumberSpec(StrictModel):
    """`{variable: level, scale: 0.02, fourier: 8}`: a variable in a vector."""

    variable: str
    scale: Scale | None = None
    """Factor that brings the value to the order of 1."""
    fourier: Annotated[int, Field(ge=1, le=16)] | None = None
    """How many numbers stand for the value: sin(scale x value x 2^k) for k = 0, 1, ...."""
    bits: Annotated[int, Field(ge=1, le=32)] | None = None
    """How many bits of a whole number are taken, the lowest first."""

    def problems(self) -> Iterable[Problem]:
        if self.scale == 0:
            yield Problem(("scale",), "0 would make every value 0; write another number")
        for key in ("scale", "fourier"):
            if self.bits is not None and getattr(self, key) is not None:
                yield Problem((key,), "does not go with `bits`, which are 0 or 1; remove it")

    def size(self, spec: VariableSpec) -> tuple[int, Bits]:
        """Return how many numbers it has of its variable, and the bits that each takes."""
        n = spec.n_numbers * (self.fourier or self.bits or 1)
        is_plain = self.scale is None and self.fourier is None
        return n, 1 if self.bits is not None or (spec.is_of_bits and is_plain) else 32


@dataclass(frozen=True, eq=False)
class VectorPart(GamePart):
    vector: tuple[str | NumberSpec, ...]

    @cached_property
    def _numbers(self) -> tuple[NumberSpec, ...]:
        return tuple(
            NumberSpec(variable=one) if isinstance(one, str) else one for one in self.vector
        )

    @cached_property
    def _sizes(self) -> tuple[tuple[int, Bits], ...]:
        return tuple(one.size(self.game.variables[one.variable]) for one in self._numbers)

    @cached_property
    def form(self) -> PartFormat:
        """Bits take one bit each, all else is float32."""
        stretches = tuple(
            Stretch(sum(n for n, _ in group), bits)
            for bits, group in groupby(self._sizes, key=lambda size: size[1])
        )
        shape = (sum(n for n, _ in self._sizes),)
        return PartFormat("vector", shape, 0, stretches, self.stack)

    def read(self, values: Values, emulator: Emulator) -> NDArray[np.float32]:
        """Return a new vector.

        Raises:
            GameFileError: a number has more bits than the part takes.
        """
        found: list[float] = []
        for index, one in enumerate(self._numbers):
            numbers: Any = as_tuple(values[one.variable])
            if one.bits is not None:
                for number in numbers:
                    if not 0 <= number < 1 << one.bits:
                        raise GameFileError(
                            f"parts.{self.name}.vector.{index}.bits: {one.variable} is "
                            f"{number:,}, which is not a number of {one.bits} bits; write a larger "
                            "`bits`, or give the variable a `mask`"
                        )
                found += [number >> bit & 1 for number in numbers for bit in range(one.bits)]
            elif one.fourier is not None or one.scale is not None:
                found += _scaled(one, numbers)
            else:
                found += numbers
        return np.array(found, np.float32)

    @property
    def labels(self) -> tuple[str, ...]:
        found: list[str] = []
        for one, (n, _) in zip(self._numbers, self._sizes, strict=True):
            found += [one.variable] if n == 1 else [f"{one.variable}[{i}]" for i in range(n)]
        return tuple(found)

    def rows(self) -> Sequence[tuple[str, int, Bits]]:
        labels = [n.variable if n.fourier is None else f"sin {n.variable}" for n in self._numbers]
        return [(label, n, bits) for label, (n, bits) in zip(labels, self._sizes, strict=True)]

    def references(self) -> Iterator[tuple[Key, str]]:
        for index, one in enumerate(self.vector):
            key = ("vector", str(index))
            yield (key, one) if isinstance(one, str) else ((*key, "variable"), one.variable)

    def problems(self) -> Iterator[Problem]:
        for index, one in enumerate(self._numbers):
            spec = self.game.variables.get(one.variable)
            if spec is None:
                continue
            for key in ("scale", "fourier", "bits"):
                if getattr(one, key) is not None and spec.type == "bits" and spec.operation is None:
                    yield unfit(
                        ("vector", str(index), key),
                        one.variable,
                        "is an array of bits, and a number is needed; name the variable alone, or "
                        f"{{count: {one.variable}}}",
                    )
            if one.bits is not None and not is_always_whole(one.variable, self.game.variables):
                yield unfit(
                    ("vector", str(index), "bits"),
                    one.variable,
                    "is not always a whole number, so it has no bits; remove `bits`",
                )


def _scaled(one: NumberSpec, numbers: tuple[int | float, ...]) -> Iterator[float]:
    scale = 1.0 if one.scale is None else one.scale
    for number in numbers:
        if one.fourier is None:
            yield scale * number
        else:
            for k in range(one.fourier):
                yield math.sin(scale * number * 2**k)
