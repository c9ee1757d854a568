"""The maps of a game, joined from screens that agents saw, each place once."""

import base64
import io
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self, TypeVar

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
_SHIFTS = (16, 8, 0)  # of red, green and blue
_Key = tuple[int, ...]  # the map's variables, then row and column of the block
_Number = TypeVar("_Number", np.uint8, np.uint32)


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
        shrink: pixels of the map on each side of one of these.
    """

    x: int
    y: int
    pixels: NDArray[np.uint8]
    seen: NDArray[np.bool_]
    shrink: int = 1


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

    def shrunk(self, shrink: int) -> "_Block":
        """Return the block with the mean colours of `shrink` x `shrink` pixels in one."""
        side = BLOCK_SIDE // shrink
        squares = (side, shrink, side, shrink)
        seen = self.votes > 0
        n_seen = seen.reshape(squares).sum(axis=(1, 3), dtype=np.uint32)
        found = _Block()
        found.votes = n_seen.clip(max=1).astype(np.uint8)
        found.colours = np.zeros((side, side), np.uint32)
        for shift in _SHIFTS:
            channel = np.where(seen, self.colours >> shift & 255, 0).reshape(squares)
            found.colours |= channel.sum(axis=(1, 3), dtype=np.uint32) // n_seen.clip(1) << shift
        return found


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
        shrink: pixels of the maps on each side of one that is kept; screens can be added if it
            is 1.
    """

    def __init__(self) -> None:
        self.shrink = 1
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
        return cls.read(io.BytesIO(content))

    @classmethod
    def read(cls, file: BinaryIO | Path, *, most_blocks: int | None = None) -> Self:
        """Return the map in a file that has what `to_bytes` returned.

        Args:
            most_blocks: if the pictures of all maps have more pixels than so many blocks, several
                are one. The file is read block by block, so that it takes no more memory.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is no such file, or is damaged.
        """
        parts = cls.read_each(file, most_blocks=most_blocks)
        found = next(parts)
        for part in parts:
            found._blocks.update(part._blocks)
        return found

    @classmethod
    def read_each(cls, file: BinaryIO | Path, *, most_blocks: int | None = None) -> Iterator[Self]:
        """Yield what `read` returns in parts: first without any map, then each map alone.

        Raises:
            OSError, ValueError: as `read`.
        """
        try:
            with zipfile.ZipFile(file) as archive:
                yield from cls._of_archive(archive, most_blocks)
        except (KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"it is not a file of a map's screens ({error})") from None
        except ValidationError as error:
            raise ValueError(f"its description is damaged ({error.error_count()} faults)") from None

    @classmethod
    def _of_archive(cls, archive: zipfile.ZipFile, most_blocks: int | None) -> Iterator[Self]:
        keys, text = (_array(archive, name) for name in (_KEYS, _ABOUT))
        about = _About.model_validate_json(text.tobytes())
        shape = (len(keys), about.n_map_variables + 2)
        if keys.dtype != np.int64 or keys.shape != shape or len(keys) > MOST_BLOCKS:
            raise ValueError("its arrays have the wrong shape or type")
        tuples = [tuple(key) for key in keys.tolist()]
        n_blocks = sum(height * width for height, width in _sizes(tuples))
        shrink = 1
        while most_blocks and n_blocks > most_blocks * shrink**2 < n_blocks * BLOCK_SIDE**2:
            shrink *= 2
        yield cls._part(about, shrink)
        colours = _blocks(archive, _COLOURS, np.uint32, len(keys))
        votes = _blocks(archive, _VOTES, np.uint8, len(keys))
        blocks = zip(tuples, colours, votes, strict=True)
        for _, own in groupby(blocks, key=lambda each: each[0][:-2]):
            found = cls._part(about, shrink)
            for key, own_colours, own_votes in own:
                if not own_votes.any():
                    raise ValueError("it has empty blocks")
                block = _Block()
                block.colours = own_colours
                block.votes = own_votes
                found._blocks[key] = block if shrink == 1 else block.shrunk(shrink)
            yield found

    @classmethod
    def _part(cls, about: _About, shrink: int) -> Self:
        found = cls()
        found.episode = about.episode
        found.pixels = about.pixels
        found.names = about.names
        found.shrink = shrink
        return found

    def picture(self, map_id: MapId) -> MapPicture:
        """Return what was seen of a map; there must be something."""
        found = {key[-2:]: block for key, block in self._blocks.items() if key[:-2] == map_id}
        first_row, first_column = (min(key[axis] for key in found) for axis in (0, 1))
        ((n_rows, n_columns),) = _sizes(found)
        side = BLOCK_SIDE // self.shrink
        colours = np.zeros((n_rows * side, n_columns * side), np.uint32)
        seen = np.zeros(colours.shape, np.bool_)
        for (row, column), block in found.items():
            top = (row - first_row) * side
            left = (column - first_column) * side
            inside = (slice(top, top + side), slice(left, left + side))
            colours[inside] = block.colours
            seen[inside] = block.votes > 0
        top, bottom = _ends(seen)
        left, right = _ends(seen.T)
        part = colours[top:bottom, left:right]
        pixels = np.empty((*part.shape, 3), np.uint8)
        for channel, shift in enumerate(_SHIFTS):
            pixels[..., channel] = part >> shift & 255
        return MapPicture(
            first_column * BLOCK_SIDE + left * self.shrink,
            first_row * BLOCK_SIDE + top * self.shrink,
            pixels,
            seen[top:bottom, left:right],
            self.shrink,
        )


def _sizes(keys: Iterable[_Key]) -> Iterator[tuple[int, int]]:
    """Yield the rows and columns of blocks of each map."""
    by_map: dict[_Key, list[_Key]] = {}
    for key in keys:
        by_map.setdefault(key[:-2], []).append(key[-2:])
    for own in by_map.values():
        rows, columns = zip(*own, strict=True)
        yield max(rows) - min(rows) + 1, max(columns) - min(columns) + 1


def _array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as file:
        found: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return found


def _blocks(
    archive: zipfile.ZipFile, name: str, kind: type[_Number], n: int
) -> Iterator[NDArray[_Number]]:
    """Yield the arrays of `n` blocks, one after the other.

    Raises:
        ValueError: the file has arrays of another shape or type.
    """
    with archive.open(f"{name}.npy") as file:
        np.lib.format.read_magic(file)
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
        if shape != (n, BLOCK_SIDE, BLOCK_SIDE) or is_fortran or dtype != kind:
            raise ValueError("its arrays have the wrong shape or type")
        for _ in range(n):
            content = bytearray(file.read(BLOCK_SIDE**2 * dtype.itemsize))
            yield np.frombuffer(content, kind).reshape(BLOCK_SIDE, BLOCK_SIDE)


def _ends(seen: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the first row in which something was seen, and the one after the last."""
    (indices,) = np.nonzero(np.any(seen, axis=1))
    return int(indices[0]), int(indices[-1]) + 1


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


def read_screen_map(file: Path, *, most_blocks: int | None = None) -> ScreenMap:
    """Return the map in a `place_screens.npz`; an empty one if there is none, or it is damaged.

    Of a damaged one nothing is lost: it is made anew from logged episodes or kept states.

    Args:
        most_blocks: as in `ScreenMap.read`.
    """
    try:
        return ScreenMap.read(file, most_blocks=most_blocks)
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
    joined = ScreenMap()
    maps: list[dict[str, Any]] = []
    try:
        for joined in ScreenMap.read_each(file):
            maps += [_map_json(map_id, joined.picture(map_id)) for map_id in joined.maps()]
    except (OSError, ValueError):
        joined = ScreenMap()
        maps = []
    found = {"pixels": joined.pixels, "names": joined.names, "maps": maps}
    return {**found, "version": f"{changed_ns}"}


def _map_json(map_id: MapId, picture: MapPicture) -> dict[str, Any]:
    alpha = np.where(picture.seen, 255, 0).astype(np.uint8)[..., None]
    png = io.BytesIO()
    Image.fromarray(np.concatenate((picture.pixels, alpha), axis=-1)).save(png, "PNG")
    text = base64.b64encode(png.getvalue()).decode()
    return {"map": list(map_id), "x": picture.x, "y": picture.y, "png": text}
