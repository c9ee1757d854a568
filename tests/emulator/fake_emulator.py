"""A tiny artificial game behind the `Emulator` protocol, for fast tests without a ROM.

The player starts at x = 80. Right and left move one pixel a frame; every eighth frame with B held
costs one of 8 health points. Reaching x = 150 wins (result 1), and losing all health loses (result
2). After that nothing moves. Holding START for a frame goes to the next level (1 to 3, then 1
again) and starts over.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.emulator import (
    BUTTONS,
    MAP_SIDE,
    N_TILES,
    SCREEN_HEIGHT,
    SCREEN_WIDTH,
    Button,
    Press,
    SpriteTile,
    TileArea,
    play_presses,
)
from game_rl.emulator.saved_state import pack_state, unpack_state
from game_rl.errors import EmulatorError

FRAME_COUNT, HELD, X, HEALTH, RESULT, SEED, LEVEL = (
    0xC000,
    0xC002,
    0xC003,
    0xC004,
    0xC005,
    0xC006,
    0xC007,
)
FAKE_ROM_SHA256 = "fa" * 32
_START_X, _WINNING_X, _FULL_HEALTH, _N_LEVELS = 80, 150, 8, 3
_STATE_BYTES = 64


class FakeEmulator:
    """A deterministic game at the addresses above; the frame count is u16, little endian."""

    def __init__(self, *, colour: bool = False) -> None:
        self._is_colour = colour
        self._memory = bytearray(0x10000)
        self._wanted: frozenset[Button] = frozenset()
        self._screen = np.zeros((SCREEN_HEIGHT, SCREEN_WIDTH, 3), np.uint8)
        self._closed = False
        self._begin_level(1)

    @property
    def is_colour(self) -> bool:
        return self._is_colour

    def hold(self, buttons: Iterable[Button]) -> None:
        self._wanted = frozenset(buttons)

    def tick(self, frames: int, *, render: bool) -> None:
        self._check_open()
        if frames < 1:
            raise EmulatorError(f"tick needs at least 1 frame, got {frames}")
        for _ in range(frames):
            self._advance()
        if render:
            self._draw()

    def play(self, presses: Sequence[Press], *, render: bool) -> None:
        play_presses(self, presses, render=render)

    def screen(self) -> NDArray[np.uint8]:
        return self._screen

    def read(self, address: int, *, bank: int | None = None) -> int:  # noqa: ARG002
        self._check_open()
        return self._memory[address]

    def read_range(self, start: int, end: int, *, bank: int | None = None) -> bytes:  # noqa: ARG002
        self._check_open()
        return bytes(self._memory[start:end])

    def write(self, address: int, value: int, *, bank: int | None = None) -> None:  # noqa: ARG002
        self._check_open()
        self._memory[address] = value

    def tiles(self, area: TileArea, *, follow_scroll: bool) -> NDArray[np.int16]:
        """Tile c + r * level + seed, modulo 384, at column c and row r; scrolled by x pixels."""
        self._check_open()
        memory = self._memory
        first = memory[X] // 8 if follow_scroll else 0
        columns = (np.arange(area.x, area.x + area.width) + first) % MAP_SIDE
        rows = np.arange(area.y, area.y + area.height)[:, None] % MAP_SIDE
        return ((columns + rows * memory[LEVEL] + memory[SEED]) % N_TILES).astype(np.int16)

    def sprites(self) -> list[SpriteTile]:
        """The player, of two tiles, and a bar that is at the top by health."""
        self._check_open()
        x, health = self._memory[X], self._memory[HEALTH]
        return [SpriteTile(x, 100, 200), SpriteTile(x, 108, 201), SpriteTile(16 * health, 0, 202)]

    def save_state(self, *, picture: bool = True) -> bytes:
        self._check_open()
        drawn = self._screen.tobytes() if picture else bytes(self._screen.nbytes)
        raw = bytes(self._memory[0xC000 : 0xC000 + _STATE_BYTES]) + drawn
        return pack_state(raw, rom_sha256=FAKE_ROM_SHA256, is_colour=self._is_colour)

    def load_state(self, state: bytes) -> None:
        self._check_open()
        raw = unpack_state(state, rom_sha256=FAKE_ROM_SHA256, is_colour=self._is_colour)
        self._memory[0xC000 : 0xC000 + _STATE_BYTES] = raw[:_STATE_BYTES]
        picture = np.frombuffer(raw, np.uint8, offset=_STATE_BYTES)
        self._screen[:] = picture.reshape(self._screen.shape)
        self._wanted = frozenset()

    def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise EmulatorError("the emulator is closed; make a new one")

    def _begin_level(self, level: int) -> None:
        memory = self._memory
        memory[X], memory[HEALTH], memory[RESULT] = _START_X, _FULL_HEALTH, 0
        memory[LEVEL] = level

    def _advance(self) -> None:
        memory, held = self._memory, self._wanted
        count = (memory[FRAME_COUNT] | memory[FRAME_COUNT + 1] << 8) + 1 & 0xFFFF
        memory[FRAME_COUNT], memory[FRAME_COUNT + 1] = count & 0xFF, count >> 8
        memory[HELD] = sum(1 << i for i, button in enumerate(BUTTONS) if button in held)
        if "start" in held:
            self._begin_level(memory[LEVEL] % _N_LEVELS + 1)
        elif memory[RESULT] == 0:
            memory[X] = max(0, memory[X] + ("right" in held) - ("left" in held))
            memory[HEALTH] -= "b" in held and count % 8 == 0
            memory[RESULT] = 1 if memory[X] >= _WINNING_X else 2 if memory[HEALTH] == 0 else 0

    def _draw(self) -> None:
        """Draw stripes by level and seed, a black player, and health as the top rows' shade."""
        memory = self._memory
        columns = np.arange(SCREEN_WIDTH, dtype=np.int64)
        rows = np.arange(SCREEN_HEIGHT, dtype=np.int64)[:, None]
        shades = (columns // 8 + rows // memory[LEVEL] + memory[SEED]) % 4
        shades[:8] = memory[HEALTH] % 4
        shades[100:116, memory[X] : memory[X] + 8] = 3
        picture = (255 - 85 * shades).astype(np.uint8)
        self._screen[:] = picture[:, :, None]
        if self._is_colour:
            self._screen &= 0xF8  # five bits a channel, and three different channels
            self._screen[:, :, 1] //= 2
            self._screen[:, :, 2] = 248 - self._screen[:, :, 2]
