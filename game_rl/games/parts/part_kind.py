"""What a kind of part is: the class that each kind in this folder derives, and what it is drawn by.

A new kind is a file here, and its rows in `part_spec`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from numpy.typing import NDArray

from game_rl.config.strict_model import Key, Problem
from game_rl.emulator.emulator import Emulator
from game_rl.games.parts.part_format import PartFormat
from game_rl.games.variable_spec import Specs
from game_rl.games.variables import Values

PartValues = dict[str, NDArray[Any]]

CustomParts = Callable[[Values], Mapping[str, Any]]
"""Returns what the reward class makes of the values of the variables, by the parts' names."""


def no_custom_parts(_: Values) -> Mapping[str, Any]:
    return {}


class GameKeys(Protocol):
    """The keys of game.yaml on which parts depend."""

    @property
    def variables(self) -> Specs: ...
    @property
    def actions(self) -> Mapping[str, object]: ...
    @property
    def place(self) -> tuple[str, ...] | None: ...
    @property
    def hardware(self) -> str: ...
    @property
    def reward(self) -> str | None: ...


class PartSources(NamedTuple):
    """What parts of a running episode are made of, apart from variables and the emulator."""

    folder: Path
    """Folder of game.yaml; paths in the file are relative to it."""
    custom: CustomParts


@dataclass(frozen=True, eq=False)
class DrawnBits:
    """A square for each number, filled unless it is 0."""

    values: NDArray[Any]
    label: str = ""


@dataclass(frozen=True, eq=False)
class DrawnNumbers:
    """A bar with its number for one number, columns for several."""

    values: NDArray[Any]
    label: str = ""


@dataclass(frozen=True, eq=False)
class DrawnWords:
    """Some words, each in a box."""

    words: Sequence[str]
    label: str = ""


@dataclass(frozen=True, eq=False)
class DrawnGrid:
    """A picture with a colour for each class.

    Attributes:
        classes: [height, width].
        names: of the classes from 1 on, for the legend.
        cell: pixels of a cell's side; None for what fits.
        marks_middle: whether there are marks at the middle, where the player is.
    """

    classes: NDArray[Any]
    names: Sequence[str] = ()
    cell: int | None = None
    marks_middle: bool = False


Drawing = DrawnBits | DrawnNumbers | DrawnWords | DrawnGrid
"""A piece of a part's picture; see `sheets`."""

P = TypeVar("P", bound="GamePart")


class PartsReader(Generic[P]):
    """The parts of one kind in a running episode.

    A kind whose parts show more than the present moment derives a reader that remembers the rest.

    Raises:
        GameFileError: a file that a part names is missing or wrong.
    """

    state_key: ClassVar[str] = ""
    """Key of `PartsState` with what it remembers; "" if it remembers nothing."""

    def __init__(self, parts: Sequence[P], sources: PartSources) -> None:
        self._parts = parts
        self._sources = sources

    def reset(self, values: Values) -> None:
        """Begin an episode with these values of the variables."""

    def step(self, values: Values, action: int) -> None:
        """Remember a timestep that played this action, and the variables after it."""

    def read(self, values: Values, emulator: Emulator) -> PartValues:
        """Return the parts as they are now, in new arrays.

        Raises:
            GameFileError: a value is not one of those that game.yaml allows.
        """
        return {part.name: part.read(values, emulator) for part in self._parts}

    def save_state(self) -> Any:  # noqa: ANN401 - what `PartsState` has at `state_key`
        return None

    def load_state(self, state: Any) -> None:  # noqa: ANN401 - what `PartsState` has there
        """Go on from what `save_state` has returned, or from the default of `PartsState`."""


@dataclass(frozen=True, eq=False)
class GamePart(ABC):
    """A part of a game's observations: an entry of `parts` in game.yaml, read with the whole file.

    A kind adds a field for each of its keys, named as in game.yaml.

    Attributes:
        game: the game file; while it is checked, variables that the part names may be missing.
        stack: whether the agent sees it of the latest `env.frame_stack` timesteps together.
    """

    shows_place: ClassVar[bool] = False
    """Whether it depends on the place where the player is."""
    is_custom: ClassVar[bool] = False
    """Whether the game's own reward class makes it."""
    reader: ClassVar[type[PartsReader[Any]]] = PartsReader

    name: str
    game: GameKeys
    stack: bool

    @property
    @abstractmethod
    def form(self) -> PartFormat:
        """Its form, known without an emulator."""

    @abstractmethod
    def drawings(self, values: NDArray[Any]) -> Sequence[Drawing]:
        """Return the pieces of its picture, one below the other."""

    def read(self, values: Values, emulator: Emulator) -> NDArray[Any]:
        """Return it as it is now, in a new array; see `PartsReader.read`, which calls this."""
        raise NotImplementedError

    @property
    def labels(self) -> tuple[str, ...]:
        """What the numbers of a vector, or the values of categories and grids, are called."""
        return ()

    def references(self) -> Iterator[tuple[Key, str]]:
        """Yield each variable that the entry names, with its key."""
        yield from ()

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that a timestep needs for it."""
        return tuple(name for _, name in self.references())

    def offset_files(self) -> Iterator[tuple[Key, Path]]:
        """Yield each file that it names to place maps side by side, with its key."""
        yield from ()

    def problems(self) -> Iterator[Problem]:
        """Yield what does not go with the rest of the game file, apart from unknown variables."""
        yield from ()


def unfit(key: Key, variable: str, what: str) -> Problem:
    """Return the problem of a variable that cannot be what an entry takes it for."""
    return Problem(key, f"{variable} {what}", reads=(("variables", variable),))
