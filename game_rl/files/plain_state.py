"""The state of a user's own object as JSON: plain data, and arrays where they are allowed.

What JSON can represent stays as it is. A tuple becomes `{"!tuple": [...]}`; a dict with another key
than text becomes `{"!dict": [[key, value], ...]}`; Counters and defaultdicts are marked likewise.
With arrays, so are NumPy arrays and their scalars, infinite numbers and NaN. Nothing is pickled.
"""

import base64
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from pydantic import JsonValue

_MARK = "!"
_FACTORIES: dict[str, Callable[[], Any]] = {f.__name__: f for f in (int, float, str, list, dict)}
_NUMBERS = "biufc"  # kinds of NumPy's types that are numbers

Leaf = Callable[[object], JsonValue | None]
"""Returns the JSON for a value that is no plain data, or None if it does not know it either."""


def state_to_json(value: object, name: str = "it", leaf: Leaf = lambda _: None) -> JsonValue:
    """Return what `state_from_json` turns into an equal value of the same types.

    Args:
        value: None, numbers, text, and lists, tuples, dicts, Counters and defaultdicts of them.
        name: what the value is called in messages.
        leaf: represents further values, such as `array_to_json`.

    Raises:
        ValueError: it is no plain data; the message begins with the part that is not.
    """
    if (known := leaf(value)) is not None:
        return known
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list):
        return _items(value, name, leaf)
    if type(value) is tuple:
        return {f"{_MARK}tuple": _items(value, name, leaf)}
    if isinstance(value, dict):
        return _dict_to_json(value, name, leaf)
    what = f"{value}" if isinstance(value, float) else f"of type {type(value).__name__}"
    raise ValueError(f"{name} is {what}")


def array_to_json(value: object) -> JsonValue | None:
    """Represent a NumPy array or scalar of numbers, or a float that is infinite or NaN."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in _NUMBERS:
        array = np.ascontiguousarray(value)
        mark = "scalar" if isinstance(value, np.generic) else "array"
        return bytes_to_json(mark, array.dtype.str, np.shape(value), array.tobytes())
    if type(value) is float and not math.isfinite(value):
        return {f"{_MARK}float": repr(value)}
    return None


def bytes_to_json(
    mark: str, dtype: str, shape: tuple[int, ...], content: bytes
) -> dict[str, JsonValue]:
    """Return a marked leaf with the bytes of an array."""
    return {f"{_MARK}{mark}": [dtype, list(shape), base64.b64encode(content).decode("ascii")]}


def checked_json(value: JsonValue) -> JsonValue:
    """Return a copy that has been through JSON; raise ValueError if it cannot be."""
    copy: JsonValue = json.loads(json.dumps(value, allow_nan=False))
    return copy


Tensor = Callable[[str, tuple[int, ...], bytes], Any]
"""Makes a tensor of its type's name, its shape and its bytes; this module imports no torch."""


def _no_tensor(dtype: str, shape: tuple[int, ...], content: bytes) -> Any:  # noqa: ANN401, ARG001
    raise ValueError(f"a tensor of {dtype} cannot be saved here")


def state_from_json(value: JsonValue, tensor: Tensor = _no_tensor) -> Any:  # noqa: ANN401 - whatever was saved
    """Return the value that `state_to_json` represented."""
    if isinstance(value, list):
        return [state_from_json(item, tensor) for item in value]
    if not isinstance(value, dict):
        return value
    match list(value.items()):
        case [("!tuple", list(items))]:
            return tuple(state_from_json(item, tensor) for item in items)
        case [("!dict", list(pairs))]:
            return _filled({}, pairs, tensor)
        case [("!Counter", list(pairs))]:
            return _filled(Counter(), pairs, tensor)
        case [("!defaultdict", [str(factory), *pairs])]:
            return _filled(defaultdict(_FACTORIES[factory]), pairs, tensor)
        case [("!float", str(text))]:
            return float(text)
        case [("!array" | "!scalar" | "!tensor" as mark, [str(dtype), list(sides), str(text)])]:
            shape = tuple(map(_side, sides))
            content = base64.b64decode(text, validate=True)
            if mark == "!tensor":
                return tensor(dtype, shape, content)
            array = _array(dtype, shape, content)
            return array[()] if mark == "!scalar" else array
    return {key: state_from_json(item, tensor) for key, item in value.items()}


def _array(dtype: str, shape: tuple[int, ...], content: bytes) -> Any:  # noqa: ANN401
    kind = np.dtype(dtype)
    if kind.kind not in _NUMBERS:
        raise ValueError(f"an array of {dtype} cannot be saved here")
    return np.frombuffer(content, kind).reshape(shape).copy()  # a copy can be changed


def _side(value: JsonValue) -> int:
    if not isinstance(value, int):
        raise ValueError(f"{value} is not a length")
    return value


def _items(values: list[Any] | tuple[Any, ...], name: str, leaf: Leaf) -> list[JsonValue]:
    return [state_to_json(item, f"{name}[{index}]", leaf) for index, item in enumerate(values)]


def _dict_to_json(value: dict[Any, Any], name: str, leaf: Leaf) -> JsonValue:
    inner = {key: state_to_json(item, f"{name}[{key!r}]", leaf) for key, item in value.items()}
    is_text = all(isinstance(key, str) and not key.startswith(_MARK) for key in inner)
    if is_text and not isinstance(value, Counter | defaultdict):
        return inner
    pairs: list[JsonValue] = [
        [state_to_json(key, f"a key of {name}"), item] for key, item in inner.items()
    ]
    if isinstance(value, Counter):
        return {f"{_MARK}Counter": pairs}
    if not isinstance(value, defaultdict):
        return {f"{_MARK}dict": pairs}
    for factory_name, factory in _FACTORIES.items():
        if value.default_factory is factory:
            return {f"{_MARK}defaultdict": [factory_name, *pairs]}
    known = ", ".join(_FACTORIES)
    raise ValueError(f"{name} is a defaultdict of {value.default_factory}, not of {known}")


def _filled(target: dict[Any, Any], pairs: list[JsonValue], tensor: Tensor) -> dict[Any, Any]:
    for pair in pairs:
        assert isinstance(pair, list)
        key, item = pair
        target[state_from_json(key)] = state_from_json(item, tensor)
    return target
