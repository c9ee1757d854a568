"""The interface between environments and an emulator, and a wrapper that keeps its pictures."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Button = Literal["a", "b", "start", "select", "up", "down", "left", "right"]
BUTTONS: tuple[Button, ...] = ("a", "b", "start", "select", "up", "down", "left", "right")

SCREEN_HEIGHT = 144
SCREEN_WIDTH = 160
FRAMES_PER_SECOND = 59.7275  # 4,194,304 Hz / 70,224 clocks a frame (Pan Docs, "Rendering")


TILE_SIDE = 8  # pixels
MAP_SIDE = 32  # tiles of the background's map on each side
N_TILES = 384  # tiles in a bank of video RAM


class TileArea(NamedTuple):
    """A rectangle of tiles."""

    x: int
    y: int
    width: int
    height: int


class SpriteTile(NamedTuple):
    """A tile that a sprite shows, with the pixel of its top left corner on the screen."""

    x: int
    y: int
    tile: int


class Press(NamedTuple):
    """Buttons that are held for some frames, all others being released."""

    buttons: frozenset[Button]
    frames: int


class Emulator(Protocol):
    """One Game Boy with one cartridge; not thread-safe, never pickled."""

    @property
    def is_colour(self) -> bool:
        """True for a Game Boy Color screen, False for four shades."""

    def hold(self, buttons: Iterable[Button]) -> None:
        """Hold exactly these buttons from the next frame on; release all others."""

    def tick(self, frames: int, *, render: bool) -> None:
        """Run `frames` >= 1 frames; `render` draws the last one only.

        Raises:
            LockUpError: the game has locked up the CPU; only `load_state` can continue from there.
        """

    def play(self, presses: Sequence[Press], *, render: bool) -> None:
        """Run one or more presses in turn; `render` draws the last frame of all only.

        Raises:
            LockUpError: as `tick` does.
        """

    def screen(self) -> NDArray[np.uint8]:
        """Return a view of the last rendered picture, uint8 [144, 160, 3] RGB.

        The next tick overwrites it.

        Four-shade games have R = G = B in {255, 170, 85, 0}.
        """

    def read(self, address: int, *, bank: int | None = None) -> int:
        """Return one byte of memory, 0..255, or 0..15 where it has four bits (the RAM of MBC2)."""

    def read_range(self, start: int, end: int, *, bank: int | None = None) -> bytes:
        """Return the bytes from `start` up to but not including `end`, each as `read` has it.

        With a bank, all of them are in memory that has banks.
        """

    def write(self, address: int, value: int, *, bank: int | None = None) -> None: ...

    def tiles(self, area: TileArea, *, follow_scroll: bool) -> NDArray[np.int16]:
        """Return the ids of tiles of the background, a new array [height, width].

        An id is 0 to 127 for tile data from 0x8000 on, 128 to 255 from 0x8800 and 256 to 383 from
        0x9000, however the game numbers them, and 384 more in video RAM's bank 1.

        Args:
            area: in tiles of the screen if it follows the scrolling, else of the background's map.
            follow_scroll: whether the area is where it was on the screen in the last frame, each
                row of tiles by the scrolling at its first line.
        """

    def sprites(self) -> list[SpriteTile]:
        """Return the tiles of the sprites on the screen, in the order of the sprites' numbers.

        A sprite of 8 x 16 pixels has two. Nothing has to be drawn for this, or for `tiles`.
        """

    def save_state(self, *, picture: bool = True) -> bytes:
        """Return a state for `load_state`.

        Args:
            picture: whether the last rendered picture is in it. Without, the state is the same
                whatever was rendered, and its picture is black.
        """

    def load_state(self, state: bytes) -> None:
        """Continue from `state`; no button is held afterwards.

        Raises:
            EmulatorError: the state is damaged, or was saved with another emulator version, ROM or
                hardware.
        """

    def close(self) -> None:
        """Free the emulator; writes nothing to disk. May be called twice."""


def play_presses(emulator: Emulator, presses: Sequence[Press], *, render: bool) -> None:
    """Carry out `Emulator.play` by means of `hold` and `tick`."""
    *others, last = presses
    for buttons, frames in others:
        emulator.hold(buttons)
        emulator.tick(frames, render=False)
    emulator.hold(last.buttons)
    emulator.tick(last.frames, render=render)


_LONGEST_PICTURE_FRAMES = 4  # 15 pictures a second look smooth, and a GIF of a fight stays small


def picture_frames(frame_skip: int) -> int:
    """Return the frames between two pictures of a clip, a divisor of `frame_skip`."""
    return max(n for n in range(1, _LONGEST_PICTURE_FRAMES + 1) if frame_skip % n == 0)


class RecordingEmulator:
    """A wrapper that owns `emulator` and keeps a picture every `picture_frames` frames.

    It divides ticks and presses into parts, which does not change the emulation. Rendered ticks
    that are shorter than `picture_frames` add up to a picture. For all else it is `emulator`.
    """

    def __init__(self, emulator: Emulator, *, picture_frames: int) -> None:
        self._emulator = emulator
        self._picture_frames = picture_frames
        self._pictures: list[NDArray[np.uint8]] = []
        self._since = 0  # frames of short ticks since a picture

    def take_pictures(self) -> list[NDArray[np.uint8]]:
        """Return the pictures of rendered ticks since the last call, each uint8 [144, 160, 3]."""
        pictures = self._pictures
        self._pictures = []
        return pictures

    def tick(self, frames: int, *, render: bool) -> None:
        if not render:
            self._emulator.tick(frames, render=False)
            return
        if frames < self._picture_frames:
            self._emulator.tick(frames, render=True)
            self._since += frames
            if self._since >= self._picture_frames:
                self._since -= self._picture_frames
                self._pictures.append(self._emulator.screen().copy())
            return
        for done in range(0, frames, self._picture_frames):
            self._emulator.tick(min(self._picture_frames, frames - done), render=True)
            self._pictures.append(self._emulator.screen().copy())

    def play(self, presses: Sequence[Press], *, render: bool) -> None:
        if not render:
            self._emulator.play(presses, render=False)
            return
        done = 0  # frames played, and at the next picture
        until = self._picture_frames
        end = sum(press.frames for press in presses)
        for buttons, frames in presses:
            self._emulator.hold(buttons)
            last = done + frames
            while done < last:
                part = min(until, end, last) - done
                done += part
                is_picture = done in (until, end)
                self._emulator.tick(part, render=is_picture)
                if is_picture:
                    self._pictures.append(self._emulator.screen().copy())
                    until += self._picture_frames

    def __getattr__(self, name: str) -> object:
        return getattr(self._emulator, name)
