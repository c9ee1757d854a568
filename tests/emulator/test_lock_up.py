import threading
from contextlib import closing
from pathlib import Path

import pytest

from game_rl.emulator.lock_up import TickGuard
from game_rl.emulator.pyboy_emulator import PyBoyEmulator
from game_rl.emulator.rom import Rom, read_rom
from game_rl.errors import LockUpError
from game_rl.games.definition import load_game
from tests.emulator.roms import make_rom

BOOT_FRAMES = 90
# Pan Docs, "CPU Instruction Set": the opcodes that lock up the CPU
NO_OPCODES = (0xD3, 0xDB, 0xDD, 0xE3, 0xE4, 0xEB, 0xEC, 0xED, 0xF4, 0xFC, 0xFD)


def rom_that_runs(program: bytes, folder: Path) -> Rom:
    data = bytearray(make_rom())
    data[0x150 : 0x150 + len(program)] = program
    path = folder / "game.gb"
    path.write_bytes(data)
    return read_rom(path)


@pytest.mark.parametrize("opcode", NO_OPCODES, ids=lambda opcode: f"0x{opcode:02X}")
def test_a_game_that_locks_up_ends_its_tick_with_an_error(opcode: int, tmp_path: Path) -> None:
    rom = rom_that_runs(bytes([0x00, opcode]), tmp_path)
    with closing(PyBoyEmulator(rom, colour=False)) as emulator:
        with pytest.raises(LockUpError, match=f"0x{opcode:02X} at 0x0151") as caught:
            emulator.tick(BOOT_FRAMES, render=True)
        assert str(rom.path) in str(caught.value)
        with pytest.raises(LockUpError):
            emulator.tick(1, render=True)


@pytest.mark.parametrize("opcode", [0xDB, 0xED])
def test_a_game_that_has_locked_up_goes_on_from_a_state_as_a_new_one_does(
    opcode: int, tmp_path: Path
) -> None:
    # LD HL,C000; loop: INC (HL); JR NZ,loop; then the end
    rom = rom_that_runs(bytes([0x21, 0x00, 0xC0, 0x34, 0x20, 0xFD, opcode]), tmp_path)
    with (
        closing(PyBoyEmulator(rom, colour=False)) as used,
        closing(PyBoyEmulator(rom, colour=False)) as new,
    ):
        start = used.save_state()
        for _ in range(2):
            used.load_state(start)
            with pytest.raises(LockUpError):
                used.tick(BOOT_FRAMES, render=True)
        used.load_state(start)
        new.load_state(start)
        for emulator in (used, new):
            emulator.tick(30, render=True)
        assert used.save_state() == new.save_state()


def test_one_game_that_locks_up_leaves_others_alone(tmp_path: Path) -> None:
    duel = load_game("duel").rom
    with (
        closing(PyBoyEmulator(duel, colour=False)) as one,
        closing(PyBoyEmulator(duel, colour=False)) as other,
    ):
        one.tick(BOOT_FRAMES, render=True)
        other.tick(BOOT_FRAMES, render=True)
        locked_up = PyBoyEmulator(rom_that_runs(b"\xfc", tmp_path), colour=False)
        with pytest.raises(LockUpError):
            locked_up.tick(BOOT_FRAMES, render=True)
        one.tick(BOOT_FRAMES, render=True)
        other.tick(BOOT_FRAMES, render=True)
        assert one.save_state() == other.save_state()


@pytest.mark.parametrize("program", [b"\x76\x18\xfd", b"\xf3\x76", b"\x18\xfe"])
def test_a_game_that_waits_is_not_taken_for_one_that_stands(program: bytes, tmp_path: Path) -> None:
    with closing(PyBoyEmulator(rom_that_runs(program, tmp_path), colour=False)) as emulator:
        emulator.tick(6_000, render=True)


def test_looking_changes_nothing_of_what_is_emulated() -> None:
    """A thread looks without a pause, at a game that runs on in the meantime."""
    rom = load_game("duel").rom
    with (
        closing(PyBoyEmulator(rom, colour=False)) as quiet,
        closing(PyBoyEmulator(rom, colour=False)) as watched,
    ):
        guard: TickGuard = watched._guard
        done, looks = threading.Event(), [0]

        def look() -> None:
            while not done.is_set():
                guard.look()
                looks[0] += 1

        thread = threading.Thread(target=look)
        thread.start()
        watched.tick(600, render=True)
        done.set()
        thread.join()
        quiet.tick(600, render=True)
        assert looks[0] > 10
        assert watched.save_state() == quiet.save_state()
