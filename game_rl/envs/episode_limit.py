"""The number of timesteps after which an episode is cut off; it may grow with a variable."""

from game_rl.config.schema import GrowingLimit
from game_rl.emulator.emulator import Emulator
from game_rl.errors import UsageError
from game_rl.games.definition import Game, unknown_name
from game_rl.games.variables import Variable


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
        self._variable = _variable_of(limit, game)
        self.first: int | None = None

    def begin(self, emulator: Emulator, first: int | None = None) -> None:
        """Begin an episode, or go on with one.

        Args:
            first: value of the variable when the episode began; None if it begins now.
        """
        if self._variable is None:
            self.first = None
        else:
            self.first = self._variable.read(emulator) if first is None else first

    def is_reached(self, timesteps: int, emulator: Emulator) -> bool:
        """Whether an episode is cut off after so many timesteps."""
        limit = self._limit
        if not isinstance(limit, GrowingLimit):
            return limit is not None and timesteps >= limit
        if timesteps < limit.start:
            return False
        assert self._variable is not None
        assert self.first is not None
        return timesteps >= limit.after(self._variable.read(emulator) - self.first)


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
    if isinstance(limit, GrowingLimit) and _variable_of(limit, game) is None:
        names = [variable.name for variable in game.variables]
        raise UsageError(
            "env.max_episode_timesteps.per: "
            + unknown_name(limit.per, "variable", names, of=game.name)
        )


def _variable_of(limit: int | GrowingLimit | None, game: Game) -> Variable | None:
    if not isinstance(limit, GrowingLimit):
        return None
    return next((v for v in game.variables if v.name == limit.per), None)
