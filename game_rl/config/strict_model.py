"""The strict model of what a user writes, the role of each key of a run, and values by key."""

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import UnionType
from typing import Annotated, Any, ClassVar, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError, PydanticUndefined, to_jsonable_python

from game_rl.files.saved import DescribedModel

MOST_PROBLEMS = 60
"""Limit of the problems that one check reports: more than anyone reads, and quick to format."""

Key = tuple[str, ...]
"""Path to a value from the top of its file, written `env.n_envs`. List items count from 0."""


@dataclass(frozen=True)
class Problem:
    """A conflict between values that are each valid alone.

    Attributes:
        key: key of the value to change, relative to the model that reports the problem.
        message: what was found, why it cannot work, and what to write instead.
        reads: every other key that the check looked at. While one of them has an error of its own,
            the problem is not reported, because correcting that error may solve it.
    """

    key: Key
    message: str
    reads: tuple[Key, ...] = ()


class StrictModel(DescribedModel):
    """A frozen model that refuses unknown keys, infinite numbers and NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    key_hints: ClassVar[Mapping[str, str]] = {}
    """Hints about keys that do not exist, by the key's name or its whole dotted path. Only those of
    the outermost model are used."""

    def problems(self) -> Iterable[Problem]:
        """Yield conflicts between fields; called once each field alone is valid."""
        return ()

    @model_validator(mode="after")
    def _has_no_problems(self) -> Self:
        found = tuple(islice(self.problems(), MOST_PROBLEMS))
        if found:
            text = "; ".join(f"{'.'.join(problem.key)}: {problem.message}" for problem in found)
            raise PydanticCustomError("problems", "{text}", {"text": text, "problems": found})
        return self


class Role(enum.Enum):
    """The role of a key; `allowed_changes` says what may change with it."""

    GAME = "what is played"
    SEEN = "what the agent observes, and what its actions do, timestep by timestep"
    NETWORK = "the network"
    LEARNING = "how the agent learns, and which policy counts as its best"
    RANDOM = "which random numbers are drawn"
    BUDGET = "how much is played and learned"
    SPEED = "how fast the run is; it has no effect on results"
    OUTPUT = "what is written for people and other programs, and where"


class RunSection(StrictModel):
    """A section of a run's config. Each key says its role: `Annotated[..., Role.SEEN]`.

    The role of a key holds for all that is below it, unless a key there has one of its own. A key
    that is always a `RunSection` needs none.
    """

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:  # noqa: ANN401 - as in pydantic
        super().__pydantic_init_subclass__(**kwargs)
        for name, field in cls.model_fields.items():
            if len(_roles_at(field)) != 1 and not _is_section(field):
                raise TypeError(
                    f"{cls.__name__}.{name} has {len(_roles_at(field))} roles; write one, such as "
                    f"Annotated[..., Role.LEARNING], from {', '.join(role.name for role in Role)}"
                )


def roles_of(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, Role]]:
    """Yield the dotted name and the role of each key that has one, sections before their keys."""
    for name, field in model.model_fields.items():
        for role in _roles_at(field):
            yield f"{above}{name}", role
        for section in _sections(field.annotation):
            yield from roles_of(section, f"{above}{name}.")


def _roles_at(field: FieldInfo) -> list[Role]:
    return [each for each in field.metadata if isinstance(each, Role)]


def _is_section(field: FieldInfo) -> bool:
    """Whether the value is a `RunSection` in any case."""
    options = _options(field.annotation)
    return all(isinstance(one, type) and issubclass(one, RunSection) for one in options)


def _sections(annotation: Any) -> list[type[RunSection]]:  # noqa: ANN401 - any type
    found = _options(annotation)
    return [one for one in found if isinstance(one, type) and issubclass(one, RunSection)]


def _options(annotation: Any) -> list[Any]:  # noqa: ANN401 - any type
    """Return the types of a union, or the one type that it is."""
    if get_origin(annotation) is Annotated:
        return _options(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [option for one in get_args(annotation) for option in _options(one)]
    return [annotation]


M = TypeVar("M", bound=BaseModel)


def with_changed(config: M, values: Mapping[Key, object]) -> M:
    """Return a copy with these values at their keys, validated as a file would be.

    A section that is null becomes a section with defaults and the value.

    Raises:
        ValidationError: the copy is not a valid config, or a key does not exist.
    """
    tree: dict[str, Any] = config.model_dump()
    for key, value in values.items():
        section = tree
        for name in key[:-1]:
            if section.get(name) is None:
                section[name] = {}
            section = section[name]
        section[key[-1]] = value
    return type(config).model_validate(tree)


def flat(section: object, key: str = "") -> dict[str, object]:
    """Return a nested config as `{"env.n_envs": 8, ...}`."""
    if not isinstance(section, dict):
        return {key: section}
    items: dict[str, object] = {}
    for name, value in section.items():
        items |= flat(value, f"{key}.{name}" if key else name)
    return items


def differences(
    before: Mapping[str, Any], now: Mapping[str, Any], *but: str
) -> dict[str, tuple[object, object]]:
    """Return the dotted keys whose values differ, with both; those below `but` are left out."""
    old = flat(before)
    new = flat(now)
    return {
        key: (old.get(key), new.get(key))
        for key in {**old, **new}
        if old.get(key) != new.get(key) and not is_below(key, but)
    }


def is_below(key: str, sections: Iterable[str]) -> bool:
    """Whether a dotted key is one of the sections or in one of them."""
    return any(f"{key}.".startswith(f"{section}.") for section in sections)


def value_at(tree: Mapping[str, Any], key: str) -> Any:  # noqa: ANN401 - whatever is there
    """Return the value of a nested mapping at a dotted key; None if there is none."""
    found: Any = tree
    for name in key.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def changed_keys(config: BaseModel) -> dict[str, tuple[object, object]]:
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
