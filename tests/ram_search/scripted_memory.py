"""An emulator whose memory follows a rule in Python, for tests of searches."""

from collections.abc import Callable, Collection, Sequence

import numpy as np

from game_rl.emulator.ram import Ram, RamRegion

FIRST = 0xC000

Rule = Callable[[bytearray, frozenset[str], int], None]
"""Changes memory in a frame: memory, the buttons that are held, and the number of the frame."""


class ScriptedMemory:
    """As many of `Emulator`'s methods as a search calls; the picture is a part of memory."""

    is_colour = True

    def __init__(
        self,
        start: Sequence[int],
        rule: Rule,
        *,
        drawn: Sequence[int] = (),
        sprites: bytes = bytes(160),
    ) -> None:
        self.memory = bytearray(start)
        self.sprites_at = sprites
        self._rule = rule
        self._drawn = drawn
        self._frame = 0
        self._held: frozenset[str] = frozenset()
        self._screen = np.zeros(max(1, len(drawn)), np.uint8)

    @property
    def ram(self) -> Ram:
        return Ram((RamRegion(FIRST, FIRST + len(self.memory), None),))

    def hold(self, buttons: Collection[str]) -> None:
        self._held = frozenset(buttons)

    def tick(self, frames: int, *, render: bool) -> None:
        for _ in range(frames):
            self._rule(self.memory, self._held, self._frame)
            self._frame += 1
        if render:
            self._screen = np.array([self.memory[i] for i in self._drawn] or [0], np.uint8)

    def screen(self) -> np.ndarray:
        return self._screen

    def read(self, address: int, *, bank: int | None = None) -> int:  # noqa: ARG002
        return self.memory[address - FIRST]

    def read_range(self, start: int, end: int, *, bank: int | None = None) -> bytes:  # noqa: ARG002
        if start == 0xFE00:
            return self.sprites_at
        assert FIRST <= start <= end <= FIRST + len(self.memory)
        return bytes(self.memory[start - FIRST : end - FIRST])

    def write(self, address: int, value: int, *, bank: int | None = None) -> None:  # noqa: ARG002
        self.memory[address - FIRST] = value

    def save_state(self) -> bytes:
        return self._frame.to_bytes(4, "little") + bytes(self.memory)

    def load_state(self, state: bytes) -> None:
        self._frame = int.from_bytes(state[:4], "little")
        self.memory[:] = state[4:]
        self._held = frozenset()
