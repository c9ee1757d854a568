"""Sections that are the config of a run, or `config: FILE` and what differs from that."""

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
    """The run of a section that is a run's config, or `config: FILE` and what differs.

    Args:
        source: the file that the section stands in.
        decided: keys that the plan decides, each with its value and what decides it.
    """
    base, tree = based_on(source, section)
    tree = with_decided(tree, decided)
    run = base.model_of(tree, [], RunConfig, lambda _: ())
    game_file = game_path(run.game, relative_to=base.path.parent)
    return run if game_file is None else run.model_copy(update={"game": str(game_file)})


def based_on(source: Source, section: Node) -> tuple[Source, Node]:
    """A section with what is in the file that its key `config` names, and that file."""
    file = named_file(source, section)
    if file is None:
        return source, section
    base = Source(file, ConfigError)
    below, problems = base.tree()
    if problems:
        base.fail(problems)
    return base, _merged(below, _labelled(section.without(("config",)), source.path.name))


def named_file(source: Source, section: Node) -> Path | None:
    """That the section's key `config` names, relative to the folder of `source`."""
    if not section.has(("config",)):
        return None
    return source.path.parent / expanded_path(str(section.nearest(("config",)).value))


def with_decided(tree: Node, decided: Sequence[tuple[Key, Any, str]]) -> Node:
    """With the keys that a plan decides, each with its value and what decides it."""
    for key, value, label in decided:
        tree = tree.with_value(key, _decided_node(value, label))
    return tree


def _decided_node(value: Any, label: str) -> Node:  # noqa: ANN401 - whatever a config holds
    inner = [_decided_node(v, label) for v in value] if isinstance(value, list) else value
    return Node(inner, Place(0, label), f"{value}")


def _labelled(node: Node, file: str) -> Node:
    """With the file's name at each place, as it is merged into another file."""
    place = replace(node.place, label=f"{file} {node.place.label}")
    value = node.value
    if isinstance(value, dict):
        value = {key: _labelled(child, file) for key, child in value.items()}
    elif isinstance(value, list):
        value = [_labelled(child, file) for child in value]
    return replace(node, place=place, value=value)


def _merged(below: Node, over: Node) -> Node:
    """Section by section; whatever is no section in both replaces what is below."""
    if not isinstance(below.value, dict) or not isinstance(over.value, dict):
        return over
    value = dict(below.value)
    for key, node in over.value.items():
        value[key] = _merged(value[key], node) if key in value else node
    return replace(below, value=value)
