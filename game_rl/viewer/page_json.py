"""JSON that a browser can parse, whatever numbers are in it."""

import json
from typing import Any


def json_text(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return compact JSON without the numbers that JSON does not have."""
    return json.dumps(_finite(value), separators=(",", ":"), ensure_ascii=False)


def _finite(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value
