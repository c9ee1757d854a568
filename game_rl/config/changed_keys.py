"""The keys of a run's config that differ from their defaults."""

from collections.abc import Iterator

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from game_rl.config.schema import RunConfig


def changed_keys(config: RunConfig) -> dict[str, tuple[object, object]]:
    """Return the default and the value of each key that differs, by its dotted name.

    Keys that must be given are among them, with None as their default. A section that is off by
    default, such as `lake`, is compared with the defaults that it has when it is there.
    """
    return dict(_changed(config, None, ""))


def _changed(
    section: BaseModel, default: BaseModel | None, above: str
) -> Iterator[tuple[str, tuple[object, object]]]:
    """Args: default: the section's default, if it is of the same kind; else its keys' own count."""
    values = section.model_dump(mode="json", by_alias=True)
    for name, field in type(section).model_fields.items():
        key = field.alias or name
        own = getattr(section, name)
        usual = _default(field, default, name)
        if isinstance(own, BaseModel) and (usual is None or isinstance(usual, BaseModel)):
            is_alike = type(own) is type(usual)
            yield from _of_section(own, usual if is_alike else None, f"{above}{key}", is_alike)
        elif (shown := to_jsonable_python(usual)) != values[key]:
            yield f"{above}{key}", (shown, values[key])


def _of_section(
    section: BaseModel, default: BaseModel | None, key: str, is_alike: bool
) -> Iterator[tuple[str, tuple[object, object]]]:
    changed = list(_changed(section, default, f"{key}."))
    if not is_alike:  # it is off by default, or it is one of several kinds
        kind = section.model_dump(mode="json").get("name")
        if kind:
            yield f"{key}.name", (None, kind)
        elif not changed:
            yield key, (None, {})
    yield from changed


def _default(field: FieldInfo, section: BaseModel | None, name: str) -> object:
    if section is not None:
        return getattr(section, name)
    found = field.get_default(call_default_factory=True, validated_data={})
    return None if found is PydanticUndefined else found
