"""The table of the kinds of parts: their keys in game.yaml, their classes, and what they remember.

A new kind has a row in `PartSpec` and one in `KINDS`, and one in `PartsState` if it remembers
something of an episode. What it does not use is left out of a dump (`exclude_if`), so that saved
game files and checkpoints stay as they are.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from game_rl.config.strict_model import Problem, StrictModel
from game_rl.files.saved import Blob, Saved
from game_rl.games.parts.categories_part import ActionsPart, CategoriesPart
from game_rl.games.parts.part_kind import GamePart
from game_rl.games.parts.recent_part import Numbers, RecentPart, RecentSpec
from game_rl.games.parts.reward_class_part import RewardClassPart, RewardClassSpec
from game_rl.games.parts.tiles_part import TilesPart, TilesSpec
from game_rl.games.parts.vector_part import NumberSpec, VectorPart
from game_rl.games.parts.visited_part import VisitedPart, VisitedSpec

if TYPE_CHECKING:
    from game_rl.games.definition import GameDefinition

_SCREEN = "screen"

KINDS: Mapping[str, type[GamePart]] = {
    "vector": VectorPart,
    "categories": CategoriesPart,
    "tiles": TilesPart,
    "visited": VisitedPart,
    "actions": ActionsPart,
    "recent": RecentPart,
    "own": RewardClassPart,
}
"""The kinds of parts, by the key that says what a part is made of."""


class PartSpec(StrictModel):
    """One entry of `parts` in game.yaml, of one kind."""

    vector: tuple[str | NumberSpec, ...] | None = None
    """Variables as numbers, one after the other; an array adds all its numbers, and bits stay
    bits."""
    categories: str | None = None
    """Variable whose numbers stand for kinds of things, such as species; an array has several."""
    of: Annotated[int, Field(ge=2, le=65_536)] | None = None
    """How many categories there are; each number is below it."""
    tiles: TilesSpec | None = None
    visited: VisitedSpec | None = None
    actions: Annotated[int, Field(ge=1, le=64)] | None = None
    """How many of the agent's latest actions, the newest last, as categories: 0 for none yet, and
    1 + the index of the action."""
    recent: RecentSpec | None = Field(default=None, exclude_if=lambda recent: recent is None)
    own: RewardClassSpec | None = Field(default=None, exclude_if=lambda own: own is None)
    """What the method `parts` of the game's own reward class returns under the part's name."""
    stack: bool = False
    """Whether the agent sees the part of the latest env.frame_stack timesteps together."""

    def problems(self) -> Iterable[Problem]:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            found = f"has {' and '.join(given)}" if given else "has no kind"
            yield Problem((), f"{found}; write exactly one of {', '.join(KINDS)}")
        if (self.of is None) != (self.categories is None):
            yield Problem(
                ("of",),
                "`of` (how many categories there are) goes with `categories`, and only with it",
                reads=(("categories",),),
            )
        if self.vector == ():
            yield Problem(("vector",), "names no variable; list some")

    @property
    def kind(self) -> str:
        """Its kind, which is the key that says what it is made of."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    def part(self, name: str, game: "GameDefinition") -> GamePart:
        """Return the part of this name in a game."""
        kind = KINDS[self.kind]
        keys = [field.name for field in fields(kind) if field.name in PartSpec.model_fields]
        return kind(name=name, game=game, **{key: getattr(self, key) for key in keys})


class PartsState(Saved):
    """What the parts of an observation remember of the episode so far."""

    places: Blob | None = None
    """The visited places, as `VisitedPlaces` writes them; None if no part shows any."""
    actions: tuple[int, ...] = ()
    """The latest actions, as they are in the part that shows the most of them."""
    recent: Mapping[str, tuple[Numbers, ...]] = Field(
        default_factory=dict, exclude_if=lambda recent: not recent
    )
    """The latest values of each variable of which a part shows more than the present one."""


def part_problems(parts: Iterable[GamePart]) -> Iterator[Problem]:
    """Yield what is wrong with the section `parts`, apart from unknown variables."""
    for part in parts:
        if part.name == _SCREEN:
            yield Problem(
                ("parts", part.name),
                "is the name of the part that has the pictures of the screen; rename this one",
            )
        for found in part.problems():
            yield Problem(("parts", part.name, *found.key), found.message, found.reads)


def unused_parts(chosen: Collection[str], *games: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of saved game files that have no effect on how a run plays and learns.

    A run is not another one because its game file has got a part that it does not use, or because
    people read other names. The place is unused as well if only the map of visited places needs it.

    Args:
        chosen: names of the parts that observations have.
        games: the game files, as they are saved.
    """
    names = {name for game in games for name in game.get("parts", ())}
    unused = tuple(f"parts.{name}" for name in sorted(names.difference(chosen)))
    is_used = any(shows_place(chosen, game.get("parts", {})) for game in games)
    is_used |= any(_has_key("same_place_for", game.get("endings")) for game in games)
    shown = ("title", "milestones", "place_offsets", "place_names", "place_screen")
    return (*unused, *shown, "cell", "prefer", *(() if is_used else ("place",)))


def shows_place(chosen: Collection[str], parts: Mapping[str, Any]) -> bool:
    """Whether one of the chosen parts depends on the place; `parts` are as they are saved."""
    keys = [key for key, kind in KINDS.items() if kind.shows_place]
    return any((parts.get(name) or {}).get(key) is not None for name in chosen for key in keys)


def _has_key(key: str, saved: object) -> bool:
    """Whether a key is somewhere in saved values and is not null."""
    if isinstance(saved, Mapping):
        return saved.get(key) is not None or any(_has_key(key, each) for each in saved.values())
    return isinstance(saved, list | tuple) and any(_has_key(key, each) for each in saved)
