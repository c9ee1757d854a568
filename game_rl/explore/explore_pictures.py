"""Pictures of an exploration: a sheet of its screens, the moments of the best way, its map."""

import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from game_rl.explore.archive import CellRecord
from game_rl.explore.exploration_view import ExplorationView
from game_rl.explore.explore_dir import ExploreSettings
from game_rl.explore.trip import Gain
from game_rl.game_check.sheets import Moment, contact_sheet, contact_sheet_text
from game_rl.games.definition import Game
from game_rl.places.joined_maps import JoinedMap, joined_maps
from game_rl.places.places_picture import SIDE, drawn_blocks, places_picture
from game_rl.places.screen_map import read_screen_map
from game_rl.system.units import counted

MOST_SCREENS = 40
"""Screens on a sheet."""


def shown_cells(cells: Sequence[CellRecord], settings: ExploreSettings) -> list[CellRecord]:
    """Return the cells of the sheet: at most 40 that have a state, in the order of their numbers.

    Of pictures, they are the most different ones; else, they are spread evenly over all.
    """
    held = [record for record in cells if record.state]
    if len(held) <= MOST_SCREENS:
        return held
    if not settings.cell:
        pictures = np.array([record.cell for record in held], np.int16)
        return [held[index] for index in sorted(furthest(pictures, MOST_SCREENS))]
    return [held[n * len(held) // MOST_SCREENS] for n in range(MOST_SCREENS)]


def furthest(points: NDArray[np.int16], n: int) -> list[int]:
    """Return the first of some points, then always the one that is furthest from those before it.

    The distance of two points is the sum of the differences of their numbers (Gonzalez 1985,
    "Clustering to minimize the maximum intercluster distance").

    Args:
        points: int16 [points, numbers].
        n: of the points to return, at most as many as there are.

    Returns:
        Their indices; of points that are equally far, the first one.
    """
    chosen = [0]
    nearest = np.abs(points - points[0]).sum(axis=1)
    while len(chosen) < n:
        index = int(nearest.argmax())
        chosen.append(index)
        nearest = np.minimum(nearest, np.abs(points - points[index]).sum(axis=1))
    return chosen


def cell_moment(record: CellRecord, screen: NDArray[np.uint8]) -> Moment:
    """Return a cell as the sheet shows it: its number, after how long, with which reward."""
    label = f"{record.number:,}: {counted(record.score.timesteps, 'timestep')}"
    if record.score.reward:
        label += f", {record.score.reward:g}"
    return Moment(label, screen)


def png_of(moments: Sequence[Moment]) -> bytes:
    """Return a contact sheet as a PNG."""
    file = io.BytesIO()
    text = contact_sheet_text(moments)
    contact_sheet(moments).save(file, format="PNG", optimize=True, pnginfo=text)
    return file.getvalue()


def way_moments(gains: Sequence[Gain]) -> list[Moment]:
    """Return at most 40 of the moments of a way, its first reward and its end among them."""
    n = len(gains)
    count = min(n, MOST_SCREENS)
    chosen = [gains[round(k * (n - 1) / max(1, count - 1))] for k in range(count)]
    moments = []
    for gain in chosen:
        what = ", ".join(gain.terms) or "end"
        moments.append(Moment(f"{gain.timesteps:,}: {what}", gain.screen))
    return moments


def exploration_map(
    view: ExplorationView, game: Game, *, title: str, side: int = SIDE, plain: bool = False
) -> Image.Image | None:
    """Return the map of the visited places; None where the cells do not say it.

    It is drawn on the screens of the game's maps, if there are some.

    Args:
        side: of all maps together, in pixels.
        plain: whether to leave the screens out.
    """
    counts = view.place_counts()
    if counts is None:
        return None
    joined: list[JoinedMap] = []
    on_screens = None if plain else view.place_counts_on_screens()
    screens = read_screen_map(view.folder.place_screens, most_blocks=drawn_blocks(side))
    if on_screens is not None and screens.maps():
        counts = on_screens
        joined = joined_maps(
            counts,
            screens,
            pixels=screens.pixels,
            names=game.map_names(),
            side=view.places.sides[0],
        )
    facts = (view.facts_of_map(counts),)
    return places_picture(
        counts, title=title, side=side, counted="trips", facts=facts, joined=joined
    )


def why_no_map(game: Game) -> str:
    """Return why an exploration of a game has no map of visited places."""
    if game.definition.place is None:
        return "The game's file has no place, such as place: [map, x, y]."
    return (
        "The cells have no position: they lack a variable of the game's place, or none was found "
        "yet."
    )
