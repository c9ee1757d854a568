"""A recorded episode: a file with the actions of a person, a script or an exploration."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from game_rl.config.loader import load_yaml_model
from game_rl.config.schema import MOST_FRAME_SKIP, EnvConfig
from game_rl.config.strict_model import Problem, StrictModel
from game_rl.envs.episode_starts import MOST_IDLE_FRAMES
from game_rl.errors import GameFileError
from game_rl.games.actions import least_frame_skip
from game_rl.games.definition import Game, unknown_name


class RecordedEpisode(StrictModel):
    """A JSON file `{"start_state": "level_1", "seed": 0, "actions": ["right", "punch", …]}`."""

    start_state: str
    seed: Annotated[int, Field(ge=0)] = 0
    frame_skip: Annotated[int, Field(ge=1, le=MOST_FRAME_SKIP)] | None = None
    """Frames of a timestep; null: those of check-game."""
    idle_frames: Annotated[int, Field(ge=0, le=MOST_IDLE_FRAMES)] = 0
    """Frames without a button before the first timestep."""
    game_seed: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    """Value that `random_seed` of game.yaml gets; null: one that `seed` draws."""
    actions: Annotated[tuple[str, ...], Field(min_length=1)]
    """Name of the action at each timestep."""

    @property
    def options(self) -> dict[str, str | int]:
        """Options of the reset with which it begins."""
        found: dict[str, str | int] = {
            "start_state": self.start_state,
            "idle_frames": self.idle_frames,
        }
        if self.game_seed is not None:
            found["game_seed"] = self.game_seed
        return found


def read_recorded_episode(path: Path, game: Game) -> RecordedEpisode:
    """Read the episode in the JSON (or YAML) file at `path`.

    Raises:
        GameFileError: the file is not a recorded episode, or it names a start state or action that
            the game does not have.
    """

    def unknown_names(episode: RecordedEpisode) -> Iterable[Problem]:
        known_states = game.definition.start_states
        if episode.start_state not in known_states:
            message = unknown_name(episode.start_state, "start state", known_states)
            yield Problem(("start_state",), message)
        for index, name in enumerate(episode.actions):
            if name not in game.definition.actions:
                message = unknown_name(name, "action", game.action_names)
                yield Problem(("actions", str(index)), message)

    return load_yaml_model(path, RecordedEpisode, error=GameFileError, more_checks=unknown_names)


LONGEST_EPISODE_TIMESTEPS = 1_000_000
"""So many that only the endings end an episode that is recorded or checked."""


def episode_config(game: Game, episode: RecordedEpisode) -> EnvConfig:
    """Return the env in which a recorded episode is played."""
    return EnvConfig(
        max_episode_timesteps=LONGEST_EPISODE_TIMESTEPS,
        frame_skip=episode.frame_skip or usual_frame_skip(game),
    )


def usual_frame_skip(game: Game) -> int:
    """Return the frames of a timestep of an episode that does not say them."""
    return max(EnvConfig().frame_skip, least_frame_skip(game.definition.actions))
