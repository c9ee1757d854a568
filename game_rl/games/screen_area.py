"""Parts of the screen: what the agent sees of it, and which part of a map is on it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from game_rl.config.strict_model import Key, Problem, StrictModel
from game_rl.emulator.emulator import SCREEN_HEIGHT, SCREEN_WIDTH
from game_rl.games.conditions import Condition


class CropSpec(StrictModel):
    """A part of the screen, in pixels of the whole screen."""

    top: Annotated[int, Field(ge=0)] = 0
    left: Annotated[int, Field(ge=0)] = 0
    height: Annotated[int, Field(gt=0)] = SCREEN_HEIGHT
    width: Annotated[int, Field(gt=0)] = SCREEN_WIDTH

    def problems(self) -> Iterable[Problem]:
        if self.top + self.height > SCREEN_HEIGHT:
            yield Problem(
                ("height",),
                f"rows {self.top} to {self.top + self.height} are outside the screen, which has "
                f"{SCREEN_HEIGHT}; at most {max(0, SCREEN_HEIGHT - self.top)} fit below the top",
            )
        if self.left + self.width > SCREEN_WIDTH:
            yield Problem(
                ("width",),
                f"columns {self.left} to {self.left + self.width} are outside the screen, which "
                f"has {SCREEN_WIDTH}; at most {max(0, SCREEN_WIDTH - self.left)} fit",
            )


_Pixel = Annotated[int, Field(ge=-(2**15), lt=2**15)]


class PlaceScreen(StrictModel):
    """Which part of a map the screen shows, for a map of visited places that is made of screens.

    With nothing else, x and y are pixels of the screen, and the screen shows the whole map, such as
    a room.
    """

    pixels: Annotated[int, Field(ge=1, le=64)] = 1
    """Pixels in a step of x or y, such as 16 in games that count tiles of 16 x 16."""
    player: tuple[_Pixel, _Pixel] | None = None
    """If the map scrolls so that the player stays at one point of the screen: [x, y] of that point,
    in pixels; for tiles, the upper left corner."""
    left: str | _Pixel = 0
    """If the map scrolls in another way: pixels of the map to the left of the screen, a variable or
    a number."""
    top: str | _Pixel = 0
    """The same for pixels of the map above the screen."""
    crop: CropSpec = CropSpec()
    """The part of the screen that shows the map, without a status bar."""
    when: Condition | None = None
    """When the screen shows the map, and no battle: {variable: battle, equals: 0}."""

    def problems(self) -> Iterable[Problem]:
        for key in ("left", "top"):
            if self.player is not None and getattr(self, key) != 0:
                yield Problem(
                    (key,),
                    "does not go with `player`, which is for a map that scrolls with the player; "
                    "remove one of them",
                )
        if self.when is not None and self.when.has_memory:
            yield Problem(
                ("when",),
                "is checked at a single moment: compare a variable, without `for`, `increases`, "
                "`decreases`, `changes` and waits",
            )

    def references(self) -> Iterator[tuple[Key, str]]:
        """Yield the variables that it names, each with its key."""
        for key in ("left", "top"):
            name = getattr(self, key)
            if isinstance(name, str):
                yield (key,), name
        if self.when is not None:
            yield from ((("when", *key), name) for key, name in self.when.references())

    def shown_at(
        self, place: tuple[int | float, ...], values: Mapping[str, Any]
    ) -> tuple[int, int] | None:
        """Return which pixel of the map the crop's upper left one is; None if it shows no map.

        Args:
            place: where the player is.
            values: the variables that this names, at the same moment.
        """
        if self.when is not None and not self.when.holds(values):
            return None
        x, y = place[-2:]
        if self.player is not None:
            left = self.pixels * int(x) - self.player[0]
            top = self.pixels * int(y) - self.player[1]
        else:
            left = _number(self.left, values)
            top = _number(self.top, values)
        return left + self.crop.left, top + self.crop.top


def _number(given: str | int, values: Mapping[str, Any]) -> int:
    return int(values[given]) if isinstance(given, str) else given
