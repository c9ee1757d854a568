"""Parts that are kinds of things: `categories` of a variable, and the latest `actions`."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.config.strict_model import Key, Problem
from game_rl.emulator.emulator import Emulator
from game_rl.errors import GameFileError
from game_rl.games.parts.part_format import PartFormat
from game_rl.games.parts.part_kind import CustomParts, GamePart, PartsReader, PartValues, unfit
from game_rl.games.variable_spec import is_always_whole
from game_rl.games.variables import Values, as_tuple


def check_categories(numbers: Iterable[int | float], of: int, entry: str, variable: str) -> None:
    """Check that these numbers of a variable are categories of the entry `parts.ENTRY`.

    Raises:
        GameFileError: a number is not below `of`.
    """
    for number in numbers:
        if not 0 <= number < of:
            raise GameFileError(
                f"parts.{entry}.of: {variable} is {number:,}, and `of: {of}` allows 0 to "
                f"{of - 1:,}; write a larger `of`, or give the variable a `mask`"
            )


@dataclass(frozen=True, eq=False)
class CategoriesPart(GamePart):
    categories: str
    of: int

    @cached_property
    def form(self) -> PartFormat:
        shape = (self.game.variables[self.categories].n_numbers,)
        return PartFormat.of_indices("categories", shape, self.of, is_stacked=self.stack)

    def read(self, values: Values, emulator: Emulator) -> NDArray[Any]:
        """Return new categories.

        Raises:
            GameFileError: a number is not below `of`.
        """
        numbers = as_tuple(values[self.categories])
        check_categories(numbers, self.of, self.name, self.categories)
        return np.array(numbers, self.form.dtype)

    @property
    def caption(self) -> str:
        return self.categories

    def references(self) -> Iterator[tuple[Key, str]]:
        yield ("categories",), self.categories

    def problems(self) -> Iterator[Problem]:
        if not is_always_whole(self.categories, self.game.variables):
            what = "is not always a whole number, and categories are; take a `vector` for it"
            yield unfit(("categories",), self.categories, what)


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
