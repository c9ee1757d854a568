"""`recent`: a part that has a variable at the latest timesteps."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from game_rl.config.strict_model import Key, Problem, StrictModel
from game_rl.emulator.emulator import Emulator
from game_rl.games.parts.categories_part import check_categories
from game_rl.games.parts.part_format import Bits, PartFormat, Stretch
from game_rl.games.parts.part_kind import CustomParts, GamePart, PartsReader, PartValues, unfit
from game_rl.games.parts.vector_part import Scale
from game_rl.games.variable_spec import is_always_whole
from game_rl.games.variables import Values, as_tuple

Numbers = tuple[int | float, ...]


class RecentSpec(StrictModel):
    """`{variable: room, timesteps: 32, of: 24}`: a variable at the latest timesteps."""

    variable: str
    timesteps: Annotated[int, Field(ge=1, le=1_024)]
    """How many of the latest timesteps are shown, the present one last."""
    scale: Scale | None = None
    """Factor that brings the values to the order of 1."""
    of: Annotated[int, Field(ge=2, le=65_535)] | None = None
    """How many categories the values stand for, each below it; null: the values are numbers."""

    def problems(self) -> Iterable[Problem]:
        if self.scale == 0:
            yield Problem(("scale",), "0 would make every value 0; write another number")
        if self.scale is not None and self.of is not None:
            what = "does not go with `of`, because categories have no scale; remove it"
            yield Problem(("scale",), what)


class RecentReader(PartsReader["RecentPart"]):
    """Remembers each variable for as many timesteps as the part that shows the most of it."""

    state_key = "recent"

    def __init__(self, parts: Sequence["RecentPart"], folder: Path, custom: CustomParts) -> None:
        super().__init__(parts, folder, custom)
        self._latest: dict[str, deque[Numbers]] = {}
        for part in sorted(parts, key=lambda part: part.recent.timesteps):
            self._latest[part.recent.variable] = deque(maxlen=part.recent.timesteps)

    def reset(self, values: Values) -> None:
        for latest in self._latest.values():
            latest.clear()
        self.step(values, 0)

    def step(self, values: Values, action: int) -> None:
        for name, latest in self._latest.items():
            latest.append(as_tuple(values[name]))

    def read(self, values: Values, emulator: Emulator) -> PartValues:
        return {part.name: part.shown(self._latest[part.recent.variable]) for part in self._parts}

    def save_state(self) -> dict[str, tuple[Numbers, ...]]:
        return {name: tuple(latest) for name, latest in self._latest.items()}

    def load_state(self, state: Mapping[str, tuple[Numbers, ...]]) -> None:
        for name, latest in self._latest.items():
            latest.clear()
            latest.extend(state.get(name, ()))


@dataclass(frozen=True, eq=False)
class RecentPart(GamePart):
    reader = RecentReader

    recent: RecentSpec

    @cached_property
    def form(self) -> PartFormat:
        """Categories are one more than in the game, as 0 is from before the episode."""
        spec = self.game.variables[self.recent.variable]
        shape = (self.recent.timesteps * spec.n_numbers,)
        if self.recent.of is not None:
            n_values = 1 + self.recent.of
            return PartFormat.of_indices("categories", shape, n_values, is_stacked=self.stack)
        bits: Bits = 1 if spec.is_of_bits and self.recent.scale is None else 32
        return PartFormat("vector", shape, 0, (Stretch(shape[0], bits),), self.stack)

    def shown(self, latest: Iterable[Numbers]) -> NDArray[Any]:
        """Return a new array of the variable's values, of which `latest` has the newest last.

        Raises:
            GameFileError: a number is not below `of`.
        """
        numbers = [number for each in latest for number in each][-self.form.shape[0] :]
        shown = np.zeros(self.form.shape, self.form.dtype)
        if not numbers:
            return shown
        found = np.array(numbers, np.float64)
        if self.recent.of is not None:
            check_categories(numbers, self.recent.of, f"{self.name}.recent", self.recent.variable)
            found += 1
        elif self.recent.scale is not None:
            found *= self.recent.scale
        shown[-len(numbers) :] = found
        return shown

    @property
    def caption(self) -> str:
        return self.recent.variable

    def rows(self) -> Sequence[tuple[str, int, Bits]]:
        return [(self.recent.variable, each.size, each.bits) for each in self.form.stretches]

    def references(self) -> Iterator[tuple[Key, str]]:
        yield ("recent", "variable"), self.recent.variable

    def problems(self) -> Iterator[Problem]:
        name = self.recent.variable
        spec = self.game.variables.get(name)
        if spec is None:
            return
        if self.recent.of is not None and not is_always_whole(name, self.game.variables):
            what = "is not always a whole number, and categories are; remove `of`"
            yield unfit(("recent", "variable"), name, what)
        if self.recent.scale is not None and spec.type == "bits" and spec.operation is None:
            what = "is an array of bits, which have no scale; remove `scale`"
            yield unfit(("recent", "scale"), name, what)
