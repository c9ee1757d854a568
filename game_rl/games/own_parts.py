"""Parts of an observation that the game's own reward class makes: their form, checked values."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import GameFileError
from game_rl.games.part_format import PartFormat, Stretch, bits_of
from game_rl.games.part_spec import OwnPartSpec
from game_rl.games.variables import Values

OwnParts = Callable[[Values], Mapping[str, Any]]
"""Returns what the reward class makes of the values of the variables, by the parts' names."""


def no_own_parts(_: Values) -> Mapping[str, Any]:
    return {}


def own_format(spec: OwnPartSpec, *, is_stacked: bool) -> PartFormat:
    if spec.kind == "vector":
        bits = 32 if spec.of is None else bits_of(spec.of)
        stretches = (Stretch(prod(spec.shape), bits),)
        return PartFormat("vector", spec.shape, 0, stretches, is_stacked)
    assert spec.of is not None
    shape = (1, *spec.shape) if spec.kind == "grid" else spec.shape
    return PartFormat.of_indices(spec.kind, shape, spec.of, is_stacked=is_stacked)


def own_values(
    name: str, spec: OwnPartSpec, form: PartFormat, made: Mapping[str, Any]
) -> NDArray[Any]:
    """Return a part in a new array.

    Args:
        made: what the class has returned.

    Raises:
        GameFileError: the part is missing, or is not of its form.
    """
    if name not in made:
        found = ", ".join(map(str, made)) or "nothing"
        raise _wrong(name, f"the reward class returned {found}; return this part as well")
    try:
        values = np.asarray(made[name], np.float64)
    except (TypeError, ValueError):
        words = f"the reward class returned {type(made[name]).__name__}, which is no array"
        raise _wrong(name, f"{words} of numbers") from None
    if values.shape != spec.shape:
        raise _wrong(
            name,
            f"the reward class returned an array of shape {list(values.shape)}; `shape` says "
            f"{list(spec.shape)}",
        )
    if spec.of is None:
        with np.errstate(over="ignore"):
            wrong = ~np.isfinite(values.astype(np.float32))
        rule = "must be finite"
    else:
        wrong = ~((values >= 0) & (values < spec.of) & (values == np.floor(values)))
        rule = f"must be whole and below {spec.of:,} (`of`), from 0 on"
    if wrong.any():
        raise _wrong(name, f"the reward class returned {values[wrong][0]:g}; its numbers {rule}")
    return values.astype(form.dtype).reshape(form.shape)


def _wrong(name: str, message: str) -> GameFileError:
    return GameFileError(f"parts.{name}: {message}")
