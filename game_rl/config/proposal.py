"""A proposed change of a user's file: edited in place, tried, shown as a diff."""

import difflib
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

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
        with tempfile.TemporaryDirectory(prefix="game_rl_") as folder:
            copy = Path(folder) / path.name
            copy.write_bytes(edited.encode())
            found = load_config(copy, others)
    except (ValueError, yaml.YAMLError, ConfigError):
        return None
    if found.model_copy(update={"game": wanted.game}) != wanted:
        return None
    return _diff(text, edited, str(path))


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


_INDENT = "  "


def with_values(text: str, values: Mapping[Key, int | None]) -> str:
    """Return the text with these numbers (or null) at their keys; comments and order stay.

    A new key goes under the first line of its section, a new section to the end. The caller must
    read the result again before using it: in a text with aliases or several documents, a change in
    one place may also be one elsewhere.

    Raises:
        ValueError: something on the way to a key is not a mapping.
        yaml.YAMLError: the text is not YAML.
    """
    for key, value in values.items():
        text = _with_value(text, key, value)
    return text


def _with_value(text: str, key: Key, value: int | None) -> str:
    node, known = _nearest(yaml.compose(text, Loader=yaml.SafeLoader), key)
    if known == len(key):
        return _replaced(text, node, value)
    if not isinstance(node, yaml.MappingNode):
        raise ValueError(f"{'.'.join(key[:known])} is not a section")
    missing = key[known:]
    if node.flow_style:
        start = node.start_mark.index + 1
        comma = ", " if node.value else ""
        return f"{text[:start]}{_flow(missing, value)}{comma}{text[start:]}"
    newline = "\r\n" if "\r\n" in text else "\n"
    first = node.value[0][0].start_mark
    lines = _block(missing, value, indent=" " * first.column, newline=newline)
    if known:
        return _under_first_entry(text, node, lines, newline)
    return f"{text}{'' if text.endswith(newline) else newline}{lines}"


def _nearest(root: yaml.Node | None, key: Key) -> tuple[yaml.Node | None, int]:
    """Return the innermost node on the way to the key, and how many parts of the key lead to it."""
    node = root
    for depth, name in enumerate(key):
        entries = node.value if isinstance(node, yaml.MappingNode) else ()
        child = next((value for entry, value in entries if entry.value == name), None)
        if child is None:
            return node, depth
        node = child
    return node, len(key)


def _replaced(text: str, node: yaml.Node | None, value: int | None) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise ValueError("a section is where a number should be")
    start = node.start_mark.index
    end = node.end_mark.index
    # as the old value was written: with underscores, or as nothing (null), which needs a space
    number = f"{value:_}" if value is not None and "_" in node.value else _written(value)
    return f"{text[:start]}{' ' if start == end else ''}{number}{text[end:]}"


def _under_first_entry(text: str, section: yaml.MappingNode, lines: str, newline: str) -> str:
    """Insert lines after the first entry of the section if that is one line, else before it."""
    entry, value = section.value[0]
    at = text.rfind("\n", 0, entry.start_mark.index) + 1
    if isinstance(value, yaml.ScalarNode) and value.end_mark.line == entry.start_mark.line:
        at = text.find("\n", value.end_mark.index) + 1
        if at == 0:  # the last line, which does not end in a newline
            return f"{text}{newline}{lines}"
    return f"{text[:at]}{lines}{text[at:]}"


def _block(key: Key, value: int | None, *, indent: str, newline: str) -> str:
    rows = [f"{indent}{_INDENT * depth}{name}:" for depth, name in enumerate(key)]
    return newline.join(rows) + f" {_written(value)}{newline}"


def _flow(key: Key, value: int | None) -> str:
    inner = f"{key[-1]}: {_written(value)}"
    for name in reversed(key[:-1]):
        inner = f"{name}: {{{inner}}}"
    return inner


def _written(value: int | None) -> str:
    return "null" if value is None else str(value)
