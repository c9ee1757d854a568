"""A clip of the map of visited places: a whole training in 20 seconds."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from game_rl.game_check.sheets import BACKGROUND
from game_rl.places.joined_maps import JoinedMap
from game_rl.places.place_counts import MapPoint, PlaceCounts
from game_rl.places.place_flags import PlaceFlag
from game_rl.places.places_picture import MOST_LAYERS, places_picture

CLIP_S = 20.0
N_PICTURES = 200
CLIP_SIDE = 800
"""Of all maps together, in pixels."""
_WALK_PICTURES = 8  # in which an agent walks through an episode
_LINE = 60  # timesteps of its way that are seen


class Walk(NamedTuple):
    """Where an agent was in an episode.

    Attributes:
        timesteps: of the run when the episode ended.
    """

    timesteps: int
    points: Sequence[MapPoint]


def map_pictures(
    counts: PlaceCounts,
    joined: Sequence[JoinedMap],
    *,
    title: str,
    side: int = CLIP_SIDE,
    flags: Sequence[PlaceFlag] = (),
    walks: Sequence[Walk] = (),
    n_pictures: int = N_PICTURES,
) -> Iterator[NDArray[np.uint8]]:
    """Yield the map at equal intervals of a training, uint8 [h, w, 3], all of one size.

    Args:
        joined: the maps at its end.
        walks: episodes, each of which is walked from when it ended on.
    """
    by_visits = sorted(joined, key=lambda each: -_visits(each))
    kept = {id(each) for each in by_visits[:MOST_LAYERS]}
    shown = [each for each in joined if id(each) in kept]
    most = max((int(each.layer.counts.max()) for each in shown if each.layer), default=1)
    ends = [counts.until * number // n_pictures for number in range(n_pictures + 1)]
    last = _picture(counts, shown, title, side, flags, (), most, counts.until)
    size = (last.width + last.width % 2, last.height + last.height % 2)  # as MP4 needs it
    walking: list[tuple[int, Walk]] = []
    for number, (begin, end) in enumerate(pairwise(ends)):
        walking = [each for each in walking if number - each[0] < _WALK_PICTURES]
        walking += [(number, walk) for walk in walks if begin < walk.timesteps <= end]
        ways = [_way(walk, number - since) for since, walk in walking]
        then = [each.at(end) for each in shown]
        picture = Image.new("RGB", size, BACKGROUND)
        picture.paste(_picture(counts, then, title, side, flags, ways, most, end))
        yield np.asarray(picture)


def _picture(
    counts: PlaceCounts,
    joined: Sequence[JoinedMap],
    title: str,
    side: int,
    flags: Sequence[PlaceFlag],
    ways: Sequence[Sequence[MapPoint]],
    most: int,
    timestep: int,
) -> Image.Image:
    places = sum(int(np.count_nonzero(each.layer.counts)) for each in joined if each.layer)
    return places_picture(
        counts,
        title=title,
        side=side,
        facts=(f"timestep {timestep:,} of {counts.until:,}: {places:,} cells visited",),
        joined=joined,
        flags=flags,
        walks=ways,
        most=most,
        at=timestep,
        in_steps=True,
    )


def _way(walk: Walk, age: int) -> Sequence[MapPoint]:
    """Return the way of an episode that an agent has just walked."""
    here = len(walk.points) * (age + 1) // _WALK_PICTURES
    return walk.points[max(0, here - _LINE) : here]


def _visits(joined: JoinedMap) -> int:
    return 0 if joined.layer is None else int(joined.layer.counts.sum())
