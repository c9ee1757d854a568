"""`own`: a part that the method `parts` of the game's own reward class returns."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from game_rl.config.strict_model import Problem, StrictModel
from game_rl.emulator.emulator import Emulator
from game_rl.errors import GameFileError
from game_rl.games.parts.part_format import PartFormat, Stretch, bits_of
from game_rl.games.parts.part_kind import GamePart, PartsReader, PartValues
from game_rl.games.variables import Values

_MOST_NUMBERS = 65_536
_MOST_SIDE = 512


class RewardClassSpec(StrictModel):
    """The form of a part that the method `parts` of the game's own reward class returns."""

    kind: Literal["vector", "categories", "grid"]
    """Numbers, kinds of things, or a small picture of kinds of things."""
    shape: tuple[Annotated[int, Field(ge=1)], ...]
    """[n], or [height, width] of a grid."""
    of: Annotated[int, Field(ge=2, le=65_536)] | None = None
    """How many values each number can have; numbers are whole and below this. null: float32, for
    vectors only."""

    def problems(self) -> Iterable[Problem]:
        named = "categories" if self.kind == "categories" else f"a {self.kind}"
        n_sides = 1
        example = "[n]"
        most = _MOST_NUMBERS
        if self.kind == "grid":
            n_sides = 2
            example = "[height, width]"
            most = _MOST_SIDE
        if len(self.shape) != n_sides:
            yield Problem(("shape",), f"the shape of {named} is {example}")
        elif max(self.shape) > most:
            yield Problem(("shape",), f"{max(self.shape):,} is too large; at most {most:,} fit")
        if self.of is None and self.kind != "vector":
            message = f"{named} needs the number of values, as in `of: 8`"
            yield Problem(("of",), message, reads=(("kind",),))


class RewardClassReader(PartsReader["RewardClassPart"]):
    def read(self, values: Values, emulator: Emulator) -> PartValues:
        made = self._custom(values)
        return {part.name: part.checked(made) for part in self._parts}


@dataclass(frozen=True, eq=False)
class RewardClassPart(GamePart):
    is_custom = True
    reader = RewardClassReader

    own: RewardClassSpec

    @cached_property
    def form(self) -> PartFormat:
        of = self.own.of
        if self.own.kind == "vector":
            stretches = (Stretch(prod(self.own.shape), 32 if of is None else bits_of(of)),)
            return PartFormat("vector", self.own.shape, 0, stretches, self.stack)
        assert of is not None
        shape = (1, *self.own.shape) if self.own.kind == "grid" else self.own.shape
        return PartFormat.of_indices(self.own.kind, shape, of, is_stacked=self.stack)

    def checked(self, made: Mapping[str, Any]) -> NDArray[Any]:
        """Return the part in a new array.

        Args:
            made: what the class has returned.

        Raises:
            GameFileError: the part is missing, or is not of its form.
        """
        if self.name not in made:
            found = ", ".join(map(str, made)) or "nothing"
            raise self._wrong(f"returned {found}; return this part as well")
        try:
            values = np.asarray(made[self.name], np.float64)
        except (TypeError, ValueError):
            found = type(made[self.name]).__name__
            raise self._wrong(f"returned {found}, which is not an array of numbers") from None
        if values.shape != self.own.shape:
            raise self._wrong(
                f"returned an array of shape {list(values.shape)}; `shape` says "
                f"{list(self.own.shape)}"
            )
        of = self.own.of
        if of is None:
            with np.errstate(over="ignore"):
                wrong = ~np.isfinite(values.astype(np.float32))
            rule = "must be finite"
        else:
            wrong = ~((values >= 0) & (values < of) & (values == np.floor(values)))
            rule = f"must be whole, at least 0 and below {of:,} (`of`)"
        if wrong.any():
            raise self._wrong(f"returned {values[wrong][0]:g}; its numbers {rule}")
        return values.astype(self.form.dtype).reshape(self.form.shape)

    def _wrong(self, message: str) -> GameFileError:
        return GameFileError(f"parts.{self.name}: the reward class {message}")

    def problems(self) -> Iterator[Problem]:
        if self.game.reward is None:
            yield Problem(
                ("own",),
                "is made by the game's own reward class, and there is none; name it, as in "
                "`reward: my_rewards:MyReward`, or remove the part",
                reads=(("reward",),),
            )
