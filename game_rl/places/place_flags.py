"""Flags on the maps of a game: where a run has reached its milestones."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from PIL import ImageDraw

from game_rl.events import Event, MilestoneReached
from game_rl.games.place import Offsets
from game_rl.look import FLAG, rgb
from game_rl.places.place_counts import MapId, map_point

MOST_FLAGS = 40
"""Flags of a picture: the first milestones of a run."""

_CLOTH = rgb(FLAG)
_POLE = (245, 245, 248)
_SHADOW = (16, 16, 18)
_HEIGHT = 13
_CLOTH_HEIGHT = 7
_CLOTH_WIDTH = 9


class PlaceFlag(NamedTuple):
    """A milestone at its place.

    Attributes:
        number: from 1 on, the earliest first.
        map_id: the map; None for the world.
        x, y: of the place, in the world for a map that lies there.
        timesteps: of the run, at which it was reached.
    """

    number: int
    map_id: MapId | None
    x: int
    y: int
    text: str
    timesteps: int


def place_flags(events: Iterable[Event], names: Sequence[str], offsets: Offsets) -> list[PlaceFlag]:
    """Return the first milestones of a run that have a place of these variables.

    Args:
        events: the run's events, as `read_events` returns them.
        names: the variables of a place.
        offsets: x and y in the world of each map's place 0, 0.
    """
    found: list[PlaceFlag] = []
    for event in events:
        if not isinstance(event, MilestoneReached) or event.place is None:
            continue
        if len(event.place) != len(names) or len(found) == MOST_FLAGS:
            continue
        point = map_point(event.place, offsets)
        found.append(PlaceFlag(len(found) + 1, *point, event.text, event.timesteps))
    return found


def draw_flags(
    draw: ImageDraw.ImageDraw, flags: Iterable[tuple[PlaceFlag, tuple[int, int]]]
) -> None:
    """Draw flags, each with the pixel at which its pole ends; those at one pixel share a pole."""
    at_pixel: dict[tuple[int, int], list[PlaceFlag]] = {}
    for flag, pixel in flags:
        at_pixel.setdefault(pixel, []).append(flag)
    for (x, y), here in at_pixel.items():
        top = y - _HEIGHT
        draw.line((x, top, x, y), fill=_SHADOW, width=3)
        draw.line((x, top, x, y), fill=_POLE)
        cloth = ((x + 1, top), (x + _CLOTH_WIDTH, top + _CLOTH_HEIGHT // 2), (x + 1, top + 7))
        draw.polygon(cloth, fill=_CLOTH, outline=_SHADOW)
        number = str(here[0].number)
        if len(here) > 1:
            number += f"-{here[-1].number}" if _are_in_a_row(here) else "+"
        draw.text(
            (x + _CLOTH_WIDTH + 2, top - 3),
            number,
            fill=_POLE,
            stroke_width=2,
            stroke_fill=_SHADOW,
        )


def _are_in_a_row(flags: Sequence[PlaceFlag]) -> bool:
    return flags[-1].number - flags[0].number == len(flags) - 1
