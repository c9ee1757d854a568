"""JSON that a browser can parse, whatever numbers and names of files are in it."""

import json
from typing import Any

from game_rl.system.output import valid_text


def json_text(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return compact JSON, as valid text, without the numbers that JSON does not have."""
    return json.dumps(_shown(value), separators=(",", ":"), ensure_ascii=False)


def _shown(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, str):
        return value if value.isascii() else valid_text(value)
    if isinstance(value, dict):
        return {_shown(key): _shown(each) for key, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, list | tuple) else value
