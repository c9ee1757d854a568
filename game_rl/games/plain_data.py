"""Plain data as JSON and back, with its tuples and its dicts of any keys.

What JSON can represent stays as it is. A tuple becomes `{"!tuple": [...]}`; a dict with another key
than text becomes `{"!dict": [[key, value], ...]}`; Counters and defaultdicts are marked likewise.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from pydantic import JsonValue

_MARK = "!"
_FACTORIES: dict[str, Callable[[], Any]] = {f.__name__: f for f in (int, float, str, list, dict)}


def to_json(value: object, name: str = "it") -> JsonValue:
    """Return what `from_json` turns into an equal value of the same types.

    Args:
        value: None, numbers, text, and lists, tuples, dicts, Counters and defaultdicts of them.
        name: what the value is called in messages.

    Raises:
        ValueError: it is no plain data; the message begins with the part that is not.
    """
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list):
        return _items(value, name)
    if type(value) is tuple:
        return {f"{_MARK}tuple": _items(value, name)}
    if isinstance(value, dict):
        return _dict_to_json(value, name)
    what = f"{value}" if isinstance(value, float) else f"of type {type(value).__name__}"
    raise ValueError(f"{name} is {what}")


def from_json(value: JsonValue) -> Any:  # noqa: ANN401 - whatever was saved
    """Return the value that `to_json` represented."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    match list(value.items()):
        case [("!tuple", list(items))]:
            return tuple(map(from_json, items))
        case [("!dict", list(pairs))]:
            return _filled({}, pairs)
        case [("!Counter", list(pairs))]:
            return _filled(Counter(), pairs)
        case [("!defaultdict", [str(factory), *pairs])]:
            return _filled(defaultdict(_FACTORIES[factory]), pairs)
    return {key: from_json(item) for key, item in value.items()}


def _items(values: list[Any] | tuple[Any, ...], name: str) -> list[JsonValue]:
    return [to_json(item, f"{name}[{index}]") for index, item in enumerate(values)]


def _dict_to_json(value: dict[Any, Any], name: str) -> JsonValue:
    inner = {key: to_json(item, f"{name}[{key!r}]") for key, item in value.items()}
    is_text = all(isinstance(key, str) and not key.startswith(_MARK) for key in inner)
    if is_text and not isinstance(value, Counter | defaultdict):
        return inner
    pairs: list[JsonValue] = [
        [to_json(key, f"a key of {name}"), item] for key, item in inner.items()
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


def _filled(target: dict[Any, Any], pairs: list[JsonValue]) -> dict[Any, Any]:
    for pair in pairs:
        assert isinstance(pair, list)
        key, item = pair
        target[from_json(key)] = from_json(item)
    return target
