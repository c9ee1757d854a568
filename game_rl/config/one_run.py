"""The check that a command about a single run is not given the config of an experiment."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote

from game_rl.config.loader import Source, game_path, kind_in, kind_of, named_file
from game_rl.config.strict_model import flat
from game_rl.config.yaml_tree import Node
from game_rl.errors import ConfigError, UsageError


def refuse_experiment(path: Path, overrides: Sequence[str], *, command: str) -> None:
    """Accept the config of a run, and refuse that of an experiment.

    Args:
        command: command such as `game-rl tune`, with which the suggested command lines begin.

    Raises:
        UsageError: the config is an experiment's. The message suggests commands for its runs.
    """
    source = Source(path, ConfigError)
    root, _ = source.tree(overrides)
    kind = kind_in(source, root)
    if kind is None:
        return
    sections = _sections(root, kind)
    ways = [_command(source, section, command) for section in sections]
    found = list(dict.fromkeys(way for way in ways if way is not None))
    way = (
        f"name the config of a run: {' or '.join(found)}"
        if found
        else f"write the config of a run into a file of its own, and name that: {command} --config "
        "FILE"
    )
    raise UsageError(f"{path} is a {kind}, and {command} is for a single run; {way}")


def _sections(root: Node, kind: str) -> Iterator[Node]:
    """Yield the sections that may name the config of a run."""
    if kind == "study":
        yield from root.nearest(("arms",)).children().values() if root.has(("arms",)) else ()
    else:
        yield root.nearest(("member",))


def _command(source: Source, section: Node, command: str) -> str | None:
    """Return the command for the file that a section is based on, with the section's changes.

    None if the section is based on no file, or on that of an experiment.
    """
    file = named_file(source, section)
    if file is None or kind_of(file) is not None:
        return None
    own = section.without(("config",)).plain()
    assert isinstance(own, dict)
    if section.has(("game",)):  # in --set, it is relative to the current folder
        game, node = str(own["game"]), section.nearest(("game",))
        folder = Source(file, ConfigError).folder_of(node)
        own["game"] = str(game_path(game, relative_to=folder) or game)
    words = [f"--set {quote(f'{key}={_text(value)}')}" for key, value in flat(own).items()]
    return " ".join([f"{command} --config {quote(os.path.normpath(file))}", *words])


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
