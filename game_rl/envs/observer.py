"""What the agent sees of a running game: the screen, and parts that the game defines."""

from collections.abc import Collection
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from game_rl.emulator.emulator import Emulator
from game_rl.envs.observation import SCREEN, FrameFormat, Observation, ObservationFormat
from game_rl.games.definition import Game
from game_rl.games.parts.episode_parts import EpisodeParts, part_formats
from game_rl.games.parts.part_kind import CustomParts, PartValues, no_custom_parts
from game_rl.games.parts.part_spec import PartsState
from game_rl.games.variables import Values


class Observer:
    """Makes the observations of an env.

    Args:
        emulator: the game; the caller still owns it.
        frame_format: format of the screen; None if observations have parts only.
        parts: names of the game's parts that they have.
        custom: makes those of the game's own reward class.

    Attributes:
        format: format of the observations.
        variables: names of the variables that a timestep needs.
        observed: the last observation, with the very arrays that were returned.

    Raises:
        GameFileError: a file that a part needs is missing or wrong.
    """

    observed: Observation | None = None

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
        self.variables = frozenset[str]() if self._parts is None else self._parts.variables
        self._values: PartValues = {}

    @property
    def space(self) -> spaces.Space[Any]:
        return self.format.frame_space

    def reset(self, values: Values) -> None:
        """Begin an episode with these values of the variables."""
        if self._parts is not None:
            self._parts.reset(values)
            self._values = self._parts.read(values, self._emulator)

    def step(self, values: Values, action: int) -> None:
        """Look at the game after a timestep in which the agent chose this action.

        Raises:
            GameFileError: a value is not one of those that game.yaml allows.
        """
        if self._parts is not None:
            self._parts.step(values, action)
            self._values = self._parts.read(values, self._emulator)

    def observe(self) -> Observation:
        """Return the screen as it is now and the parts after the last timestep, in new arrays."""
        screen = None
        if self._frame_format is not None:
            screen = self._frame_format.observe(self._emulator.screen())
        if self._parts is None:
            assert screen is not None
            self.observed = screen
            return screen
        screens: dict[str, NDArray[np.uint8]] = {} if screen is None else {SCREEN: screen}
        self.observed = {**screens, **self._values}
        return dict(self.observed)

    def save_state(self) -> PartsState:
        return PartsState() if self._parts is None else self._parts.save_state()

    def load_state(self, state: PartsState, values: Values | None) -> None:
        """Continue from a saved state.

        Args:
            values: the variables as they are now; None between two episodes.
        """
        if self._parts is not None:
            self._parts.load_state(state)
            if values is not None:
                self._values = self._parts.read(values, self._emulator)
