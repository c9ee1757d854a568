"""Arrays in parts: those of a Dict or a Tuple space, beside the single array of other spaces."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from gymnasium import spaces
from numpy.typing import NDArray

Space = spaces.Space[Any]
Arrays = NDArray[Any] | dict[str, NDArray[Any]] | tuple[NDArray[Any], ...]
"""What a vec env returns as observations; spelled as SB3's VecEnvObs."""


def in_parts(space: Space) -> Any:  # noqa: ANN401
    """Return the spaces of a Dict as a dict, those of a Tuple as a tuple, or else the space."""
    if isinstance(space, spaces.Dict):
        return dict(space.spaces)
    return tuple(space.spaces) if isinstance(space, spaces.Tuple) else space


def each_part(act: Callable[..., Any], parts: Any, *others: Any) -> Any:  # noqa: ANN401
    """Apply `act` to each value of a dict or a tuple, in its order, or to a single value.

    Args:
        parts: decides the keys and their order.
        others: further arguments of `act`, in the same structure.

    Returns:
        The results, in the structure of `parts`.
    """
    if isinstance(parts, Mapping):
        return {key: act(value, *(other[key] for other in others)) for key, value in parts.items()}
    if isinstance(parts, tuple):
        return tuple(act(*values) for values in zip(parts, *others, strict=True))
    return act(parts, *others)


def part_items(parts: Any) -> list[tuple[str | int | None, Any]]:  # noqa: ANN401
    """Return the parts with their keys; a single value has the key None."""
    if isinstance(parts, Mapping):
        return list(parts.items())
    return list(enumerate(parts)) if isinstance(parts, tuple) else [(None, parts)]


def space_bytes(space: Space) -> int:
    """Return the bytes of an observation of a space of arrays."""
    sizes = [(part.shape, part.dtype) for _, part in part_items(in_parts(space))]
    return sum(prod(shape) * dtype.itemsize for shape, dtype in sizes)
