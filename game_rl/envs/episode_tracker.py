"""What follows the episodes of an env: the protocol of a tracker, and what trackers share."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from pydantic import JsonValue, ValidationError

from game_rl.config.schema import EnvConfig
from game_rl.emulator.emulator import Emulator
from game_rl.envs.episode_starts import PoolBeginning
from game_rl.envs.observation import Observation
from game_rl.errors import CheckpointError
from game_rl.files.saved import Saved, first_problem
from game_rl.games.definition import Game
from game_rl.games.variables import Values, VariableReader

_State = TypeVar("_State", bound=Saved)

VARIABLES = "variables"
"""Key of every `info` of an env with a `VariableTeller`: the value of each variable, by name."""


POOL = "(pool)"
"""In the place of the start state's name if an episode began in a state of a pool."""


@dataclass(slots=True)
class RunningEpisode:
    """What is known of an episode after its last timestep.

    The env fills in what was played, then each tracker in turn what it finds.

    Attributes:
        start_state, idle_frames, game_seed: where it began.
        pool_state: number of the state of a pool in which it began, to which a way from the start
            state had led; None: it began in the start state.
        beginning: that state of the pool; known at `reset` only.
        running: whether it goes on.
        timesteps: number of its timesteps.
        chosen: index of the action that the agent chose.
        played: index of the action that the game played.
        values: the variables that trackers need; all variables at the beginning and in `summary`.
        reward: what the timestep has earned.
        gained: the reward terms that have earned more than 0 in it.
        reward_terms: what each term has earned in the episode.
        terminated, truncated: whether the timestep ends the episode.
        observation: what the agent sees; None until the first reset.
        info: what is returned with the observation.
    """

    start_state: str = ""
    idle_frames: int = 0
    game_seed: int = 0
    pool_state: int | None = None
    beginning: PoolBeginning | None = None
    running: bool = False
    timesteps: int = 0
    chosen: int = 0
    played: int = 0
    values: Values = field(default_factory=dict)
    reward: float = 0.0
    gained: list[str] = field(default_factory=list)
    reward_terms: dict[str, float] = field(default_factory=dict)
    terminated: bool = False
    truncated: bool = False
    observation: Observation | None = None
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def began_in(self) -> str:
        """Name of the start state in which it began, or `POOL`."""
        return self.start_state if self.pool_state is None else POOL


class EpisodeTracker:
    """Follows the episodes of an env. What a tracker does not override does nothing.

    The env calls its trackers in order, so a tracker finds in the `RunningEpisode` what those
    before it have filled in.
    """

    variables: Collection[str] = frozenset()
    """Names of the variables that `step` reads."""

    def reset(self, episode: RunningEpisode) -> None:
        """Begin an episode."""

    def step(self, episode: RunningEpisode) -> None:
        """Follow a timestep."""

    def cut_short(self, episode: RunningEpisode) -> Mapping[str, Any]:  # noqa: ARG002
        """Follow a timestep in which the game locked up, instead of `step` and `summary`.

        Returns:
            What the last `info` of the episode has.
        """
        return {}

    def summary(self, episode: RunningEpisode) -> Mapping[str, Any]:  # noqa: ARG002
        """Return what the last `info` has of an episode that ends now."""
        return {}

    def save_state(self) -> Mapping[str, JsonValue]:
        """Return what the rest of the episode depends on, under keys that no other tracker uses.

        Raises:
            GameFileError: the game's own reward class cannot be saved.
        """
        return {}

    def load_state(self, saved: Mapping[str, JsonValue], episode: RunningEpisode) -> None:
        """Continue from a saved state.

        Args:
            saved: what all trackers saved; an earlier version may have had no such tracker.
            episode: the episode; `values` is empty if none is running.

        Raises:
            CheckpointError: what this tracker saved is damaged or missing.
        """


def tracker_state(saved: Mapping[str, JsonValue], key: str, kind: type[_State]) -> _State:
    """Return what a tracker saved under this key, or the state in which it begins.

    Raises:
        CheckpointError: it is damaged, or it is missing and has no state in which it begins.
    """
    try:
        return kind.model_validate(saved.get(key, {}))
    except ValidationError as error:
        raise damaged_state(key, first_problem(error)) from None


def damaged_state(key: str, problem: str) -> CheckpointError:
    return CheckpointError(
        f"the saved state of an env lacks `{key}`, or has a wrong one ({problem}); restore it from "
        "a copy, or use another checkpoint"
    )


@dataclass(frozen=True)
class EnvParts:
    """What an env is made of, for those who make a tracker."""

    config: EnvConfig
    game: Game
    emulator: Emulator


TrackerMaker = Callable[[EnvParts], EpisodeTracker | None]
"""Makes a tracker in the process where the env runs; None if the game has nothing to follow."""


class VariableTeller(EpisodeTracker):
    """Puts the value of each variable into every `info`."""

    def __init__(self, game: Game, emulator: Emulator) -> None:
        self._reader = VariableReader(game.variables, game.definition.variables)
        self._emulator = emulator

    @classmethod
    def of(cls, parts: EnvParts) -> Self:
        return cls(parts.game, parts.emulator)

    def reset(self, episode: RunningEpisode) -> None:
        episode.info[VARIABLES] = self._reader.read(self._emulator)

    def step(self, episode: RunningEpisode) -> None:
        episode.info[VARIABLES] = self._reader.read(self._emulator)

    def cut_short(self, episode: RunningEpisode) -> Mapping[str, Any]:  # noqa: ARG002
        return {VARIABLES: self._reader.read(self._emulator)}
