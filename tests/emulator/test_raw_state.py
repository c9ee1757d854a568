import io
import struct
from pathlib import Path

import pytest
from pyboy import PyBoy

from game_rl.emulator.pyboy_emulator import PyBoyEmulator, try_raw_state
from game_rl.emulator.rom import Rom
from game_rl.errors import EmulatorError
from game_rl.games.definition import load_game

TIMER_MODULO = 0xFF06


@pytest.fixture(scope="module")
def rom() -> Rom:
    return load_game("duel").rom


def raw_state(rom: Rom, *, timer_modulo: int) -> bytes:
    pyboy = PyBoy(io.BytesIO(rom.data), window="null", sound_emulated=False, cgb=False, log_level=5)
    pyboy.tick(90, True, False)
    pyboy.memory[TIMER_MODULO] = timer_modulo
    file = io.BytesIO()
    pyboy.save_state(file)
    pyboy.stop(save=False)
    return file.getvalue()


def with_a_clock_that_is_wrong(rom: Rom) -> bytes:
    """The timer runs, and was last looked at 2^62 cycles ago."""
    one, other = raw_state(rom, timer_modulo=0x5A), raw_state(rom, timer_modulo=0xA5)
    [modulo] = [at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    damaged = bytearray(one)
    damaged[modulo + 1 : modulo + 11] = struct.pack("<BBq", 0x05, 0, -(2**62))
    return bytes(damaged)


def test_a_whole_state_passes(rom: Rom) -> None:
    try_raw_state(rom, raw_state(rom, timer_modulo=0), colour=False)


def test_a_state_with_which_pyboy_hangs_is_refused(rom: Rom) -> None:
    with pytest.raises(EmulatorError, match="still busy with it after 5 s"):
        try_raw_state(rom, with_a_clock_that_is_wrong(rom), colour=False, time_limit_s=5.0)


def test_a_state_in_which_the_game_locks_up_is_refused(rom: Rom, tmp_path: Path) -> None:
    raw = bytearray(raw_state(rom, timer_modulo=0))
    data = bytearray(rom.data)
    data[0x150:] = b"\xfc" * (len(data) - 0x150)
    other = Rom(**vars(rom) | {"data": bytes(data), "path": tmp_path / "game.gb"})
    with pytest.raises(EmulatorError, match="which no Game Boy has"):
        try_raw_state(other, bytes(raw), colour=False)


def test_pyboys_own_refusal_is_told(rom: Rom) -> None:
    raw = raw_state(rom, timer_modulo=0)
    with pytest.raises(EmulatorError, match="PyBoy refused the state"):
        try_raw_state(rom, raw[:-1], colour=False)
    with pytest.raises(EmulatorError, match="another cartridge"):
        try_raw_state(rom, raw + b"\0", colour=False)


def test_an_emulator_that_refuses_a_state_of_pyboy_goes_on(rom: Rom) -> None:
    emulator = PyBoyEmulator(rom, colour=False)
    emulator.tick(10, render=True)
    before = emulator.save_state()
    with pytest.raises(EmulatorError, match="save it again"):
        emulator.load_state(raw_state(rom, timer_modulo=0)[:20_000])
    assert emulator.save_state() == before
    emulator.close()
