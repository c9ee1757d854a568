"""A recorded episode that can be replayed."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from game_rl.config.loader import load_yaml_model
from game_rl.config.strict_model import Problem, StrictModel
from game_rl.errors import GameFileError
from game_rl.games.definition import Game, unknown_name


class RecordedEpisode(StrictModel):
    """A JSON file `{"start_state": "level_1", "seed": 0, "actions": ["right", "punch", …]}`."""

    start_state: str
    seed: Annotated[int, Field(ge=0)] = 0
    actions: Annotated[tuple[str, ...], Field(min_length=1)]
    """Name of the action at each timestep."""


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
