"""The kind of experiment that a config file describes, if it is not a single run."""

from collections.abc import Sequence
from pathlib import Path

from game_rl.config.loader import Source
from game_rl.config.yaml_tree import LocatedProblem, Node
from game_rl.errors import ConfigError

KINDS = ("population", "mixture", "study")


def kind_of(path: Path, overrides: Sequence[str] = ()) -> str | None:
    """Return the kind of the experiment that a file describes, or None for a run.

    Raises:
        ConfigError: the file is not YAML, or its kind does not exist.
    """
    source = Source(path, ConfigError)
    root, _ = source.tree(overrides)
    return kind_in(source, root)


def kind_in(source: Source, root: Node) -> str | None:
    """As `kind_of`, for a tree that was read from `source`."""
    if not root.has(("kind",)):
        return None
    node = root.nearest(("kind",))
    if node.value not in KINDS:
        message = (
            f"found {node.text or 'a section'}; allowed: {' or '.join(KINDS)}, or no such line"
        )
        source.fail([LocatedProblem(node.place, ("kind",), f"{message} for a single run")])
    return str(node.value)
