"""Configs that the last release saved.

A user's own config is not converted: there an old key is a problem, with a hint (`key_hints`).
"""

import json
from collections.abc import Mapping
from typing import Any

from game_rl.config.schema import RunConfig
from game_rl.config.yaml_tree import Node, Place, parse_document
from game_rl.errors import ConfigError
from game_rl.files.saved import parse_saved

_GONE = (
    ("algorithm", "feed"),
    ("algorithm", "replay", "lake"),
    ("algorithm", "replay", "lake_capacity_transitions"),
    ("algorithm", "replay", "lake_capacity_gb"),
    ("algorithm", "replay", "lake_on_full"),
)


def up_to_date(root: Node) -> Node:
    """Return a saved config with a section `lake` for `feed` of PQN and `replay.lake` of DQN.

    A run saves every key. A missing key is newer than the run, and gets the value for what the run
    did.
    """
    section = _lake_section(root.plain())
    for key in _GONE:
        root = root.without(key)
    if section is not None:
        root = root.with_value(("lake",), _tree(section, root.place))
    algorithm = _section(root.plain(), "algorithm")
    was: dict[str, str | None] = {"precision": "float32"}  # only keys with another default today
    if algorithm.get("name", "ppo") == "ppo":
        was["micro_batch_size"] = None
    for name, value in was.items():
        if name not in algorithm:
            root = root.with_value(("algorithm", name), _tree(value, root.place))
    return root


def saved_config(document: Mapping[str, Any], *, source: object) -> RunConfig:
    """Return a checkpoint's config, with defaults for keys that are newer than the checkpoint.

    Args:
        document: the config as it was saved.
        source: file that has it, for the message.

    Raises:
        ConfigError: the config is of no version that this one knows.
    """
    root = _tree(document)
    return parse_saved(
        RunConfig,
        json.dumps(up_to_date(root).plain()),
        source,
        error=ConfigError,
        fault="has a config that this version does not know",
        way_out="use the version that wrote it",
    )


def _tree(document: object, place: Place | None = None) -> Node:
    return parse_document(json.dumps(document, ensure_ascii=False), place)[0]


def _lake_section(document: object) -> dict[str, Any] | None:
    """Return the section `lake` for the old keys; None if they are missing or say no Lake."""
    algorithm = _section(document, "algorithm")
    feed = _section(algorithm, "feed")
    replay = _section(algorithm, "replay")
    if feed:
        return _of(feed, place=feed.get("lake", True))
    if replay.get("lake", False) is not False:
        limits = {key.removeprefix("lake_"): value for key, value in replay.items()}
        return _of(limits, place=replay["lake"])
    return None


def _of(limits: Mapping[str, Any], *, place: object) -> dict[str, Any]:
    names = ("capacity_transitions", "capacity_gb", "on_full")
    chosen = {name: limits[name] for name in names if name in limits}
    return {"path": None if place is True else place, **chosen}


def _section(document: object, name: str) -> dict[str, Any]:
    found = document.get(name) if isinstance(document, dict) else None
    return found if isinstance(found, dict) else {}
