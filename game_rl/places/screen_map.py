"""The maps of a game, joined from screens that agents saw, each place once."""

import base64
import io
import zipfile
import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field, ValidationError

from game_rl.envs.episode_tracker import EnvParts, EpisodeTracker, RunningEpisode, TrackerMaker
from game_rl.files.saved import Natural, Saved
from game_rl.games.place import Place
from game_rl.games.screen_area import PlaceScreen
from game_rl.games.variables import Values
from game_rl.places.place_counts import MapId

BLOCK_SIDE = 128
MOST_BLOCKS = 2_048
"""Blocks of all maps, 160 MiB; screens that would need further ones are left out there."""

_MOST_VOTES = 255
_Key = tuple[int, ...]  # the map's variables, then row and column of the block


_KEYS = "blocks"
_COLOURS = "colours"
_VOTES = "votes"
_ABOUT = "about"


class _About(Saved):
    n_map_variables: Natural
    episode: Natural
    pixels: Natural = 1
    names: dict[int, str] = Field(default={})


class MapPicture(NamedTuple):
    """What was seen of a map.

    Attributes:
        x, y: the pixel of the map that is the upper left one.
        pixels: uint8 [h, w, 3] RGB; black where nothing was seen.
        seen: bool [h, w].
    """

    x: int
    y: int
    pixels: NDArray[np.uint8]
    seen: NDArray[np.bool_]


class _Block:
    def __init__(self) -> None:
        self.colours = np.zeros((BLOCK_SIDE, BLOCK_SIDE), np.uint32)  # 0xRRGGBB
        self.votes = np.zeros((BLOCK_SIDE, BLOCK_SIDE), np.uint8)  # 0: nothing was seen

    def vote(self, rows: slice, columns: slice, colours: NDArray[np.uint32]) -> None:
        kept = self.colours[rows, columns]
        votes = self.votes[rows, columns]
        same = kept == colours
        is_new = (votes == 0) | (~same & (votes == 1))
        kept[is_new] = colours[is_new]
        votes[~same & (votes > 1)] -= 1
        votes[same & (votes > 0) & (votes < _MOST_VOTES)] += 1
        votes[is_new] = 1


class ScreenMap:
    """Joins screens into pictures of the maps that they show.

    A pixel of a map has a colour that a screen had there: that of more than half of the screens, if
    there is one, so that whoever walks by leaves no trace (the majority vote of Boyer and Moore,
    which needs a counter a pixel).

    Attributes:
        places: where the player was, on the screens so far; it is not saved.
        episode: number of the newest episode whose screens are in it; 0 if there is none.
        pixels: pixels that a step of x or y is.
        names: names of maps, by their numbers.
    """

    def __init__(self) -> None:
        self.places: set[Place] = set()
        self.episode = 0
        self.pixels = 1
        self.names: Mapping[int, str] = {}
        self._blocks: dict[_Key, _Block] = {}

    def add(self, map_id: MapId, x: int, y: int, screen: NDArray[np.uint8]) -> None:
        """Add a screen, or the part of it that shows the map.

        Args:
            x, y: the pixel of the map that the upper left one of the screen is.
            screen: uint8 [h, w, 3] RGB.
        """
        wide = screen.astype(np.uint32)
        colours = (wide[..., 0] << 16 | wide[..., 1] << 8 | wide[..., 2]).astype(np.uint32)
        height, width = colours.shape
        for row in range(y // BLOCK_SIDE, (y + height - 1) // BLOCK_SIDE + 1):
            top = max(y, row * BLOCK_SIDE)
            bottom = min(y + height, (row + 1) * BLOCK_SIDE)
            for column in range(x // BLOCK_SIDE, (x + width - 1) // BLOCK_SIDE + 1):
                left = max(x, column * BLOCK_SIDE)
                right = min(x + width, (column + 1) * BLOCK_SIDE)
                block = self._block((*map_id, row, column))
                if block is not None:
                    block.vote(
                        slice(top - row * BLOCK_SIDE, bottom - row * BLOCK_SIDE),
                        slice(left - column * BLOCK_SIDE, right - column * BLOCK_SIDE),
                        colours[top - y : bottom - y, left - x : right - x],
                    )

    def _block(self, key: _Key) -> _Block | None:
        block = self._blocks.get(key)
        if block is None and len(self._blocks) < MOST_BLOCKS:
            block = self._blocks[key] = _Block()
        return block

    def maps(self) -> list[MapId]:
        """Return the maps of which something was seen."""
        return sorted({key[:-2] for key in self._blocks})

    def to_bytes(self) -> bytes:
        """Return the content of `place_screens.npz`; equal maps give equal bytes."""
        keys = sorted(self._blocks)
        found = [self._blocks[key] for key in keys]
        n_columns = len(keys[0]) if keys else 2
        shape = (len(keys), BLOCK_SIDE, BLOCK_SIDE)
        about = _About(
            n_map_variables=n_columns - 2,
            episode=self.episode,
            pixels=self.pixels,
            names=dict(self.names),
        )
        arrays: Mapping[str, NDArray[np.generic]] = {
            _KEYS: np.array(keys, np.int64).reshape(len(keys), n_columns),
            _COLOURS: np.array([block.colours for block in found], np.uint32).reshape(shape),
            _VOTES: np.array([block.votes for block in found], np.uint8).reshape(shape),
            _ABOUT: np.frombuffer(about.model_dump_json().encode(), np.uint8),
        }
        file = io.BytesIO()
        np.savez_compressed(file, allow_pickle=False, **arrays)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Return the map that `to_bytes` wrote.

        Raises:
            ValueError: the content is no such file, or is damaged.
        """
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                keys, colours, votes, text = (file[n] for n in (_KEYS, _COLOURS, _VOTES, _ABOUT))
            about = _About.model_validate_json(text.tobytes())
        except (KeyError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"it is not a file of a map's screens ({error})") from None
        except ValidationError as error:
            raise ValueError(f"its description is damaged ({error.error_count()} faults)") from None
        shape = (len(keys), BLOCK_SIDE, BLOCK_SIDE)
        is_whole = keys.dtype == np.int64 and keys.shape == (len(keys), about.n_map_variables + 2)
        is_whole &= colours.dtype == np.uint32 and votes.dtype == np.uint8
        if (
            not is_whole
            or colours.shape != shape
            or votes.shape != shape
            or len(keys) > MOST_BLOCKS
        ):
            raise ValueError("its arrays have the wrong shape or type")
        if not votes.any(axis=(1, 2)).all():
            raise ValueError("it has empty blocks")
        found = cls()
        found.episode = about.episode
        found.pixels = about.pixels
        found.names = about.names
        for key, own_colours, own_votes in zip(keys.tolist(), colours, votes, strict=True):
            block = found._blocks[tuple(key)] = _Block()
            block.colours = own_colours
            block.votes = own_votes
        return found

    def picture(self, map_id: MapId) -> MapPicture:
        """Return what was seen of a map; there must be something."""
        found = {key[-2:]: block for key, block in self._blocks.items() if key[:-2] == map_id}
        first_row, first_column = (min(key[axis] for key in found) for axis in (0, 1))
        rows, columns = (max(key[axis] for key in found) + 1 for axis in (0, 1))
        shape = ((rows - first_row) * BLOCK_SIDE, (columns - first_column) * BLOCK_SIDE)
        colours = np.zeros(shape, np.uint32)
        seen = np.zeros(shape, np.bool_)
        for (row, column), block in found.items():
            top = (row - first_row) * BLOCK_SIDE
            left = (column - first_column) * BLOCK_SIDE
            inside = (slice(top, top + BLOCK_SIDE), slice(left, left + BLOCK_SIDE))
            colours[inside] = block.colours
            seen[inside] = block.votes > 0
        rows_seen, columns_seen = np.nonzero(seen)
        top, bottom = _ends(rows_seen)
        left, right = _ends(columns_seen)
        part = colours[top:bottom, left:right]
        pixels = np.stack([part >> shift & 255 for shift in (16, 8, 0)], axis=-1)
        return MapPicture(
            first_column * BLOCK_SIDE + left,
            first_row * BLOCK_SIDE + top,
            pixels.astype(np.uint8),
            seen[top:bottom, left:right],
        )


def _ends(indices: NDArray[np.int64]) -> tuple[int, int]:
    """Return the first index, and the one after the last."""
    return int(indices.min()), int(indices.max()) + 1


class ScreenCollector(EpisodeTracker):
    """Adds the screens of an env to a map of screens: one for each different place of the player.

    The env must draw the last frame of each timestep.

    Args:
        joined: what they are added to.
    """

    def __init__(self, parts: EnvParts, shown: PlaceScreen, joined: ScreenMap) -> None:
        names = parts.game.definition.place
        assert names is not None
        self.variables = {*names, *(name for _, name in shown.references())}
        self._place_of: Callable[[Values], Place] = itemgetter(*names)
        self._emulator = parts.emulator
        self._shown = shown
        self._joined = joined

    def step(self, episode: RunningEpisode) -> None:
        place = self._place_of(episode.values)
        if place in self._joined.places:
            return
        at = self._shown.shown_at(place, episode.values)
        if at is None:
            return
        self._joined.places.add(place)
        crop = self._shown.crop
        screen = self._emulator.screen()
        part = screen[crop.top : crop.top + crop.height, crop.left : crop.left + crop.width]
        self._joined.add(tuple(map(int, place[:-2])), *at, part)


def screen_collector(joined: ScreenMap) -> TrackerMaker:
    """Return a maker of trackers that add to a map; of none if the game has no `place_screen`."""

    def make(parts: EnvParts) -> ScreenCollector | None:
        shown = parts.game.definition.place_screen
        return None if shown is None else ScreenCollector(parts, shown, joined)

    return make


def read_screen_map(file: Path) -> ScreenMap:
    """Return the map in a `place_screens.npz`; an empty one if there is none, or it is damaged.

    Of a damaged one nothing is lost: it is made anew from logged episodes or kept states.
    """
    try:
        return ScreenMap.from_bytes(file.read_bytes())
    except (OSError, ValueError):
        return ScreenMap()


def screen_map_json(file: Path) -> dict[str, Any]:
    """Return the maps in a file for the page; none if there is no file, or it is damaged."""
    try:
        changed_ns = file.stat().st_mtime_ns
    except OSError:
        changed_ns = 0
    return _screen_map_json(file, changed_ns)


@lru_cache(maxsize=4)
def _screen_map_json(file: Path, changed_ns: int) -> dict[str, Any]:
    joined = read_screen_map(file)
    maps = []
    for map_id in joined.maps():
        picture = joined.picture(map_id)
        alpha = np.where(picture.seen, 255, 0).astype(np.uint8)[..., None]
        png = io.BytesIO()
        Image.fromarray(np.concatenate((picture.pixels, alpha), axis=-1)).save(png, "PNG")
        text = base64.b64encode(png.getvalue()).decode()
        maps.append({"map": list(map_id), "x": picture.x, "y": picture.y, "png": text})
    found = {"pixels": joined.pixels, "names": joined.names, "maps": maps}
    return {**found, "version": f"{changed_ns}"}
