"""The keys of a run's config that differ from their defaults."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import value_at

Tree = dict[str, Any]


def changed_keys(config: RunConfig) -> dict[str, tuple[object, object]]:
    """Return the default and the value of each key that differs, by its dotted name.

    Keys that have no default come first, with None for it. A section that is off by default, such
    as `lake`, is compared with the defaults that it has when it is there.
    """
    values = config.model_dump(mode="json", by_alias=True)
    default, required = _defaults(values)
    given = {key: (None, value_at(values, key)) for key in required}
    return given | dict(_differing(default, values))


def _defaults(values: Tree) -> tuple[Tree, list[str]]:
    """Return a config of the same sections and algorithm with all defaults, and the keys without.

    What must be given has the config's values, so that it does not differ.
    """
    off = [name for name, field in RunConfig.model_fields.items() if field.default is None]
    tree: Tree = {name: {} for name in off if isinstance(values.get(name), dict)}
    tree["algorithm"] = {"name": values["algorithm"]["name"]}
    required: dict[str, None] = {}
    taken: set[str] = set()
    while True:
        try:
            return RunConfig.model_validate(tree).model_dump(mode="json", by_alias=True), [
                *required
            ]
        except ValidationError as error:
            found = dict(_refused(error, values))
            if not found.keys() - taken:  # it refuses the values themselves, which are valid
                return {}, []
        for key, is_missing in found.items():
            if key in off and not is_missing:  # it needs one of several keys, as stop_when does
                del tree[key]
                continue
            _set(tree, key, value_at(values, key))
            if is_missing:
                required[key] = None
        taken |= found.keys()


def _refused(error: ValidationError, values: Tree) -> Iterator[tuple[str, bool]]:
    """Yield the keys with a problem, and whether it is that they are missing.

    A location may have the tag of a union in it, which is no key.
    """
    for problem in error.errors(include_url=False, include_input=False):
        key: list[str] = []
        for part in map(str, problem["loc"]):
            if value_at(values, ".".join([*key, part])) is not None:
                key.append(part)
        if key:
            yield ".".join(key), problem["type"] == "missing"


def _set(tree: Tree, key: str, value: object) -> None:
    *above, last = key.split(".")
    for name in above:
        tree = tree.setdefault(name, {})
    tree[last] = value


def _differing(
    before: Mapping[str, Any], now: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, tuple[object, object]]]:
    for name in {**before, **now}:
        key, old, new = f"{above}{name}", before.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differing(old, new, f"{key}.")
        elif old != new:
            yield key, (old, new)
