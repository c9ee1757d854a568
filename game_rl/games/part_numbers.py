"""Parts of an observation that are made of variables: vectors and categories."""

import math
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import GameFileError
from game_rl.games.part_format import Bits, PartFormat, Stretch
from game_rl.games.part_spec import NumberSpec, PartSpec, Specs
from game_rl.games.variable_spec import VariableSpec
from game_rl.games.variables import Values


def n_numbers(spec: VariableSpec) -> int:
    """Return how many numbers a variable has."""
    if spec.operation is not None:
        return 1
    return 8 * spec.n_bytes if spec.type == "bits" else len(spec.addresses or (0,))


def vector_format(part: PartSpec, variables: Specs) -> PartFormat:
    """Return the form of a vector; bits take one bit each, all else is float32."""
    elements = entry_sizes(part, variables)
    stretches = tuple(
        Stretch(sum(n for n, _ in group), bits)
        for bits, group in groupby(elements, key=lambda element: element[1])
    )
    n = sum(n for n, _ in elements)
    return PartFormat("vector", (n,), 0, stretches, part.stack)


def entry_sizes(part: PartSpec, variables: Specs) -> list[tuple[int, Bits]]:
    """Return, for each entry of a vector, how many numbers it has and the bits of each."""
    return [_elements(one, variables[one.variable]) for one in part.numbers]


def _elements(one: NumberSpec, spec: VariableSpec) -> tuple[int, Bits]:
    n = n_numbers(spec) * (one.fourier or one.bits or 1)
    is_plain = one.scale is None and one.fourier is None
    return n, 1 if one.bits is not None or (_is_of_bits(spec) and is_plain) else 32


def _is_of_bits(spec: VariableSpec) -> bool:
    if spec.operation is not None:
        return spec.operation == "bit_of"
    return spec.type in ("bit", "bits")


def vector_values(name: str, part: PartSpec, values: Values) -> NDArray[np.float32]:
    """Return a new vector.

    Raises:
        GameFileError: a number has more bits than the part takes.
    """
    found: list[float] = []
    for index, one in enumerate(part.numbers):
        value = values[one.variable]
        numbers = value if isinstance(value, tuple) else (value,)
        if one.bits is not None:
            _check_bits(f"parts.{name}.vector.{index}.bits", one, numbers)
            found += [number >> bit & 1 for number in numbers for bit in range(one.bits)]
        elif one.fourier is not None or one.scale is not None:
            found += _scaled(one, numbers)
        else:
            found += numbers
    return np.array(found, np.float32)


def _scaled(one: NumberSpec, numbers: tuple[int | float, ...]) -> Iterator[float]:
    scale = 1.0 if one.scale is None else one.scale
    for number in numbers:
        if one.fourier is None:
            yield scale * number
        else:
            for k in range(one.fourier):
                yield math.sin(scale * number * 2**k)


def _check_bits(key: str, one: NumberSpec, numbers: tuple[int, ...]) -> None:
    assert one.bits is not None
    for number in numbers:
        if not 0 <= number < 1 << one.bits:
            raise GameFileError(
                f"{key}: {one.variable} is {number:,}, which is not a number of {one.bits} bits; "
                "write a larger `bits`, or give the variable a `mask`"
            )


def category_values(
    name: str, part: PartSpec, part_format: PartFormat, values: Values
) -> NDArray[Any]:
    """Return new categories.

    Raises:
        GameFileError: a number is not below `of`.
    """
    assert part.categories is not None
    value = values[part.categories]
    numbers = value if isinstance(value, tuple) else (value,)
    most = part_format.n_values
    for number in numbers:
        if not 0 <= number < most:
            raise GameFileError(
                f"parts.{name}.of: {part.categories} is {number:,}, and `of: {most}` allows 0 to "
                f"{most - 1:,}; write a larger `of`, or give the variable a `mask`"
            )
    return np.array(numbers, part_format.dtype)
