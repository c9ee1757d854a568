"""`actions`: a part that has the agent's latest actions, as categories."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from game_rl.emulator.emulator import Emulator
from game_rl.games.parts.part_format import PartFormat
from game_rl.games.parts.part_kind import CustomParts, GamePart, PartsReader, PartValues
from game_rl.games.variables import Values


class ActionsReader(PartsReader["ActionsPart"]):
    """Remembers as many actions as the part that shows the most of them."""

    state_key = "actions"

    def __init__(self, parts: Sequence["ActionsPart"], folder: Path, custom: CustomParts) -> None:
        super().__init__(parts, folder, custom)
        self._most = max(part.actions for part in parts)
        self.load_state(())

    def reset(self, values: Values) -> None:
        self.load_state(())

    def step(self, values: Values, action: int) -> None:
        self._actions.append(action + 1)

    def read(self, values: Values, emulator: Emulator) -> PartValues:
        latest = tuple(self._actions)
        return {
            part.name: np.array(latest[-part.actions :], part.form.dtype) for part in self._parts
        }

    def save_state(self) -> tuple[int, ...]:
        return tuple(self._actions)

    def load_state(self, state: tuple[int, ...]) -> None:
        self._actions = deque([0] * self._most, self._most)
        self._actions.extend(state)


@dataclass(frozen=True, eq=False)
class ActionsPart(GamePart):
    reader = ActionsReader

    actions: int

    @cached_property
    def form(self) -> PartFormat:
        n_values = 1 + len(self.game.actions)
        return PartFormat.of_indices("categories", (self.actions,), n_values, is_stacked=self.stack)

    @property
    def labels(self) -> tuple[str, ...]:
        return ("", *self.game.actions)
