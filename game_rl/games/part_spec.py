"""An entry of `parts` in game.yaml: what one named part of an observation is made of."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from game_rl.config.strict_model import Key, Problem, StrictModel
from game_rl.emulator.emulator import MAP_SIDE, N_TILES, SCREEN_HEIGHT, SCREEN_WIDTH, TileArea
from game_rl.games.variable_spec import VariableSpec

Specs = Mapping[str, VariableSpec]

_SCREEN = "screen"
_SCREEN_COLUMNS = SCREEN_WIDTH // 8
_SCREEN_ROWS = SCREEN_HEIGHT // 8
_LARGEST_SCALE = 1e6
_MOST_CLASSES = 255
_KINDS = ("vector", "categories", "tiles", "visited", "actions", "own")
_MOST_NUMBERS = 65_536
_MOST_SIDE = 512


class NumberSpec(StrictModel):
    """`{variable: level, scale: 0.02, fourier: 8}`: a variable in a vector."""

    variable: str
    scale: Annotated[float, Field(ge=-_LARGEST_SCALE, le=_LARGEST_SCALE)] | None = None
    """Factor that brings the value to the order of 1."""
    fourier: Annotated[int, Field(ge=1, le=16)] | None = None
    """How many numbers stand for the value: sin(scale x value x 2^k) for k = 0, 1, ...."""
    bits: Annotated[int, Field(ge=1, le=32)] | None = None
    """How many bits of a whole number are taken, the lowest first."""

    def problems(self) -> Iterable[Problem]:
        if self.scale == 0:
            yield Problem(("scale",), "0 would make every value 0; write another number")
        for key in ("scale", "fourier"):
            if self.bits is not None and getattr(self, key) is not None:
                yield Problem((key,), "does not go with `bits`, which are 0 or 1; remove it")


class AreaSpec(StrictModel):
    """A rectangle of tiles, each of 8 x 8 pixels."""

    x: Annotated[int, Field(ge=0, lt=MAP_SIDE)] = 0
    y: Annotated[int, Field(ge=0, lt=MAP_SIDE)] = 0
    width: Annotated[int, Field(ge=1, le=MAP_SIDE)]
    height: Annotated[int, Field(ge=1, le=MAP_SIDE)]


_Tile = Annotated[int, Field(ge=0, lt=2 * N_TILES)]


class TilesSpec(StrictModel):
    """A grid with the class of each tile of the background, or its id."""

    area: AreaSpec
    """The tiles that are seen: of the screen with `follow_scroll`, else of the 32 x 32 of the
    background's map."""
    follow_scroll: bool = False
    """Whether the area moves with the screen over the background's map."""
    sprites: bool = False
    """Whether sprites are drawn over the background: those whose tile has a class or, with `ids`,
    all."""
    classes: dict[str, tuple[_Tile, ...]] = Field(default={}, max_length=_MOST_CLASSES)
    """Tile ids of each class: 0 to 383, and 384 more for tiles of video RAM's bank 1. A cell is the
    number of its class, from 1 on in this order, and 0 if its tile has none."""
    ids: bool = Field(default=False, exclude_if=lambda ids: not ids)
    """Whether a cell is the id of its tile itself, in two bytes; in place of `classes`."""

    def problems(self) -> Iterable[Problem]:
        columns = MAP_SIDE
        rows = MAP_SIDE
        what = "the background's map"
        if self.follow_scroll:
            columns = _SCREEN_COLUMNS
            rows = _SCREEN_ROWS
            what = "the screen"
        for side, first, size, most in (
            ("width", self.area.x, self.area.width, columns),
            ("height", self.area.y, self.area.height, rows),
        ):
            if first + size > most:
                yield Problem(
                    ("area", side),
                    f"{first} + {size} tiles reach outside {what}, which has {columns} x {rows}; "
                    f"at most {max(0, most - first)} fit",
                    reads=(("follow_scroll",),),
                )
        if self.ids and self.classes:
            message = "does not go with `classes`, which stand for ids; remove one of the two"
            yield Problem(("ids",), message, reads=(("classes",),))
        elif not self.ids and not self.classes:
            message = "list the tiles of some classes, or write `ids: true` for the ids themselves"
            yield Problem(("classes",), message)
        yield from self._class_problems()

    def _class_problems(self) -> Iterator[Problem]:
        class_of: dict[int, str] = {}
        for name, tiles in self.classes.items():
            if not tiles:
                key = ("classes", name)
                yield Problem(key, "has no tiles; list their ids, or remove it")
            for tile in tiles:
                if tile in class_of:
                    where = "twice" if class_of[tile] == name else f"in {class_of[tile]} as well"
                    yield Problem(("classes", name), f"tile {tile} is {where}; remove one")
                class_of.setdefault(tile, name)

    @property
    def tile_area(self) -> TileArea:
        return TileArea(self.area.x, self.area.y, self.area.width, self.area.height)


class VisitedSpec(StrictModel):
    """A grid with the places around the player that were visited in this episode."""

    radius: Annotated[int, Field(ge=1, le=128)]
    """The grid starts this many places to the left of the player and above, and has twice as many
    in a row."""
    size: Annotated[int, Field(ge=2, le=512)] | None = None
    """Side of the grid, a multiple of twice the radius: 48 with a radius of 12 makes each place 2 x
    2 cells. null: a cell for each place."""
    offsets: Path | None = None
    """Path of a YAML file, relative to game.yaml, that places maps side by side."""

    def problems(self) -> Iterable[Problem]:
        side = 2 * self.radius
        if self.size is not None and self.size % side:
            yield Problem(
                ("size",),
                f"{self.size} is no multiple of 2 x radius = {side}; write "
                f"{max(1, round(self.size / side)) * side}, or remove the line for {side}",
                reads=(("radius",),),
            )

    @property
    def scale(self) -> int:
        """Cells on each side of a place."""
        return 1 if self.size is None else self.size // (2 * self.radius)


class OwnPartSpec(StrictModel):
    """The form of a part that the method `parts` of the game's own reward class returns."""

    kind: Literal["vector", "categories", "grid"]
    """Numbers, kinds of things, or a small picture of kinds of things."""
    shape: tuple[Annotated[int, Field(ge=1)], ...]
    """[n], or [height, width] of a grid."""
    of: Annotated[int, Field(ge=2, le=65_536)] | None = None
    """How many values a number can have, which is whole and below it. null: float32, for vectors
    only."""

    def problems(self) -> Iterable[Problem]:
        wanted, example = (2, "[height, width]") if self.kind == "grid" else (1, "[n]")
        most = _MOST_SIDE if self.kind == "grid" else _MOST_NUMBERS
        if len(self.shape) != wanted:
            yield Problem(("shape",), f"the shape of {self._named} is {example}")
        elif max(self.shape) > most:
            yield Problem(("shape",), f"{max(self.shape):,} is too large; at most {most:,} fit")
        if self.of is None and self.kind != "vector":
            message = f"{self._named} needs the number of values, as in `of: 8`"
            yield Problem(("of",), message, reads=(("kind",),))

    @property
    def _named(self) -> str:
        return "categories" if self.kind == "categories" else f"a {self.kind}"


class PartSpec(StrictModel):
    """One entry of `parts` in game.yaml, of one kind."""

    vector: tuple[str | NumberSpec, ...] | None = None
    """Variables in a row, as numbers; arrays with all of theirs, and bits as bits."""
    categories: str | None = None
    """Variable whose numbers stand for kinds of things, such as species; an array has several."""
    of: Annotated[int, Field(ge=2, le=65_536)] | None = None
    """How many categories there are; each number is below it."""
    tiles: TilesSpec | None = None
    visited: VisitedSpec | None = None
    actions: Annotated[int, Field(ge=1, le=64)] | None = None
    """How many of the agent's latest actions, the newest last, as categories: 0 for none yet, and
    1 + the index of the action."""
    own: OwnPartSpec | None = Field(default=None, exclude_if=lambda own: own is None)
    """What the method `parts` of the game's own reward class returns under the part's name."""
    stack: bool = False
    """Whether the agent sees the part of the latest env.frame_stack timesteps together."""

    def problems(self) -> Iterable[Problem]:
        given = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            found = f"has {' and '.join(given)}" if given else "has no kind"
            yield Problem((), f"{found}; write exactly one of {', '.join(_KINDS)}")
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
        return next(kind for kind in _KINDS if getattr(self, kind) is not None)

    @property
    def numbers(self) -> tuple[NumberSpec, ...]:
        """The entries of `vector`."""
        found = self.vector or ()
        return tuple(NumberSpec(variable=one) if isinstance(one, str) else one for one in found)

    def references(self) -> Iterator[tuple[Key, str]]:
        """Yield each variable that the entry names, with its key."""
        for index, one in enumerate(self.vector or ()):
            key = ("vector", str(index))
            yield (key, one) if isinstance(one, str) else ((*key, "variable"), one.variable)
        if self.categories is not None:
            yield ("categories",), self.categories


def part_problems(
    parts: Mapping[str, PartSpec],
    variables: Specs,
    place: tuple[str, ...] | None,
    *,
    is_colour: bool,
    has_class: bool,
) -> Iterator[Problem]:
    """Yield what is wrong with the section `parts`, apart from unknown variables.

    Args:
        has_class: whether the game has a reward class of its own.
    """
    for name, part in parts.items():
        if name == _SCREEN:
            yield Problem(
                ("parts", name),
                "is the name of the part that has the pictures of the screen; rename this one",
            )
        found = chain(
            _number_problems(part, variables),
            _category_problems(part, variables),
            _visited_problems(part, variables, place),
            () if is_colour else _bank_problems(part),
            () if has_class else _class_problems(part),
        )
        for problem in found:
            yield Problem(("parts", name, *problem.key), problem.message, problem.reads)


def _number_problems(part: PartSpec, variables: Specs) -> Iterator[Problem]:
    for index, one in enumerate(part.numbers):
        spec = variables.get(one.variable)
        if spec is None:
            continue
        for key in ("scale", "fourier", "bits"):
            if getattr(one, key) is not None and spec.type == "bits" and spec.operation is None:
                yield _unfit(
                    ("vector", str(index), key),
                    one.variable,
                    "is an array of bits, and a number is needed; name the variable alone, or "
                    f"{{count: {one.variable}}}",
                )
        if one.bits is not None and not is_always_whole(one.variable, variables):
            yield _unfit(
                ("vector", str(index), "bits"),
                one.variable,
                "is not always a whole number, so it has no bits; remove `bits`",
            )


def _category_problems(part: PartSpec, variables: Specs) -> Iterator[Problem]:
    name = part.categories
    if name is not None and not is_always_whole(name, variables):
        what = "is not always a whole number, and categories are; take a `vector` for it"
        yield _unfit(("categories",), name, what)


def _bank_problems(part: PartSpec) -> Iterator[Problem]:
    for name, tiles in (part.tiles.classes if part.tiles is not None else {}).items():
        for tile in tiles:
            if tile >= N_TILES:
                yield Problem(
                    ("tiles", "classes", name),
                    f"tile {tile} is in bank 1 of video RAM, which only `hardware: cgb` has; "
                    f"remove it, or write {tile - N_TILES}",
                    reads=(("hardware",),),
                )


def _class_problems(part: PartSpec) -> Iterator[Problem]:
    if part.own is not None:
        yield Problem(
            ("own",),
            "is made by the game's own reward class, and there is none; name it, as in "
            "`reward: my_rewards:MyReward`, or remove the part",
            reads=(("reward",),),
        )


def _visited_problems(
    part: PartSpec, variables: Specs, place: tuple[str, ...] | None
) -> Iterator[Problem]:
    if part.visited is None:
        return
    reads = (("place",),)
    if place is None or len(place) < 2:
        yield Problem(
            ("visited",),
            "needs to know where the player is; name the variables that say so, the last two of "
            "them x and y, as in `place: [map, x, y]`, next to `parts`",
            reads,
        )
        return
    if part.visited.offsets is not None and len(place) != 3:
        yield Problem(
            ("visited", "offsets"),
            f"places maps, but `place` has {len(place)} variables, not [map, x, y]; remove "
            "`offsets`, or name one variable for the map",
            reads,
        )
    for name in place:
        if name in variables and not is_always_whole(name, variables):
            what = "in `place` is not always a whole number; name variables that are"
            yield _unfit(("visited",), name, what)


def _unfit(key: Key, variable: str, what: str) -> Problem:
    return Problem(key, f"{variable} {what}", reads=(("variables", variable),))


def is_always_whole(name: str, variables: Specs) -> bool:
    """Whether a variable, or what it is computed from, is always whole numbers."""
    seen = set[str]()
    left = [name]
    while left:
        name = left.pop()
        if name in seen or name not in variables:
            continue
        seen.add(name)
        spec = variables[name]
        if spec.operation == "ratio":
            return False
        if spec.operation not in ("count", "bit_of"):
            left += spec.sources
    return True
