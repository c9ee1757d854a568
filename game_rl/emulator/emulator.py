"""The interface between environments and an emulator."""

from collections.abc import Iterable
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Button = Literal["a", "b", "start", "select", "up", "down", "left", "right"]
BUTTONS: tuple[Button, ...] = ("a", "b", "start", "select", "up", "down", "left", "right")

SCREEN_HEIGHT = 144
SCREEN_WIDTH = 160
FRAMES_PER_SECOND = 59.7275  # 4,194,304 Hz / 70,224 clocks a frame (Pan Docs, "Rendering")


class Emulator(Protocol):
    """One Game Boy with one cartridge; not thread-safe, never pickled."""

    @property
    def is_colour(self) -> bool:
        """True for a Game Boy Color screen, False for four shades."""
        ...

    def hold(self, buttons: Iterable[Button]) -> None:
        """Hold exactly these buttons from the next frame on; release all others."""
        ...

    def tick(self, frames: int, *, render: bool) -> None:
        """Run `frames` >= 1 frames; `render` draws the last one only.

        Raises:
            LockUpError: the game has locked up the CPU; only `load_state` can continue from there.
        """
        ...

    def screen(self) -> NDArray[np.uint8]:
        """Return a view of the last rendered picture, uint8 [144, 160, 3] RGB.

        The next tick overwrites it.

        Four-shade games have R = G = B in {255, 170, 85, 0}.
        """
        ...

    def read(self, address: int, *, bank: int | None = None) -> int:
        """Return one byte of memory, 0..255, or 0..15 where it has four bits (the RAM of MBC2)."""
        ...

    def write(self, address: int, value: int, *, bank: int | None = None) -> None: ...

    def save_state(self) -> bytes: ...

    def load_state(self, state: bytes) -> None:
        """Continue from `state`; no button is held afterwards.

        Raises:
            EmulatorError: the state is damaged, or was saved with another emulator version, ROM or
                hardware.
        """
        ...

    def close(self) -> None:
        """Free the emulator; writes nothing to disk. May be called twice."""
        ...
