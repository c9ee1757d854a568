"""What the agent sees of a running game: the screen, and parts that the game defines."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from game_rl.emulator.emulator import Emulator
from game_rl.envs.episode_tracker import EpisodeTracker, RunningEpisode, tracker_state
from game_rl.envs.observation import SCREEN, FrameFormat, Observation, ObservationFormat
from game_rl.games.definition import Game
from game_rl.games.parts.part_kind import CustomParts, PartValues, no_custom_parts
from game_rl.games.parts.part_spec import KINDS, PartsState
from game_rl.games.variables import Values


class EpisodeParts:
    """The parts of the observations of one running episode.

    Args:
        names: the parts that observations have.
        custom: returns what the game's own reward class makes of the variables, by name.

    Attributes:
        formats: their forms, by name.
        variables: names of the variables that a timestep needs.

    Raises:
        GameFileError: a file that a part names is missing or wrong.
    """

    def __init__(
        self, game: Game, names: Sequence[str], custom: CustomParts = no_custom_parts
    ) -> None:
        known = game.definition.game_parts()
        parts = [known[name] for name in names]
        self.formats = {part.name: part.form for part in parts}
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
        return {name: found[name] for name in self.formats}

    def save_state(self) -> PartsState:
        return PartsState(**{each.state_key: each.save_state() for each in self._remembering})

    def load_state(self, state: PartsState) -> None:
        for reader in self._remembering:
            reader.load_state(getattr(state, reader.state_key))


class Observer(EpisodeTracker):
    """Makes the observations of an env.

    Args:
        emulator: the game; the caller still owns it.
        frame_format: format of the screen; None if observations have parts only.
        parts: names of the game's parts that they have.
        custom: makes those of the game's own reward class.

    Attributes:
        format: format of the observations.
        is_read: whether somebody reads the observations; if not, one stays for all timesteps.

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
        self._parts = EpisodeParts(game, sorted(parts), custom)
        self.variables = self._parts.variables
        packing = None if frame_format is None else frame_format.packing
        self.format = ObservationFormat(packing, 1, tuple(self._parts.formats.items()))
        self._values: PartValues = {}
        self.is_read = True

    def reset(self, episode: RunningEpisode) -> None:
        self._parts.reset(episode.values)
        self._values = self._parts.read(episode.values, self._emulator)
        episode.observation = self._observe()

    def step(self, episode: RunningEpisode) -> None:
        """Look at the game after a timestep.

        Raises:
            GameFileError: a value is not one of those that game.yaml allows.
        """
        if not self.is_read and episode.observation is not None:
            return
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
        if not self.format.is_dict:
            assert screen is not None
            return screen
        screens: dict[str, NDArray[np.uint8]] = {} if screen is None else {SCREEN: screen}
        return {**screens, **self._values}

    def save_state(self) -> Mapping[str, JsonValue]:
        if not self.format.is_dict:
            return {}
        return {"parts": self._parts.save_state().model_dump(mode="json")}

    def load_state(self, saved: Mapping[str, JsonValue], episode: RunningEpisode) -> None:
        if self.format.is_dict:
            self._parts.load_state(tracker_state(saved, "parts", PartsState))
            if episode.running:
                self._values = self._parts.read(episode.values, self._emulator)
