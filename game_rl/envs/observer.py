"""What the agent sees of a running game: the screen, and parts that the game defines."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from game_rl.emulator.emulator import Emulator
from game_rl.envs.episode_tracker import EpisodeTracker, RunningEpisode, tracker_state
from game_rl.envs.observation import SCREEN, FrameFormat, Observation, ObservationFormat
from game_rl.games.definition import Game
from game_rl.games.parts.episode_parts import EpisodeParts, part_formats
from game_rl.games.parts.part_kind import CustomParts, PartValues, no_custom_parts
from game_rl.games.parts.part_spec import PartsState


class Observer(EpisodeTracker):
    """Makes the observations of an env.

    Args:
        emulator: the game; the caller still owns it.
        frame_format: format of the screen; None if observations have parts only.
        parts: names of the game's parts that they have.
        custom: makes those of the game's own reward class.

    Attributes:
        format: format of the observations.

    Raises:
        GameFileError: a file that a part needs is missing or wrong.
    """

    def __init__(
        self,
        emulator: Emulator,
        game: Game,
        frame_format: FrameFormat | None,
        parts: Collection[str],
        custom: CustomParts = no_custom_parts,
    ) -> None:
        self._emulator = emulator
        self._frame_format = frame_format
        formats = part_formats(game.definition) if parts else {}
        chosen = tuple((name, formats[name]) for name in sorted(parts))
        packing = None if frame_format is None else frame_format.packing
        self.format = ObservationFormat(packing, 1, chosen)
        self._parts = EpisodeParts(game, sorted(parts), custom) if parts else None
        if self._parts is not None:
            self.variables = self._parts.variables
        self._values: PartValues = {}

    def reset(self, episode: RunningEpisode) -> None:
        if self._parts is not None:
            self._parts.reset(episode.values)
            self._values = self._parts.read(episode.values, self._emulator)
        episode.observation = self._observe()

    def step(self, episode: RunningEpisode) -> None:
        """Look at the game after a timestep.

        Raises:
            GameFileError: a value is not one of those that game.yaml allows.
        """
        if self._parts is not None:
            self._parts.step(episode.values, episode.chosen)
            self._values = self._parts.read(episode.values, self._emulator)
        episode.observation = self._observe()

    def cut_short(self, episode: RunningEpisode) -> Mapping[str, Any]:
        """Observe the screen at which the game locked up, and the parts as they were before."""
        episode.observation = self._observe()
        return {}

    def _observe(self) -> Observation:
        """Return the screen as it is now and the parts after the last timestep, in new arrays."""
        screen = None
        if self._frame_format is not None:
            screen = self._frame_format.observe(self._emulator.screen())
        if self._parts is None:
            assert screen is not None
            return screen
        screens: dict[str, NDArray[np.uint8]] = {} if screen is None else {SCREEN: screen}
        return {**screens, **self._values}

    def save_state(self) -> Mapping[str, JsonValue]:
        if self._parts is None:
            return {}
        return {"parts": self._parts.save_state().model_dump(mode="json")}

    def load_state(self, saved: Mapping[str, JsonValue], episode: RunningEpisode) -> None:
        if self._parts is not None:
            self._parts.load_state(tracker_state(saved, "parts", PartsState))
            if episode.running:
                self._values = self._parts.read(episode.values, self._emulator)
