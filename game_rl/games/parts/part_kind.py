"""What a kind of part is: the class that each kind in this folder derives.

A new kind is a file here, and its rows in `part_spec`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from numpy.typing import NDArray

from game_rl.config.strict_model import Key, Problem
from game_rl.emulator.emulator import Emulator
from game_rl.games.parts.part_format import Bits, PartFormat
from game_rl.games.variables import Values

if TYPE_CHECKING:
    from game_rl.games.definition import GameDefinition

PartValues = dict[str, NDArray[Any]]

CustomParts = Callable[[Values], Mapping[str, Any]]
"""Returns what the reward class makes of the values of the variables, by the parts' names."""


def no_custom_parts(_: Values) -> Mapping[str, Any]:
    return {}


P = TypeVar("P", bound="GamePart")


class PartsReader(Generic[P]):
    """The parts of one kind in a running episode.

    A kind whose parts show more than the present moment derives a reader that remembers the rest.

    Args:
        folder: folder of game.yaml; paths in the file are relative to it.

    Raises:
        GameFileError: a file that a part names is missing or wrong.
    """

    state_key: ClassVar[str] = ""
    """Key of `PartsState` with what it remembers; "" if it remembers nothing."""

    def __init__(self, parts: Sequence[P], folder: Path, custom: CustomParts) -> None:
        self._parts = parts
        self._folder = folder
        self._custom = custom

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
        stack: whether it is stacked, as screens are.
    """

    shows_place: ClassVar[bool] = False
    """Whether it depends on the place where the player is."""
    is_custom: ClassVar[bool] = False
    """Whether the game's own reward class makes it."""
    reader: ClassVar[type[PartsReader[Any]]] = PartsReader
    cell_pixels: ClassVar[int] = 0
    """Side of a cell of a grid that is drawn; 0 for what fits."""
    marks_middle: ClassVar[bool] = False
    """Whether a grid is drawn with marks at its middle, where the player is."""

    name: str
    game: "GameDefinition"
    stack: bool

    @property
    @abstractmethod
    def form(self) -> PartFormat:
        """Its form, known without an emulator."""

    def read(self, values: Values, emulator: Emulator) -> NDArray[Any]:
        """Return it as it is now, in a new array; see `PartsReader.read`, which calls this."""
        raise NotImplementedError

    @property
    def labels(self) -> tuple[str, ...]:
        """What the numbers of a vector, or the values of categories and grids, are called."""
        return ()

    @property
    def caption(self) -> str:
        """What is drawn beside categories."""
        return ""

    def rows(self) -> Sequence[tuple[str, int, Bits]]:
        """Return the rows in which a vector is drawn: a label, how many numbers, bits of each."""
        return [("", stretch.size, stretch.bits) for stretch in self.form.stretches]

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
