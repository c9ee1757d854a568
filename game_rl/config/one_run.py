"""Commands that are about one run, and what to name where the file is an experiment's."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote

from game_rl.config.based_on import named_file
from game_rl.config.changed_values import flat
from game_rl.config.kind import kind_in, kind_of
from game_rl.config.loader import Source
from game_rl.config.yaml_tree import Node
from game_rl.errors import ConfigError, UsageError


def refuse_experiment(path: Path, overrides: Sequence[str], *, command: str) -> None:
    """Let only the config of a run pass.

    Args:
        command: such as `game-rl tune`; what the way out begins with.

    Raises:
        UsageError: it is an experiment's; with the command for the runs that it is made of.
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
        f"name that of a run: {' or '.join(found)}"
        if found
        else f"write the config of a run into a file of its own, and name that: {command} --config "
        "FILE"
    )
    raise UsageError(f"{path} is a {kind}, and {command} is about one run; {way}")


def _sections(root: Node, kind: str) -> Iterator[Node]:
    """Those that may name the config of a run."""
    if kind == "study":
        yield from root.nearest(("arms",)).children().values() if root.has(("arms",)) else ()
    else:
        yield root.nearest(("member",))


def _command(source: Source, section: Node, command: str) -> str | None:
    """With the file that a section is based on, and what differs there; None: with no run's."""
    file = named_file(source, section)
    if file is None or kind_of(file) is not None:
        return None
    own = section.without(("config",)).plain()
    assert isinstance(own, dict)
    words = [f"--set {quote(f'{key}={_text(value)}')}" for key, value in flat(own).items()]
    return " ".join([f"{command} --config {os.path.normpath(file)}", *words])


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
