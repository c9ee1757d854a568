"""The number of timesteps after which an episode is cut off; it may grow with a variable."""

from game_rl.config.schema import GrowingLimit
from game_rl.emulator.emulator import Emulator
from game_rl.errors import UsageError
from game_rl.games.definition import Game, unknown_name
from game_rl.games.derived_variables import VariableReader


class EpisodeLimit:
    """The limit of an episode's timesteps.

    Args:
        limit: the limit, or how it grows; None for no limit.

    Raises:
        UsageError: the game has no such variable, or its episodes would never end.

    Attributes:
        first: value of the variable when the episode began; None if the limit does not grow.
    """

    def __init__(self, limit: int | GrowingLimit | None, game: Game) -> None:
        check_episode_limit(limit, game)
        self._limit = limit
        names = {limit.per} if isinstance(limit, GrowingLimit) else set()
        self._reader = VariableReader(game.variables, game.definition.variables, names)
        self.first: int | float | None = None

    def begin(self, emulator: Emulator, first: int | float | None = None) -> None:
        """Begin an episode, or go on with one.

        Args:
            first: value of the variable when the episode began; None if it begins now.
        """
        if isinstance(self._limit, GrowingLimit):
            self.first = self._value(self._limit, emulator) if first is None else first

    def is_reached(self, timesteps: int, emulator: Emulator) -> bool:
        """Whether an episode is cut off after so many timesteps."""
        limit = self._limit
        if not isinstance(limit, GrowingLimit):
            return limit is not None and timesteps >= limit
        if timesteps < limit.start:
            return False
        assert self.first is not None
        return timesteps >= limit.after(self._value(limit, emulator) - self.first)

    def _value(self, limit: GrowingLimit, emulator: Emulator) -> int | float:
        value = self._reader.read(emulator)[limit.per]
        assert not isinstance(value, tuple)
        return value


def check_episode_limit(limit: int | GrowingLimit | None, game: Game) -> None:
    """Check the limit against the game without an emulator.

    Raises:
        UsageError: the game has no such variable, or its episodes would never end.
    """
    if limit is None and not game.definition.endings:
        raise UsageError(
            f"an episode of {game.name} would never end: game.yaml has no `endings`; add some "
            "or set env.max_episode_timesteps"
        )
    if isinstance(limit, GrowingLimit) and limit.per not in game.number_names:
        spec = game.definition.variables.get(limit.per)
        fault = (
            unknown_name(limit.per, "variable", game.number_names, of=game.name)
            if spec is None
            else f"{limit.per} is an array, and a number is needed; count its bits, for instance"
        )
        raise UsageError(f"env.max_episode_timesteps.per: {fault}")
