"""What a config file describes: a run, or an experiment of which kind."""

from collections.abc import Sequence
from pathlib import Path

from game_rl.config.loader import Source
from game_rl.config.yaml_tree import LocatedProblem, Node
from game_rl.errors import ConfigError

KINDS = ("population", "mixture", "study")


def kind_of(path: Path, overrides: Sequence[str] = ()) -> str | None:
    """Of the experiment that a file describes; None for a run.

    Raises:
        ConfigError: it is no YAML, or of a kind that does not exist.
    """
    source = Source(path, ConfigError)
    root, _ = source.tree(overrides)
    return kind_in(source, root)


def kind_in(source: Source, root: Node) -> str | None:
    """As `kind_of`, of a tree that was read from `source`."""
    if not root.has(("kind",)):
        return None
    node = root.nearest(("kind",))
    if node.value not in KINDS:
        message = (
            f"found {node.text or 'a section'}; allowed: {' or '.join(KINDS)}; or no such line"
        )
        source.fail([LocatedProblem(node.place, ("kind",), f"{message}, for a single run")])
    return str(node.value)
