"""PyBoy behind the `Emulator` protocol, and the trial of a state that PyBoy itself saved.

No other module of game_rl uses pyboy. Started as a program, this module is the trial's process.

Such a file has no checksum. A flipped bit can put a clock wrong by 2^63 cycles, which PyBoy counts
one by one, or select a bank beyond the cartridge, which it reads without a check. The process then
hangs forever or crashes, so another process plays the state first. This does not detect damage that
the game tolerates or meets only later.
"""

import importlib
import io
import os
import pickle
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.emulator import (
    BUTTONS,
    SCREEN_HEIGHT,
    SCREEN_WIDTH,
    Button,
    Press,
    SpriteTile,
    TileArea,
    play_presses,
)
from game_rl.emulator.older_states import FORMAT_THAT_MISSES_BYTES, completed
from game_rl.emulator.rom import Rom
from game_rl.emulator.saved_state import is_packed, pack_state, unpack_state
from game_rl.emulator.state_speed import why_states_are_slow
from game_rl.emulator.video_memory import MAP_PLACES, sprite_tiles, tile_ids
from game_rl.errors import EmulatorError, LockUpError
from game_rl.system.processes import python_variables

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="Using SDL2 binaries")  # we open no window
    from pyboy import PyBoy
    from pyboy.utils import STATE_VERSION

_FOUR_SHADES = (0xFFFFFF, 0xAAAAAA, 0x555555, 0x000000)  # equal steps: 255 - 85 x shade
_CARTRIDGE_RAM = range(0xA000, 0xC000)
_SPRITE_ATTRIBUTES = range(0xFE00, 0xFEA0)
_LCD_CONTROL = 0xFF40
_BOOT_FRAMES = 8  # the LCD is on after five; the boot code takes longer
_SILENT = 5  # above PyBoy's highest level, as it prints to stdout even at ERROR

# Two float64 in a state with a clock, counted from its end, where the format is this one.
_TIMES_OF_DAY = (slice(-10_450, -10_442), slice(-10_425, -10_417))
_FORMAT_WITH_THESE_TIMES = 29

_BYTES_A_PIXEL = 5  # in a state
_MARK = (np.arange(SCREEN_HEIGHT * SCREEN_WIDTH, dtype="<u4") * 0x9E3779B1 ^ 0xA5C3_5A3C).reshape(
    SCREEN_HEIGHT, SCREEN_WIDTH
)  # a picture that no game draws: hardly two of its pixels are related

_power_on_states: dict[tuple[str, bool], bytes] = {}


def wrapper_mapping(module: str, name: str) -> tuple[int, ...] | None:
    """Return the class of each tile id, as one of PyBoy's game wrappers has them.

    Args:
        module: its module within pyboy.plugins.
        name: the mapping's name there.

    Returns:
        None if the installed PyBoy has no such mapping.
    """
    try:
        found = importlib.import_module(f"pyboy.plugins.{module}")
    except ImportError:
        return None
    mapping = getattr(found, name, None)
    return None if mapping is None else tuple(map(int, mapping))


class PyBoyEmulator:
    """A PyBoy without sound and window, which reads and writes no files.

    `tick` releases the GIL. One instance belongs to one thread.
    """

    def __init__(self, rom: Rom, *, colour: bool) -> None:
        self._rom = rom
        self._is_colour = colour
        self._wanted: frozenset[Button] = frozenset()
        self._held: frozenset[Button] | None = frozenset()  # None: unknown, after load_state
        self._pyboy: PyBoy | None = _power_on(rom, colour=colour)
        self._guard = TickGuard(self._pyboy)
        self._memory = self._pyboy.memory
        self._half_bytes = _CARTRIDGE_RAM if rom.cartridge.has_half_bytes else range(0)
        self._pixels: NDArray[np.uint32] = self._pyboy.screen.ndarray.view("<u4")[:, :, 0]  # RGBA
        self._shades = np.zeros(self._pixels.shape, np.uint8)
        self._screen: NDArray[np.uint8] = self._pyboy.screen.ndarray[:, :, :3]
        if not colour:
            self._screen = np.broadcast_to(self._shades[:, :, None], self._screen.shape)

    @property
    def is_colour(self) -> bool:
        return self._is_colour

    def hold(self, buttons: Iterable[Button]) -> None:
        # The next tick sends the buttons, so PyBoy's event queue, which load_state does not clear,
        # is always empty between ticks.
        self._wanted = frozenset(buttons)

    def tick(self, frames: int, *, render: bool) -> None:
        pyboy = self._running()
        if frames < 1:
            raise EmulatorError(f"tick needs at least 1 frame, got {frames}")
        if self._wanted != self._held:
            self._send_buttons(pyboy)
        guard = self._guard
        guard.n_edges += 1
        pyboy.tick(frames, render, False)
        guard.n_edges += 1
        if guard.lock_up is not None:
            raise LockUpError(
                f"{self._rom.path}: the game has run into {guard.lock_up}, so the console hangs; "
                "if this happens at the start, copy the ROM and save its states again, otherwise "
                "it is a bug of the game: add an `endings` entry that is met before it"
            )

    def play(self, presses: Sequence[Press], *, render: bool) -> None:
        play_presses(self, presses, render=render)

    def screen(self) -> NDArray[np.uint8]:
        if not self._is_colour:
            # All channels of four shades are the same plane, copied once here: cutting off the
            # high bytes takes NumPy 2 us, while copying one channel of RGBA takes 7.
            np.copyto(self._shades, self._pixels, casting="unsafe")
        return self._screen

    def read(self, address: int, *, bank: int | None = None) -> int:
        self._running()
        if bank is None:
            if not 0 <= address <= 0xFFFF:
                raise EmulatorError(f"address 0x{address:X} is outside 0x0000..0xFFFF")
            value: int = self._memory[address]
        else:
            self._check_banked(bank, address)
            value = self._memory[bank, address]
        return value & 0x0F if address in self._half_bytes else value

    def read_range(self, start: int, end: int, *, bank: int | None = None) -> bytes:
        self._running()
        if not 0 <= start < end <= 0x10000:
            raise EmulatorError(f"0x{start:X} to 0x{end:X} is outside 0x0000..0xFFFF, or empty")
        if bank is None:
            found = bytes(self._memory[start:end])
        else:
            self._check_banked(bank, start)
            self._check_banked(bank, end - 1)
            # a slice of a bank cannot have the last byte of its region
            last = end - 1
            most = self._memory[bank, start:last] if start < last else ()
            found = bytes((*most, self._memory[bank, last]))
        if start in self._half_bytes:
            return bytes(byte & 0x0F for byte in found)
        return found

    def write(self, address: int, value: int, *, bank: int | None = None) -> None:
        self._running()
        if not 0 <= value <= 0xFF:
            raise EmulatorError(f"{value} does not fit a byte")
        if address in self._half_bytes:
            value |= 0xF0  # as PyBoy stores what the game writes
        if bank is None:
            if not 0x8000 <= address <= 0xFFFF:
                raise EmulatorError(f"address 0x{address:X} is outside RAM, 0x8000..0xFFFF")
            self._memory[address] = value
        else:
            self._check_banked(bank, address)
            self._memory[bank, address] = value

    def tiles(self, area: TileArea, *, follow_scroll: bool) -> NDArray[np.int16]:
        pyboy = self._running()
        # PyBoy records the scrolling of each line, drawn or not
        scrolling = pyboy.screen.tilemap_position_list if follow_scroll else None
        control: int = self._memory[_LCD_CONTROL]
        start, end = MAP_PLACES[bool(control & 8)]
        if not self._is_colour:
            return tile_ids(self._memory[start:end], control, area, scrolling)
        numbers, attributes = (self._bank_of_map(bank, start, end) for bank in (0, 1))
        return tile_ids(numbers, control, area, scrolling, attributes=attributes)

    def _bank_of_map(self, bank: int, start: int, end: int) -> list[int]:
        # a slice of a bank cannot have the last byte of video RAM
        return [*self._memory[bank, start : end - 1], self._memory[bank, end - 1]]

    def sprites(self) -> list[SpriteTile]:
        self._running()
        attributes = self._memory[_SPRITE_ATTRIBUTES.start : _SPRITE_ATTRIBUTES.stop]
        is_tall = bool(self._memory[_LCD_CONTROL] & 4)
        return sprite_tiles(attributes, is_tall=is_tall, is_colour=self._is_colour)

    def save_state(self, *, picture: bool = True) -> bytes:
        raw = self._raw_state() if picture else self._raw_state_without_picture()
        return pack_state(raw, rom_sha256=self._rom.sha256, is_colour=self._is_colour)

    def load_state(self, state: bytes) -> None:
        """Continue from `state`, which may also be one that PyBoy itself saved for this ROM."""
        self._running()
        if is_packed(state):
            state = unpack_state(state, rom_sha256=self._rom.sha256, is_colour=self._is_colour)
        else:
            _check_version(state)
            try_raw_state(self._rom, state, colour=self._is_colour)
        self.load_raw_state(state)

    def load_raw_state(self, raw: bytes, *, accepts_older: bool = False) -> None:
        """Continue from a state that PyBoy saved for this ROM, which is assumed to be undamaged.

        Args:
            accepts_older: whether it may be of an older format.

        Raises:
            EmulatorError: the state was saved with another version or cartridge. The emulator may
                be closed then.
        """
        pyboy = self._running()
        if not (accepts_older and is_older_state(raw)):
            _check_version(raw)
        elif STATE_VERSION == FORMAT_THAT_MISSES_BYTES:
            raw = completed(raw, colour=self._is_colour)
        try:
            n_read = _states.load(pyboy, raw)
        except Exception as error:
            self.close()  # the emulator is only half restored
            raise EmulatorError(f"PyBoy refused the state ({error}); save it again") from error
        if n_read != len(raw):
            self.close()
            raise EmulatorError("the state was saved with another cartridge; save it with this ROM")
        self._guard.lock_up = None
        self._wanted = frozenset()
        self._held = None

    def close(self) -> None:
        if self._pyboy is not None:
            self._pyboy.stop(save=False)  # the default writes .ram and .rtc files next to the ROM
            self._pyboy = None

    def _running(self) -> PyBoy:
        if self._pyboy is None:
            raise EmulatorError("the emulator is closed; make a new one")
        return self._pyboy

    def _send_buttons(self, pyboy: PyBoy) -> None:
        for button in BUTTONS:
            if button in self._wanted:
                if self._held is None or button not in self._held:
                    pyboy.button_press(button)
            elif self._held is None or button in self._held:
                pyboy.button_release(button)
        self._held = self._wanted

    def _raw_state(self) -> bytes:
        raw = bytearray(_states.save(self._running()))
        if self._rom.cartridge.has_clock and STATE_VERSION == _FORMAT_WITH_THESE_TIMES:
            # The clock stands still, so nothing reads these times, but with them two states of
            # one moment would differ.
            for place in _TIMES_OF_DAY:
                raw[place] = bytes(8)
        return bytes(raw)

    def _raw_state_without_picture(self) -> bytes:
        """Find the picture in the state by a mark, and put zeros in its place.

        PyBoy writes each pixel, of four bytes, with a byte that says what covers it. That byte
        changes as the picture does, and is nowhere else to be read.
        """
        before = self._pixels.copy()
        self._pixels[:] = _MARK
        try:
            raw = bytearray(self._raw_state())
        finally:
            self._pixels[:] = before
        start = -1
        while True:
            start = raw.index(_MARK[0, :1].tobytes(), start + 1)
            stored = np.frombuffer(raw, np.uint8, _MARK.size * _BYTES_A_PIXEL, start)
            pixels = stored.reshape(-1, _BYTES_A_PIXEL)[:, :4]
            if pixels.tobytes() == _MARK.tobytes():
                break
        del stored, pixels  # a bytearray that is looked at cannot be written
        raw[start : start + _MARK.size * _BYTES_A_PIXEL] = bytes(_MARK.size * _BYTES_A_PIXEL)
        return bytes(raw)

    def _check_banked(self, bank: int, address: int) -> None:
        """Check the bank, as PyBoy is built without bounds checks and would read foreign memory."""
        n_banks = self._n_banks_at(address)
        if not 0 <= bank < n_banks:
            raise EmulatorError(
                f"address 0x{address:04X} has {n_banks} banks, there is no bank {bank}"
            )

    def _n_banks_at(self, address: int) -> int:
        if 0x0000 <= address < 0x8000:
            return self._rom.n_rom_banks
        if 0x8000 <= address < 0xA000:
            return 2 if self._is_colour else 1
        if 0xA000 <= address < 0xC000:
            return self._rom.n_ram_banks
        if 0xD000 <= address < 0xE000 and self._is_colour:
            return 8
        return 0


STATE_FORMAT: int = STATE_VERSION
"""Format of the states of the installed PyBoy."""

_OLDEST_FORMAT = 2  # before it, the first byte was another thing


def is_older_state(state: bytes) -> bool:
    """Whether the state is one that an older version of PyBoy saved, by its first byte."""
    return state[:1] != b"" and _OLDEST_FORMAT <= state[0] < STATE_VERSION


def state_problem(state: bytes) -> str | None:
    """Return why the format of a state cannot be played, by its first byte; None if it can."""
    if is_packed(state) or state[:1] == bytes([STATE_VERSION]):
        return None
    if not state:
        return "the file is empty; save the state again"
    version = state[0]
    fault = (
        f"the state does not fit the installed PyBoy: its format is {version}, PyBoy's is "
        f"{STATE_VERSION}"
    )
    again = "save the state again with the installed version"
    if is_older_state(state):
        return f"{fault}; {again}, or write `accept_older: true` next to `file`, which converts it"
    return f"{fault}, so a newer version saved it, or it is not a state; {again}"


def _check_version(raw: bytes) -> None:
    problem = state_problem(raw[:1])
    if problem is not None:
        raise EmulatorError(problem)


def _power_on(rom: Rom, *, colour: bool) -> PyBoy:
    if rom.is_absent:
        raise EmulatorError("there is no ROM to play; load the game with it")
    try:
        pyboy = PyBoy(
            io.BytesIO(rom.data),  # with a path, PyBoy would read and write .ram and .rtc files
            window="null",
            sound_emulated=False,
            no_input=True,
            cgb=colour,
            color_palette=_FOUR_SHADES,
            log_level=_SILENT,
        )
    except Exception as error:
        raise EmulatorError(
            f"PyBoy cannot start {rom.path} ({type(error).__name__}: {error}); "
            "check the ROM with another emulator"
        ) from error
    if rom.cartridge.has_clock:
        pyboy.rtc_lock_experimental(True)  # with a running clock, every episode would be different
    _begin_the_windows_lines(pyboy, _power_on_state(pyboy, rom, colour=colour))
    return pyboy


def _power_on_state(pyboy: PyBoy, rom: Rom, *, colour: bool) -> bytes:
    """Return the raw state of a new PyBoy, saved once for all that have this ROM in a row."""
    key = rom.sha256, colour
    if key not in _power_on_states:
        _power_on_states.clear()
        _power_on_states[key] = _states.save(pyboy)
    return _power_on_states[key]


def _begin_the_windows_lines(pyboy: PyBoy, power_on: bytes) -> None:
    """Make PyBoy draw the next picture like every later one.

    PyBoy counts the lines of the window (a layer of the screen that has lives and points in many
    games) in a number that is not part of its states. Drawing a picture leaves it at -1, but in a
    new PyBoy it is 0. Without this function, the first picture after `load_state` had the window
    one line too high, so a resumed run saw another observation. The cure is to draw a picture
    during the boot code, before the game's first instruction.
    """
    pyboy.tick(_BOOT_FRAMES - 1, False, False)
    pyboy.tick(1, True, False)
    _states.load(pyboy, power_on)


class StateWay(Protocol):
    """A way to save and load PyBoy's states; each has the same bytes and errors."""

    def save(self, pyboy: PyBoy, /) -> bytes:
        """Return PyBoy's state."""

    def load(self, pyboy: PyBoy, state: bytes, /) -> int:
        """Let PyBoy continue from a state; return how many of its bytes it has read."""


class PyBoysOwnWay:
    """Python calls for each byte: saving takes as long as a hundred timesteps."""

    def save(self, pyboy: PyBoy, /) -> bytes:
        file = io.BytesIO()
        pyboy.save_state(file)
        return file.getvalue()

    def load(self, pyboy: PyBoy, state: bytes, /) -> int:
        file = io.BytesIO(state)
        pyboy.load_state(file)
        return file.tell()


_states: StateWay = PyBoysOwnWay()
if why_states_are_slow() is None:
    try:
        from game_rl.emulator import fast_states
    except (ImportError, TypeError, ValueError) as error:  # the latter from Cython
        warnings.warn(f"emulator states are saved and loaded slowly: {error}", stacklevel=1)
    else:
        _states = fast_states


_TRIAL_LIMIT_S = 30.0  # a trial takes one second


def try_raw_state(
    rom: Rom, raw: bytes, *, colour: bool, time_limit_s: float = _TRIAL_LIMIT_S
) -> None:
    """Play `raw` for 300 frames in another process.

    Raises:
        EmulatorError: PyBoy refuses the state, hangs or crashes.
    """
    _tried(rom, raw, colour=colour, converts=False, time_limit_s=time_limit_s)


def convert_older_state(
    rom: Rom, raw: bytes, *, colour: bool, time_limit_s: float = _TRIAL_LIMIT_S
) -> bytes:
    """Return a state of an older format in the installed PyBoy's, packed (see `pack_state`).

    Another process loads it and plays three frames, so that the state has a picture, whatever the
    older format had; then it plays on for 300 frames, as `try_raw_state` does.

    Raises:
        EmulatorError: PyBoy refuses the state, hangs or crashes.
    """
    return _tried(rom, raw, colour=colour, converts=True, time_limit_s=time_limit_s)


def _tried(rom: Rom, raw: bytes, *, colour: bool, converts: bool, time_limit_s: float) -> bytes:
    """Run the trial's process; return what it writes."""
    try:
        trial = subprocess.run(
            [sys.executable, "-m", "game_rl.emulator.pyboy_emulator"],
            input=pickle.dumps((rom, raw, colour, converts)),
            capture_output=True,
            timeout=time_limit_s,
            check=False,
            env=os.environ | python_variables(),
        )
    except subprocess.TimeoutExpired:
        raise EmulatorError(
            "the state is damaged: PyBoy was still busy with it after "
            f"{time_limit_s:.0f} s; save the state again"
        ) from None
    if trial.returncode != 0:
        told = trial.stdout.decode(errors="replace").strip()
        raise EmulatorError(
            told
            or "the state is damaged: PyBoy crashes on it "
            f"(exit status {trial.returncode}); save the state again"
        )
    return trial.stdout


_TRIAL_FRAMES = 300
_FRAMES_TO_A_PICTURE = 3  # one may have been over, and before format 13 the next is blank


def _try_state(rom: Rom, raw: bytes, *, colour: bool, converts: bool) -> bytes:
    """Play the state; return it in today's format, if it is to be converted."""
    with closing(PyBoyEmulator(rom, colour=colour)) as emulator:
        emulator.load_raw_state(raw, accepts_older=converts)
        converted = b""
        if converts:
            emulator.tick(_FRAMES_TO_A_PICTURE, render=True)
            converted = emulator.save_state()
        for button in ("a", "start", "right"):
            emulator.hold([button])
            emulator.tick(_TRIAL_FRAMES // 3, render=True)
        emulator.load_state(converted or emulator.save_state())
    return converted


def main() -> int:
    rom, raw, colour, converts = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own parent
    try:
        converted = _try_state(rom, raw, colour=colour, converts=converts)
    except EmulatorError as error:
        sys.stdout.write(str(error))
        return 1
    sys.stdout.buffer.write(converted)
    return 0


_OPCODES = frozenset({0xD3, 0xDB, 0xDD, 0xE3, 0xE4, 0xEB, 0xEC, 0xED, 0xF4, 0xFC, 0xFD})
_LOOK_EVERY_S = 0.25
_READINGS = 16  # of the program counter; while the CPU runs, hardly two are equal

_HIGH_RAM = 0xFF80
_INTERRUPT_ENABLE = 0xFFFF
_HALT_FOR_EVER = (0x76, 0x18, 0xFD)  # HALT; JR to it


class LockUp(NamedTuple):
    address: int
    opcode: int

    def __str__(self) -> str:
        return f"opcode 0x{self.opcode:02X} at 0x{self.address:04X}, which no Game Boy has"


class TickGuard:
    """A guard that ends ticks of one PyBoy in which the CPU hangs.

    Attributes:
        n_edges: number of starts and ends of ticks so far, counted by the owner; odd during a tick.
        lock_up: where the CPU hung, or None. After a lock-up the memory is unusable, and the owner
            resets this to None once it has loaded a state.
    """

    def __init__(self, pyboy: PyBoy) -> None:
        self.n_edges = 0
        self.lock_up: LockUp | None = None
        self._pyboy = pyboy
        self._seen_edges = 0
        _watch.add(self)

    def look(self) -> None:
        """End the tick if it was already running at the last look and the CPU hangs."""
        edges = self._seen_edges
        self._seen_edges = self.n_edges
        if self.n_edges % 2 and edges == self.n_edges and self.lock_up is None:
            address = self._standing_at()
            if address is None:
                return
            opcode = self._pyboy.memory[address]
            if opcode in _OPCODES and self._standing_at() == address:
                self.lock_up = LockUp(address, opcode)
                self._halt()

    def _standing_at(self) -> int | None:
        """Return the address at which the CPU hangs or waits, or None if it is running."""
        addresses: set[int] = {self._pyboy.register_file.PC for _ in range(_READINGS)}
        return addresses.pop() if len(addresses) == 1 else None

    def _halt(self) -> None:
        memory = self._pyboy.memory
        memory[_INTERRUPT_ENABLE] = 0
        for offset, byte in enumerate(_HALT_FOR_EVER):
            memory[_HIGH_RAM + offset] = byte
        self._pyboy.register_file.PC = _HIGH_RAM


class _Watch:
    """The thread that looks at all guards of the process."""

    def __init__(self) -> None:
        self._guards: weakref.WeakSet[TickGuard] = weakref.WeakSet()
        self._thread: threading.Thread | None = None

    def add(self, guard: TickGuard) -> None:
        self._guards.add(guard)
        if self._thread is None or not self._thread.is_alive():  # a fork does not copy threads
            self._thread = threading.Thread(target=self._run, name="lock-up watch", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(_LOOK_EVERY_S)
            self._look()

    def _look(self) -> None:
        for guard in tuple(self._guards):
            guard.look()


_watch = _Watch()


if __name__ == "__main__":
    sys.exit(main())
