"""A proposed change of a user's config file, as a diff that was tried out."""

import difflib
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from game_rl.config.edited_text import with_values
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key
from game_rl.errors import ConfigError

_CONTEXT_LINES = 1


def propose(
    path: Path, values: Mapping[Key, int | None], wanted: RunConfig, overrides: Sequence[str] = ()
) -> list[str] | None:
    """Return the lines of a unified diff that turns the file at `path` into the `wanted` config.

    None if no such diff is found: the file writes these keys in a way that cannot be changed in
    place, as with anchors and aliases, or something other than the file decides them.

    Args:
        values: the keys to change, with their new values.
        overrides: overrides of the file. They apply to the changed file too, except those of these
            keys.
    """
    text = path.read_bytes().decode("utf-8-sig")
    keys = {".".join(key) for key in values}
    others = [override for override in overrides if override.partition("=")[0].strip() not in keys]
    try:
        edited = with_values(text, values)
        found = _load(edited, path.name, others)
    except (ValueError, yaml.YAMLError, ConfigError):
        return None
    if found.model_copy(update={"game": wanted.game}) != wanted:
        return None
    return _diff(text, edited, str(path))


def _load(text: str, name: str, overrides: Sequence[str]) -> RunConfig:
    with tempfile.TemporaryDirectory(prefix="game_rl_") as folder:
        path = Path(folder) / name
        path.write_bytes(text.encode())
        return load_config(path, overrides)


def _diff(old: str, new: str, name: str) -> list[str]:
    lines = difflib.unified_diff(_lines(old), _lines(new), name, name, n=_CONTEXT_LINES)
    shown: list[str] = []
    for line in lines:
        shown.append(line.rstrip("\r\n"))
        if not line.endswith("\n"):
            shown.append("\\ No newline at end of file")
    return shown


def _lines(text: str) -> list[str]:
    """Split into lines as patch does: str.splitlines knows more line ends."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)
