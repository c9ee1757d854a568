"""The parts of the observations of a running episode."""

from collections.abc import Collection, Sequence

from game_rl.emulator.emulator import Emulator
from game_rl.games.definition import Game, GameDefinition
from game_rl.games.parts.part_format import PartFormat
from game_rl.games.parts.part_kind import CustomParts, PartValues, no_custom_parts
from game_rl.games.parts.part_spec import KINDS, PartsState
from game_rl.games.variables import Values


def part_formats(definition: GameDefinition) -> dict[str, PartFormat]:
    """Return the forms of all parts that a game defines, by name."""
    return {name: part.form for name, part in definition.game_parts().items()}


def custom_part_names(definition: GameDefinition, names: Collection[str]) -> tuple[str, ...]:
    """Return those of the parts that the game's own reward class makes."""
    parts = definition.game_parts()
    return tuple(name for name in names if parts[name].is_custom)


class EpisodeParts:
    """The parts of the observations of one running episode.

    Args:
        names: the parts that observations have.
        custom: returns what the game's own reward class makes of the variables, by name.

    Attributes:
        variables: names of the variables that a timestep needs.

    Raises:
        GameFileError: a file that a part names is missing or wrong.
    """

    def __init__(
        self, game: Game, names: Sequence[str], custom: CustomParts = no_custom_parts
    ) -> None:
        known = game.definition.game_parts()
        parts = [known[name] for name in names]
        self._names = names
        self._readers = tuple(
            kind.reader(of_kind, game.folder, custom)
            for kind in KINDS.values()
            if (of_kind := [part for part in parts if isinstance(part, kind)])
        )
        self._remembering = tuple(reader for reader in self._readers if reader.state_key)
        self.variables = frozenset(name for part in parts for name in part.variables)

    def reset(self, values: Values) -> None:
        for reader in self._remembering:
            reader.reset(values)

    def step(self, values: Values, action: int) -> None:
        """Remember a timestep.

        Args:
            values: the variables after it.
            action: the action that the agent chose.
        """
        for reader in self._remembering:
            reader.step(values, action)

    def read(self, values: Values, emulator: Emulator) -> PartValues:
        """Return the parts as they are now, in new arrays.

        Raises:
            GameFileError: a value is not one of those that game.yaml allows.
        """
        found: PartValues = {}
        for reader in self._readers:
            found |= reader.read(values, emulator)
        return {name: found[name] for name in self._names}

    def save_state(self) -> PartsState:
        return PartsState(**{each.state_key: each.save_state() for each in self._remembering})

    def load_state(self, state: PartsState) -> None:
        for reader in self._remembering:
            reader.load_state(getattr(state, reader.state_key))
