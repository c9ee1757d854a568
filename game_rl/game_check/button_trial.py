"""What each button alone does from one moment: how memory and the screen go on, against idling."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.emulator import Button, Emulator
from game_rl.errors import LockUpError

DIRECTIONS: tuple[tuple[Button, Button], ...] = (("left", "right"), ("up", "down"))
"""Buttons that are opposites of each other."""

TRIED: tuple[Button, ...] = ("left", "right", "up", "down", "a", "b")

WORK_RAM = range(0xC000, 0xE000)
"""Of which a colour game may have mapped another bank later."""

_HIGH_RAM = range(0xFF80, 0xFFFF)

ADDRESSES = np.array((*WORK_RAM, *_HIGH_RAM))
"""int64 [n_bytes], the addresses of the bytes that `read_memory` returns."""

_FRAMES = 48
FRAMES_A_SAMPLE = 2
_LOOK_FRAMES = (24, 24)
_SAMPLES = _FRAMES // FRAMES_A_SAMPLE
_LARGEST_STEP = 24  # of a position between two samples; what jumps further is something else
SMOOTH_STEPS = 10
"""Steps of what moves as things on the screen do; a cursor moves every 6 frames at most."""

_LEAST_STEPS = 2  # from the middle of five lanes there are no more
USUAL_STACK = range(0xDF00, 0xE000)
"""Where bytes of the stack are rather than variables."""

_SPRITE_ATTRIBUTES = (0xFE00, 0xFEA0)
_LEAST_COPIED = 0.9  # the copy of a frame may be one ahead


@dataclass(frozen=True)
class MovingByte:
    """A byte that goes one way with a button, and the other way, or nowhere, with its opposite.

    Attributes:
        address: where it is, in memory as it was mapped then.
        buttons: the two opposites.
        steps: how many steps it goes before another one.
        delay: samples until a button has an effect on it.
        is_two_way: whether both buttons change it, each in its direction.
    """

    address: int
    buttons: tuple[Button, Button]
    steps: int
    delay: int
    is_two_way: bool

    @property
    def is_smooth(self) -> bool:
        """Whether it moves as things on the screen do, and not in steps as a cursor does."""
        return self.steps >= SMOOTH_STEPS


@dataclass(frozen=True)
class ButtonTrial:
    """What some buttons lead to, each held from the same moment on.

    Attributes:
        memory: by button, or None for none, uint8 [n_samples, n_bytes] of what is at `ADDRESSES`.
        screens: by button, a digest of the screen at each sample.
        copies: bool [n_bytes], the bytes that are copies of the sprites' attributes, in the order
            in which the sprites are drawn.
    """

    memory: Mapping[Button | None, NDArray[np.uint8]]
    screens: Mapping[Button | None, tuple[bytes, ...]]
    copies: NDArray[np.bool_]

    def changes_screen(self, button: Button) -> bool:
        return self.screens[button] != self.screens[None]

    @cached_property
    def n_directions(self) -> int:
        """How many different things the four directions do to the screen, besides nothing."""
        directions = [self.screens[button] for pair in DIRECTIONS for button in pair]
        return len(set(directions) - {self.screens[None]})

    @cached_property
    def changed(self) -> frozenset[int]:
        """Addresses that a direction changes for a while, against idling."""
        found: set[int] = set()
        for button in (button for pair in DIRECTIONS for button in pair):
            differs = (self.memory[button] != self.memory[None]).sum(axis=0) > _SAMPLES // 4
            found.update(ADDRESSES[differs].tolist())
        return frozenset(found)

    @cached_property
    def moving(self) -> tuple[MovingByte, ...]:
        """The bytes that move with a pair of buttons which the screen shows, the likeliest first.

        Bytes that both buttons move come first, as the others may count steps. Of these, what
        obeys soonest is the player's own, and not what follows it.
        """
        found = [byte for pair in DIRECTIONS for byte in self._moving_with(pair)]
        return tuple(sorted(found, key=_unlikelihood))

    @property
    def is_smooth(self) -> bool:
        return any(byte.is_smooth for byte in self.moving)

    def _moving_with(self, pair: tuple[Button, Button]) -> Iterator[MovingByte]:
        if not self._is_shown(pair):
            return
        one, other = (self.memory[button] for button in pair)
        for moves in moves_apart(self.memory[None], one, other):
            for index in np.flatnonzero((moves.is_two_way | moves.is_one_way) & ~self.copies):
                yield MovingByte(
                    address=int(ADDRESSES[index]),
                    buttons=pair,
                    steps=int(moves.steps[index]),
                    delay=int(moves.delays[index]),
                    is_two_way=bool(moves.is_two_way[index]),
                )

    def _is_shown(self, pair: tuple[Button, Button]) -> bool:
        one, other = (self.screens[button] for button in pair)
        return one != other and (self.changes_screen(pair[0]) or self.changes_screen(pair[1]))


@dataclass(frozen=True)
class Moves:
    """How bytes go while one button is held, and while its opposite is.

    Attributes:
        is_two_way: bool [n_bytes], whether they go one way with the first, and back with the other.
        is_one_way: bool [n_bytes], whether they go with one of them, and rest with the other.
        steps: int64 [n_bytes], how many steps they go before another one.
        delays: int64 [n_bytes], samples until a button has an effect; that of all if none has.
    """

    is_two_way: NDArray[np.bool_]
    is_one_way: NDArray[np.bool_]
    steps: NDArray[np.int64]
    delays: NDArray[np.int64]


def moves_apart(
    idle: NDArray[np.uint8], one: NDArray[np.uint8], other: NDArray[np.uint8]
) -> tuple[Moves, Moves]:
    """Return the bytes that rise with the first button, and those that fall with it.

    Args:
        idle, one, other: uint8 [n_samples, n_bytes], memory from the same moment on without a
            button, with one and with its opposite. What goes the same way without is not moved.
    """
    still, *both = (_steps(memory) for memory in (idle, one, other))
    first, second = both
    differs = (first != still) | (second != still)
    delays = np.where(differs.any(axis=0), differs.argmax(axis=0), len(differs)).astype(np.int64)
    found = []
    for sign in (1, -1):
        forward = _rises(first * sign) * (first != still).any(axis=0)
        back = _rises(-second * sign) * (second != still).any(axis=0)
        found.append(
            Moves(
                is_two_way=np.minimum(forward, back) >= _LEAST_STEPS,
                is_one_way=forward * _stays(second) + back * _stays(first) >= _LEAST_STEPS,
                steps=np.maximum(forward, back),
                delays=delays,
            )
        )
    rises, falls = found
    return rises, falls


def _unlikelihood(byte: MovingByte) -> tuple[bool, bool, bool, int, int]:
    is_of_stack = byte.address in USUAL_STACK
    return not byte.is_two_way, is_of_stack, not byte.is_smooth, byte.delay, -byte.steps


def _steps(memory: NDArray[np.uint8]) -> NDArray[np.int16]:
    """Return by how much each byte changes from sample to sample, by the shorter way round."""
    return np.diff(memory.astype(np.int16), axis=0).astype(np.int8).astype(np.int16)


def _rises(steps: NDArray[np.int16]) -> NDArray[np.int64]:
    """Return how many steps of each byte are small ones up, before the first other one.

    A wall or an opponent may throw the player back later.
    """
    is_small = (steps >= 0) & (steps <= _LARGEST_STEP)
    is_before = np.logical_and.accumulate(is_small, axis=0)
    counts: NDArray[np.int64] = ((steps > 0) & is_before).sum(axis=0, dtype=np.int64)
    return counts


def _stays(steps: NDArray[np.int16]) -> NDArray[np.bool_]:
    stays: NDArray[np.bool_] = (steps == 0).all(axis=0)
    return stays


def try_buttons(emulator: Emulator, state: bytes, buttons: Sequence[Button] = TRIED) -> ButtonTrial:
    """Hold each of the buttons for 48 frames from the state on, and none.

    Raises:
        LockUpError: the game locks up meanwhile.
    """
    memory: dict[Button | None, NDArray[np.uint8]] = {}
    screens: dict[Button | None, tuple[bytes, ...]] = {}
    for button in (None, *buttons):
        emulator.load_state(state)
        emulator.hold(() if button is None else (button,))
        of_memory = []
        of_screens = []
        for _ in range(_SAMPLES):
            emulator.tick(FRAMES_A_SAMPLE, render=True)
            of_memory.append(read_memory(emulator))
            of_screens.append(screen_digest(emulator))
        memory[button] = np.array(of_memory)
        screens[button] = tuple(of_screens)
    return ButtonTrial(memory, screens, _copies_of_sprites(emulator, of_memory[-1]))


def _copies_of_sprites(emulator: Emulator, memory: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which bytes are in a page that the game copies to the sprites' attributes."""
    attributes = np.frombuffer(emulator.read_range(*_SPRITE_ATTRIBUTES), np.uint8)
    found = np.zeros(len(ADDRESSES), np.bool_)
    for start in range(0, len(WORK_RAM), 0x100):
        page = slice(start, start + len(attributes))
        if np.mean(memory[page] == attributes) >= _LEAST_COPIED and attributes.any():
            found[page] = True
    return found


def answers(emulator: Emulator, state: bytes) -> bool:
    """Whether a direction leads to another screen than nothing does."""
    courses = []
    for held in ((), *((button,) for pair in DIRECTIONS for button in pair)):
        emulator.load_state(state)
        emulator.hold(held)
        course = []
        try:
            for frames in _LOOK_FRAMES:
                emulator.tick(frames, render=True)
                course.append(screen_digest(emulator))
        except LockUpError:
            course.append(b"locked up")
        courses.append(tuple(course))
    return len(set(courses)) > 1


def read_memory(emulator: Emulator) -> NDArray[np.uint8]:
    """Return a copy of work RAM and high RAM, uint8 [n_bytes]."""
    parts = [emulator.read_range(each.start, each.stop) for each in (WORK_RAM, _HIGH_RAM)]
    return np.frombuffer(b"".join(parts), np.uint8)


def screen_digest(emulator: Emulator) -> bytes:
    """Return what tells the rendered screen from others."""
    screen = emulator.screen()
    shown = screen if emulator.is_colour else screen[:, :, 0]
    return blake2b(shown.tobytes(), digest_size=16).digest()
