"""Copies of a config with other values at some of its keys."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from game_rl.config.strict_model import Key

M = TypeVar("M", bound=BaseModel)


def with_changed(config: M, values: Mapping[Key, object]) -> M:
    """Return a copy with these values at their keys, validated as a file would be.

    A section that is null becomes a section with defaults and the value.

    Raises:
        ValidationError: the copy is not a valid config, or a key does not exist.
    """
    tree: dict[str, Any] = config.model_dump()
    for key, value in values.items():
        section = tree
        for name in key[:-1]:
            if section.get(name) is None:
                section[name] = {}
            section = section[name]
        section[key[-1]] = value
    return type(config).model_validate(tree)


def flat(section: object, key: str = "") -> dict[str, object]:
    """Return a nested config as `{"env.n_envs": 8, ...}`."""
    if not isinstance(section, dict):
        return {key: section}
    items: dict[str, object] = {}
    for name, value in section.items():
        items |= flat(value, f"{key}.{name}" if key else name)
    return items
