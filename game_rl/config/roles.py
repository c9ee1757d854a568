"""What each key of a run's config is for: its role, written at the key."""

import enum
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from game_rl.config.strict_model import StrictModel


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
