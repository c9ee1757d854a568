"""Sections that describe a run: a whole config, or `config: FILE` with changes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from game_rl.config.loader import Source, game_path
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key
from game_rl.config.values import expanded_path
from game_rl.config.yaml_tree import Node, Place
from game_rl.errors import ConfigError


def run_based_on(
    source: Source, section: Node, decided: Sequence[tuple[Key, Any, str]]
) -> RunConfig:
    """Return the run that a section describes, whole or as `config: FILE` with changes.

    Args:
        source: the file that has the section.
        decided: keys that the plan decides, each with its value and the name of what decides it.
    """
    base, tree = based_on(source, section)
    tree = with_decided(tree, decided)
    run = base.model_of(tree, [], RunConfig, lambda _: ())
    game_file = game_path(run.game, relative_to=base.folder_of(tree.nearest(("game",))))
    return run if game_file is None else run.model_copy(update={"game": str(game_file)})


def based_on(source: Source, section: Node) -> tuple[Source, Node]:
    """Return the file that the section's key `config` names, and the section merged over it.

    A section without that key comes back unchanged, with `source`.
    """
    file = named_file(source, section)
    if file is None:
        return source, section
    base = Source(file, ConfigError)
    below, problems = base.tree()
    if problems:
        base.fail(problems)
    return base, _merged(below, _labelled(section.without(("config",)), source.path.name))


def named_file(source: Source, section: Node) -> Path | None:
    """Return the file that the section's key `config` names (see `Source.folder_of`)."""
    if not section.has(("config",)):
        return None
    node = section.nearest(("config",))
    return source.folder_of(node) / expanded_path(str(node.value))


def with_decided(tree: Node, decided: Sequence[tuple[Key, Any, str]]) -> Node:
    """Return a copy of the tree with the keys that a plan decides (see `run_based_on`)."""
    for key, value, label in decided:
        tree = tree.with_value(key, _decided_node(value, label))
    return tree


def _decided_node(value: Any, label: str) -> Node:  # noqa: ANN401 - whatever a config holds
    inner = [_decided_node(v, label) for v in value] if isinstance(value, list) else value
    return Node(inner, Place(0, label), f"{value}")


def _labelled(node: Node, file: str) -> Node:
    """Return a copy with the file's name at each place, to merge it into another file."""
    place = replace(node.place, label=f"{file} {node.place.label}")
    value = node.value
    if isinstance(value, dict):
        value = {key: _labelled(child, file) for key, child in value.items()}
    elif isinstance(value, list):
        value = [_labelled(child, file) for child in value]
    return replace(node, place=place, value=value)


def _merged(below: Node, over: Node) -> Node:
    """Merge section by section; a value that is not a section in both replaces the one below."""
    if not isinstance(below.value, dict) or not isinstance(over.value, dict):
        return over
    value = dict(below.value)
    for key, node in over.value.items():
        value[key] = _merged(value[key], node) if key in value else node
    return replace(below, value=value)
