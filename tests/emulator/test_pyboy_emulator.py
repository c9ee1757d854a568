import io
import struct
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyboy import PyBoy

from game_rl.emulator.pyboy_emulator import PyBoyEmulator, TickGuard, try_raw_state
from game_rl.emulator.rom import Rom, read_rom
from game_rl.emulator.saved_state import pack_state, unpack_state
from game_rl.errors import EmulatorError, LockUpError
from game_rl.games.definition import Game, load_game
from tests.emulator.roms import make_rom

BATTERY, CLOCK, NO_BATTERY = 0x1B, 0x10, 0x00
JOYPAD = 0xFF00
DIRECTIONS, BUTTON_KEYS = 0x20, 0x10


def rom_of(folder: Path, **header: Any) -> Rom:
    path = folder / "game.gb"
    path.write_bytes(make_rom(**header))
    return read_rom(path)


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[PyBoyEmulator]:
    with closing(PyBoyEmulator(rom_of(tmp_path), colour=False)) as emulator:
        yield emulator


def held(emulator: PyBoyEmulator) -> set[str]:
    """What the console's joypad register shows, read as a game does."""
    names = {
        DIRECTIONS: ("right", "left", "up", "down"),
        BUTTON_KEYS: ("a", "b", "select", "start"),
    }
    found = set()
    for line, buttons in names.items():
        emulator.write(JOYPAD, line)
        bits = emulator.read(JOYPAD)
        found |= {name for bit, name in enumerate(buttons) if not bits >> bit & 1}
    return found


@pytest.mark.parametrize("cartridge", [NO_BATTERY, BATTERY, CLOCK])
def test_no_file_appears_beside_the_rom(cartridge: int, tmp_path: Path) -> None:
    emulator = PyBoyEmulator(rom_of(tmp_path, cartridge=cartridge, ram_size=3), colour=False)
    emulator.tick(80, render=True)
    emulator.load_state(emulator.save_state())
    emulator.close()
    emulator.close()
    del emulator
    assert [file.name for file in tmp_path.iterdir()] == ["game.gb"]


def test_files_beside_the_rom_are_not_read(tmp_path: Path) -> None:
    rom = rom_of(tmp_path, cartridge=BATTERY, ram_size=3)
    (tmp_path / "game.gb.ram").write_bytes(b"\x77" * 32_768)
    with closing(PyBoyEmulator(rom, colour=False)) as emulator:
        assert emulator.read(0xA000, bank=0) != 0x77


# LD A,0A; LD (0000),A; LD A,5; LD (A000),A; LD A,(A000); LD (C000),A; JR itself
_USES_MBC2 = bytes.fromhex("3e0a ea0000 3e05 ea00a0 fa00a0 ea00c0 18fe")


def test_the_half_bytes_of_mbc2_are_read_without_the_other_half(tmp_path: Path) -> None:
    data = bytearray(make_rom(cartridge=0x06))
    data[0x150 : 0x150 + len(_USES_MBC2)] = _USES_MBC2
    (tmp_path / "game.gb").write_bytes(data)
    with closing(PyBoyEmulator(read_rom(tmp_path / "game.gb"), colour=False)) as emulator:
        emulator.tick(100, render=False)
        assert emulator.read(0xC000) == 0xF5  # what the game itself reads
        assert emulator.read(0xA000) == emulator.read(0xA000, bank=0) == 5
        emulator.write(0xA001, 0x9C, bank=0)
        assert emulator.read(0xA001) == emulator.read(0xA001, bank=0) == 0x0C
    with closing(
        PyBoyEmulator(rom_of(tmp_path, cartridge=0x1B, ram_size=3), colour=False)
    ) as other:
        other.write(0xA001, 0x9C, bank=0)
        assert other.read(0xA001, bank=0) == 0x9C


def test_nothing_is_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    PyBoyEmulator(rom_of(tmp_path, cartridge=CLOCK, ram_size=3), colour=False).close()
    assert capfd.readouterr() == ("", "")


def test_the_screen_has_four_shades_or_rgb(tmp_path: Path, emulator: PyBoyEmulator) -> None:
    emulator.tick(1, render=True)
    assert emulator.screen().shape == (144, 160, 3)
    assert emulator.screen().dtype == np.uint8
    assert set(np.unique(emulator.screen())) <= {0, 85, 170, 255}
    with closing(PyBoyEmulator(rom_of(tmp_path, colour_flag=0x80), colour=True)) as colour:
        assert colour.is_colour


@pytest.mark.parametrize("colour", [False, True])
def test_the_screen_is_the_picture_that_pyboy_draws(colour: bool) -> None:
    rom = load_game("duel").rom
    four_shades = (0xFFFFFF, 0xAAAAAA, 0x555555, 0x000000)
    oracle = PyBoy(
        io.BytesIO(rom.data), window="null", cgb=colour, color_palette=four_shades, log_level=5
    )
    with closing(PyBoyEmulator(rom, colour=colour)) as emulator:
        for frames in (1, 60, 40, 4, 4):
            oracle.tick(frames, True, False)
            emulator.tick(frames, render=True)
            np.testing.assert_array_equal(emulator.screen(), oracle.screen.ndarray[:, :, :3])
        assert len(np.unique(emulator.screen())) > 1
    oracle.stop(save=False)


def test_exactly_the_asked_buttons_are_held(emulator: PyBoyEmulator) -> None:
    emulator.hold(["right", "a"])
    emulator.tick(1, render=False)
    assert held(emulator) == {"right", "a"}
    emulator.hold(["up", "a"])
    emulator.tick(1, render=False)
    assert held(emulator) == {"up", "a"}
    emulator.hold([])
    emulator.tick(1, render=False)
    assert held(emulator) == set()


def test_after_load_state_no_button_is_held(emulator: PyBoyEmulator) -> None:
    emulator.hold(["left", "start"])
    emulator.tick(1, render=False)
    state = emulator.save_state()
    emulator.hold(["b"])  # asked for before loading, and not to happen after it
    emulator.load_state(state)
    emulator.tick(1, render=False)
    assert held(emulator) == set()


def test_a_button_held_in_a_state_can_be_held_on(emulator: PyBoyEmulator) -> None:
    emulator.hold(["left"])
    emulator.tick(1, render=False)
    emulator.load_state(emulator.save_state())
    emulator.hold(["left"])
    emulator.tick(1, render=False)
    assert held(emulator) == {"left"}


def test_a_state_repeats_bit_for_bit_in_another_instance(
    tmp_path: Path, emulator: PyBoyEmulator
) -> None:
    emulator.tick(75, render=True)
    state = emulator.save_state()
    emulator.tick(30, render=True)
    with closing(PyBoyEmulator(rom_of(tmp_path), colour=False)) as other:
        other.load_state(state)
        other.tick(30, render=True)
        assert other.read(0xC000) == emulator.read(0xC000)
        assert other.save_state() == emulator.save_state()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["duel", "beacon", "seasons"])
def test_the_first_picture_after_a_state_is_that_of_the_emulator_that_went_on(name: str) -> None:
    """Also of a game with its lives in the window, whose lines PyBoy counts beside the state."""
    game = load_game(name)
    rng = np.random.default_rng(0)
    with closing(PyBoyEmulator(game.rom, colour=game.is_colour)) as going_on:
        for part in range(60):
            buttons: Any = ["start"] if part % 9 == 8 else rng.choice(["right", "a", "left"], 1)
            state = going_on.save_state()
            going_on.hold(buttons)
            going_on.tick(8, render=True)
            if part % 10 != 9:
                continue
            with closing(PyBoyEmulator(game.rom, colour=game.is_colour)) as other:
                other.load_state(state)
                other.hold(buttons)
                other.tick(8, render=True)
                np.testing.assert_array_equal(other.screen(), going_on.screen())
                assert other.save_state() == going_on.save_state()


def test_an_emulator_begins_where_pyboy_switches_a_console_on() -> None:
    rom = load_game("seasons").rom
    with closing(PyBoyEmulator(rom, colour=True)) as emulator:
        found = emulator.save_state()
        emulator.load_raw_state(state_of_a_new_pyboy(rom))
        assert emulator.save_state() == found


@pytest.mark.parametrize("colour", [False, True])
def test_a_second_emulator_of_a_rom_begins_as_the_first_did(colour: bool, tmp_path: Path) -> None:
    """Also after others: the state at power-on is saved once for all of one ROM in a row."""
    rom = rom_of(tmp_path, colour_flag=0x80)
    other = load_game("duel").rom
    states = []
    for owner in (rom, rom, other, rom):
        with closing(PyBoyEmulator(owner, colour=colour)) as emulator:
            begun = emulator.save_state()
            emulator.tick(70, render=True)
            states.append((begun, emulator.save_state()))
    assert states[0] == states[1] == states[3] != states[2]


def state_of_a_new_pyboy(rom: Rom) -> bytes:
    pyboy = PyBoy(
        io.BytesIO(rom.data), window="null", sound_emulated=False, no_input=True, cgb=True,
        color_palette=(0xFFFFFF, 0xAAAAAA, 0x555555, 0x000000), log_level="CRITICAL",
    )  # fmt: skip
    state = io.BytesIO()
    pyboy.save_state(state)
    pyboy.stop(save=False)
    return state.getvalue()


def test_reads_and_writes_reach_memory(emulator: PyBoyEmulator) -> None:
    emulator.write(0xC123, 200)
    assert emulator.read(0xC123) == 200


@pytest.mark.parametrize(
    ("bank", "address"),
    [(2, 0x4000), (-1, 0), (0, 0xA000), (1, 0x8000), (0, 0xC000), (0, 0xFF80), (0, -1)],
)
def test_a_bank_that_does_not_exist_is_refused(
    emulator: PyBoyEmulator, bank: int, address: int
) -> None:
    with pytest.raises(EmulatorError, match="no bank"):
        emulator.read(address, bank=bank)
    with pytest.raises(EmulatorError, match="no bank"):
        emulator.write(address, 1, bank=bank)


@pytest.mark.parametrize("address", [-1, 0x10000])
def test_an_address_outside_memory_is_refused(emulator: PyBoyEmulator, address: int) -> None:
    with pytest.raises(EmulatorError, match="outside"):
        emulator.read(address)
    with pytest.raises(EmulatorError, match="outside"):
        emulator.write(address, 1)


def test_bytes_and_frame_counts_out_of_range_are_refused(emulator: PyBoyEmulator) -> None:
    with pytest.raises(EmulatorError, match="byte"):
        emulator.write(0xC000, 256)
    with pytest.raises(EmulatorError, match="at least 1 frame"):
        emulator.tick(0, render=True)


def test_banked_cartridge_ram_is_reached(tmp_path: Path) -> None:
    with closing(PyBoyEmulator(rom_of(tmp_path, cartridge=BATTERY, ram_size=3), colour=False)) as e:
        for bank in range(4):
            e.write(0xA010, 10 + bank, bank=bank)
        assert [e.read(0xA010, bank=bank) for bank in range(4)] == [10, 11, 12, 13]


def test_a_closed_emulator_says_so(emulator: PyBoyEmulator) -> None:
    emulator.close()
    for use in (lambda: emulator.tick(1, render=True), lambda: emulator.read(0xC000)):
        with pytest.raises(EmulatorError, match="closed"):
            use()


@pytest.mark.parametrize("damage", ["truncated", "flipped", "foreign", "empty", "text"])
def test_a_damaged_state_is_refused_and_the_emulator_lives_on(
    damage: str, tmp_path: Path, emulator: PyBoyEmulator
) -> None:
    emulator.tick(75, render=True)
    good = emulator.save_state()
    (tmp_path / "other").mkdir()
    with closing(
        PyBoyEmulator(rom_of(tmp_path / "other", cartridge=BATTERY), colour=False)
    ) as other:
        foreign = other.save_state()
    flipped = bytearray(good)
    flipped[-100] ^= 0xFF
    bad = {
        "truncated": good[:-50],
        "flipped": bytes(flipped),
        "foreign": foreign,
        "empty": b"",
        "text": b"hello",
    }[damage]
    with pytest.raises(EmulatorError, match="again"):
        emulator.load_state(bad)
    emulator.tick(1, render=True)
    assert emulator.read(0xC000) >= 0


def raw_state(rom: Rom, *, frames: int = 75) -> bytes:
    pyboy = PyBoy(io.BytesIO(rom.data), window="null", sound_emulated=False, cgb=False, log_level=5)
    pyboy.tick(frames, True, False)
    file = io.BytesIO()
    pyboy.save_state(file)
    pyboy.stop(save=False)
    return file.getvalue()


def test_a_state_of_pyboy_itself_is_taken(tmp_path: Path, emulator: PyBoyEmulator) -> None:
    emulator.load_state(raw_state(rom_of(tmp_path)))
    counter = emulator.read(0xC000)
    emulator.tick(1, render=True)
    assert emulator.read(0xC000) != counter


@pytest.mark.parametrize("change", ["truncated", "other cartridge"])
def test_an_emulator_that_half_restored_a_raw_state_is_not_used_on(
    change: str, tmp_path: Path, emulator: PyBoyEmulator
) -> None:
    (tmp_path / "other").mkdir()
    raw = raw_state(rom_of(tmp_path / "other", cartridge=BATTERY, ram_size=3))
    with pytest.raises(EmulatorError, match="save it"):
        emulator.load_raw_state(raw[:20_000] if change == "truncated" else raw)
    with pytest.raises(EmulatorError, match="closed"):
        emulator.tick(1, render=True)


def test_a_state_of_another_pyboy_version_is_refused(
    tmp_path: Path, emulator: PyBoyEmulator
) -> None:
    raw = raw_state(rom_of(tmp_path))
    with pytest.raises(EmulatorError, match="installed PyBoy"):
        emulator.load_state(bytes([raw[0] - 1]) + raw[1:])


def test_a_clock_cartridge_repeats(tmp_path: Path) -> None:
    """The cartridge's clock stands still: latching it reads zeros."""
    with closing(PyBoyEmulator(rom_of(tmp_path, cartridge=CLOCK, ram_size=3), colour=False)) as e:
        e.tick(80, render=True)
        state = e.save_state()
        counters = []
        for _ in range(2):
            e.load_state(state)
            e.tick(10, render=True)
            counters.append(e.read(0xC000))
        assert counters[0] == counters[1]


@pytest.mark.parametrize(("colour", "ram_size"), [(False, 0), (False, 3), (True, 5)])
def test_two_states_of_one_moment_are_the_same_bytes_with_a_clock(
    colour: bool, ram_size: int, tmp_path: Path
) -> None:
    """PyBoy writes the time of day into each state; a state from before still loads."""
    rom = rom_of(tmp_path, cartridge=CLOCK, ram_size=ram_size, colour_flag=0x80)
    with closing(PyBoyEmulator(rom, colour=colour)) as emulator:
        emulator.tick(80, render=True)
        state = emulator.save_state()
        assert emulator.save_state() == state
        file = io.BytesIO()
        emulator._running().save_state(file)
        with_times = pack_state(file.getvalue(), rom_sha256=rom.sha256, is_colour=colour)
        assert with_times != state
        emulator.tick(5, render=True)
        emulator.load_state(with_times)
        assert emulator.save_state() == state


TIMER_MODULO = 0xFF06


@pytest.fixture(scope="module")
def rom() -> Rom:
    return load_game("duel").rom


def pyboy_state(rom: Rom, *, timer_modulo: int) -> bytes:
    pyboy = PyBoy(io.BytesIO(rom.data), window="null", sound_emulated=False, cgb=False, log_level=5)
    pyboy.tick(90, True, False)
    pyboy.memory[TIMER_MODULO] = timer_modulo
    file = io.BytesIO()
    pyboy.save_state(file)
    pyboy.stop(save=False)
    return file.getvalue()


def with_a_clock_that_is_wrong(rom: Rom) -> bytes:
    """The timer runs, and was last looked at 2^62 cycles ago."""
    one, other = pyboy_state(rom, timer_modulo=0x5A), pyboy_state(rom, timer_modulo=0xA5)
    [modulo] = [at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    damaged = bytearray(one)
    damaged[modulo + 1 : modulo + 11] = struct.pack("<BBq", 0x05, 0, -(2**62))
    return bytes(damaged)


def test_a_whole_state_passes(rom: Rom) -> None:
    try_raw_state(rom, pyboy_state(rom, timer_modulo=0), colour=False)


def test_a_state_with_which_pyboy_hangs_is_refused(rom: Rom) -> None:
    with pytest.raises(EmulatorError, match="still busy with it after 5 s"):
        try_raw_state(rom, with_a_clock_that_is_wrong(rom), colour=False, time_limit_s=5.0)


def test_a_state_in_which_the_game_locks_up_is_refused(rom: Rom, tmp_path: Path) -> None:
    raw = bytearray(pyboy_state(rom, timer_modulo=0))
    data = bytearray(rom.data)
    data[0x150:] = b"\xfc" * (len(data) - 0x150)
    other = Rom(**vars(rom) | {"data": bytes(data), "path": tmp_path / "game.gb"})
    with pytest.raises(EmulatorError, match="which no Game Boy has"):
        try_raw_state(other, bytes(raw), colour=False)


@pytest.mark.slow
def test_pyboys_own_refusal_is_told(rom: Rom) -> None:
    raw = pyboy_state(rom, timer_modulo=0)
    with pytest.raises(EmulatorError, match="PyBoy refused the state"):
        try_raw_state(rom, raw[:-1], colour=False)
    with pytest.raises(EmulatorError, match="another cartridge"):
        try_raw_state(rom, raw + b"\0", colour=False)


def test_an_emulator_that_refuses_a_state_of_pyboy_goes_on(rom: Rom) -> None:
    emulator = PyBoyEmulator(rom, colour=False)
    emulator.tick(10, render=True)
    before = emulator.save_state()
    with pytest.raises(EmulatorError, match="save it again"):
        emulator.load_state(pyboy_state(rom, timer_modulo=0)[:20_000])
    assert emulator.save_state() == before
    emulator.close()


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


@pytest.mark.parametrize("name", ["duel", "seasons"])
def test_a_state_without_picture_is_the_same_whatever_was_drawn(name: str) -> None:
    game = load_game(name)
    draws, draws_not = (PyBoyEmulator(game.rom, colour=game.is_colour) for _ in range(2))
    with closing(draws), closing(draws_not):
        for number in range(25):
            for emulator in (draws, draws_not):
                emulator.hold(["start"] if number % 7 == 0 else ["a"])
                emulator.tick(6, render=emulator is draws and number % 2 == 0)
        assert draws.save_state() != draws_not.save_state()
        picture = draws.screen().copy()
        state = draws.save_state(picture=False)
        assert state == draws_not.save_state(picture=False)
        np.testing.assert_array_equal(draws.screen(), picture)  # still there
        whole, without = draws.save_state(), len(unpack(game, state))
        assert len(unpack(game, whole)) == without
        draws_not.load_state(state)
        assert not draws_not.screen().any()
        for emulator in (draws, draws_not):
            emulator.hold(["right"])
            emulator.tick(5, render=True)
        np.testing.assert_array_equal(draws.screen(), draws_not.screen())
        assert draws.save_state() == draws_not.save_state()


def unpack(game: Game, state: bytes) -> bytes:
    return unpack_state(state, rom_sha256=game.rom.sha256, is_colour=game.is_colour)
