"""The compiled module against PyBoy's own way: the same bytes, the same play, the same errors."""

import importlib.util
import os
import subprocess
import sys
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.emulator import pyboy_emulator
from game_rl.emulator.emulator import BUTTONS
from game_rl.emulator.pyboy_emulator import PyBoyEmulator, PyBoysOwnWay, StateWay
from game_rl.emulator.rom import Rom, read_rom
from game_rl.emulator.state_speed import MODULE, SWITCH, describe_states
from game_rl.errors import LockUpError
from game_rl.games.definition import bundled_games, load_game
from tests.emulator.roms import make_rom
from tests.examples import examples, variants

if importlib.util.find_spec(MODULE) is None:
    pytest.skip("game_rl was installed without its compiled module", allow_module_level=True)

from game_rl.emulator import fast_states

if version("pyboy") != fast_states.COMPILED_FOR:
    pytest.skip("the module is for another PyBoy", allow_module_level=True)

OWN = PyBoysOwnWay()
FAST: StateWay = fast_states

BORDER_BYTES = 8_192 + 2_048 + 128  # tiles, map and palettes, the end of a state
CARTRIDGES = {
    "no RAM": {},
    "MBC1, 32 KB": {"cartridge": 0x03, "ram_size": 3},
    "MBC2": {"cartridge": 0x06},
    "MBC3 with a clock": {"cartridge": 0x10, "ram_size": 3},
    "MBC3 with a clock alone": {"cartridge": 0x0F},
    "MBC5, 128 KB, 8 banks": {"cartridge": 0x1B, "ram_size": 4, "n_banks": 8},
}
PLAYED = variants(
    *((name, colour) for name in bundled_games() for colour in (False, True)),
    ("MBC3 with a clock", False),
    slow=[
        ("MBC3 with a clock", True),
        *((name, False) for name in CARTRIDGES if name != "MBC3 with a clock"),
        ("MBC5, 128 KB, 8 banks", True),
    ],
)


def rom(name: str, folder: Path) -> Rom:
    """The ROM of a bundled game, or one with such a cartridge."""
    if name not in CARTRIDGES:
        return load_game(name).rom
    return rom_of(folder, colour_flag=0x80, **CARTRIDGES[name])


def rom_of(folder: Path, **header: Any) -> Rom:
    path = folder / "game.gb"
    path.write_bytes(make_rom(**header))
    return read_rom(path)


def play(emulator: PyBoyEmulator, rng: np.random.Generator, ticks: int) -> None:
    for _ in range(ticks):
        emulator.hold({BUTTONS[number] for number in rng.integers(len(BUTTONS), size=2)})
        emulator.tick(int(rng.integers(1, 90)), render=bool(rng.integers(2)))


def without_time_of_day(emulator: PyBoyEmulator, state: bytes) -> bytes:
    """PyBoy writes the time of day into the states of cartridges with a clock."""
    if not emulator._rom.cartridge.has_clock:
        return state
    zeroed = bytearray(state)
    for place in pyboy_emulator._TIMES_OF_DAY:
        zeroed[place] = bytes(8)
    return bytes(zeroed)


@pytest.mark.parametrize(("name", "colour"), PLAYED)
def test_both_ways_have_the_same_bytes_and_play_on_the_same(
    name: str, colour: bool, tmp_path: Path
) -> None:
    game = rom(name, tmp_path)
    with (
        closing(PyBoyEmulator(game, colour=colour)) as first,
        closing(PyBoyEmulator(game, colour=colour)) as second,
    ):
        for emulator in (first, second):  # a grey game has turned the colours off
            emulator.tick(300, render=False)
        start = first.save_state()

        @settings(max_examples=examples(20))
        @given(st.integers(0, 2**32 - 1), st.integers(0, 8))
        def check(seed: int, ticks: int) -> None:
            compare_at_a_moment(first, second, start, seed, ticks)

        check()


def compare_at_a_moment(
    first: PyBoyEmulator, second: PyBoyEmulator, start: bytes, seed: int, ticks: int
) -> None:
    """After some random play from `start`; each way loads what the other saved."""
    rng = np.random.default_rng(seed)
    first.load_state(start)
    play(first, rng, ticks)
    pyboy = first._running()
    for address in rng.integers(0xA000, 0xE000, size=50):
        first.write(int(address), int(rng.integers(256)))
    own, fast = OWN.save(pyboy), FAST.save(pyboy)
    assert without_time_of_day(first, fast) == without_time_of_day(first, own)
    later = []
    for way, state in ((OWN, fast), (FAST, own)):
        second.load_state(start)
        play(second, rng, 1)
        assert way.load(second._running(), state) == len(state)
        again = OWN.save(second._running())
        assert without_time_of_day(second, again) == without_time_of_day(second, own)
        second._held = None  # as after `load_state`
        later.append(played_on(second, seed))
    assert later[0] == later[1]


def played_on(emulator: PyBoyEmulator, seed: int) -> bytes | str:
    """The state after some play; how the game crashed, as its memory has random bytes."""
    try:
        play(emulator, np.random.default_rng(seed), 3)
    except LockUpError as error:
        return str(error)
    return emulator.save_state()


def outcome(way: StateWay, emulator: PyBoyEmulator, state: bytes) -> object:
    """How many bytes are read, or the error."""
    try:
        return way.load(emulator._running(), state)
    except Exception as error:  # noqa: BLE001 - compared
        return type(error), str(error)


@settings(max_examples=examples(50))
@given(st.data())
def test_both_ways_refuse_cut_and_foreign_states_in_the_same_words(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    cartridge = data.draw(st.sampled_from(list(CARTRIDGES)))
    colour = data.draw(st.booleans())
    game = rom(cartridge, tmp_path_factory.mktemp("rom"))
    with closing(PyBoyEmulator(game, colour=colour)) as emulator:
        state = FAST.save(emulator._running())
    length = data.draw(st.integers(0, len(state)))
    kind = data.draw(st.sampled_from(["cut", "longer", "newer", "older", "other hardware"]))
    wrong = {
        "cut": state[:length],
        "longer": state + bytes(length),
        "newer": bytes([state[0] + 1]) + state[1:],
        "older": bytes([state[0] - data.draw(st.integers(1, state[0]))]) + state[1:],
        "other hardware": state[:5] + bytes([not colour]) + state[6:],
    }[kind]
    with closing(PyBoyEmulator(game, colour=colour)) as emulator:
        assert outcome(FAST, emulator, wrong) == outcome(OWN, emulator, wrong)
        assert len(FAST.save(emulator._running())) == len(state)


def test_a_state_of_another_cartridge_leaves_the_same_bytes_unread(tmp_path: Path) -> None:
    folders = tmp_path / "small", tmp_path / "large"
    for folder in folders:
        folder.mkdir()
    small = rom_of(folders[0])
    large = rom_of(folders[1], cartridge=0x1B, ram_size=4)
    with (
        closing(PyBoyEmulator(small, colour=False)) as emulator,
        closing(PyBoyEmulator(large, colour=False)) as other,
    ):
        for taker, giver in ((emulator, other), (other, emulator)):
            state = FAST.save(giver._running())
            found = outcome(FAST, taker, state)
            assert found == outcome(OWN, taker, state) != len(state)


def test_the_border_of_a_super_game_boy_is_a_part_of_the_state(tmp_path: Path) -> None:
    with closing(PyBoyEmulator(rom_of(tmp_path), colour=False)) as emulator:
        pyboy = emulator._running()
        state = FAST.save(pyboy)
        for way, other in ((FAST, OWN), (OWN, FAST)):
            border = np.random.default_rng(len(type(way).__name__)).bytes(BORDER_BYTES)
            bordered = state[:-BORDER_BYTES] + border
            assert way.load(pyboy, bordered) == len(bordered)
            assert other.save(pyboy) == way.save(pyboy) == bordered
            other.load(pyboy, state)
            assert way.save(pyboy) == state


def test_what_is_no_emulator_or_no_bytes_is_refused(tmp_path: Path) -> None:
    load: Any = FAST.load
    with pytest.raises(TypeError):
        FAST.save(None)
    with closing(PyBoyEmulator(rom_of(tmp_path), colour=False)) as emulator:
        for wrong in (None, "text", 7):
            with pytest.raises(TypeError):
                load(emulator._running(), wrong)
        state = bytearray(FAST.save(emulator._running()))
        assert load(emulator._running(), state) == len(state)


PROGRAM = """\
import hashlib
from game_rl.emulator import pyboy_emulator
from game_rl.emulator.state_speed import describe_states
from game_rl.games.definition import load_game
game = load_game("duel")
emulator = pyboy_emulator.PyBoyEmulator(game.rom, colour=False)
emulator.tick(100, render=True)
state = emulator.save_state()
emulator.tick(100, render=True)
emulator.load_state(state)
emulator.tick(100, render=True)
print(type(pyboy_emulator._states).__name__)
print(hashlib.sha256(state + emulator.save_state()).hexdigest())
print(describe_states())
"""


def in_a_process(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore::UserWarning", "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture(scope="module")
def other_pyboy(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder that makes the installed PyBoy say that it is another version."""
    folder = tmp_path_factory.mktemp("other")
    (folder / "pyboy-2.8.77.dist-info").mkdir()
    (folder / "pyboy-2.8.77.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: pyboy\nVersion: 2.8.77\n", encoding="utf-8"
    )
    return str(folder)


@pytest.mark.slow
def test_another_pyboy_and_the_switch_fall_back_to_the_slow_way_and_say_so(
    other_pyboy: str,
) -> None:
    runs = [
        in_a_process(PROGRAM),
        in_a_process(PROGRAM, **{SWITCH: "0"}),
        in_a_process(PROGRAM, PYTHONPATH=other_pyboy),
    ]
    assert [run.stderr for run in runs] == ["", "", ""]
    ways, digests, lines = zip(*(run.stdout.splitlines() for run in runs), strict=True)
    assert ways == ("module", "PyBoysOwnWay", "PyBoysOwnWay")
    assert len(set(digests)) == 1
    assert lines[0] == describe_states() == "fast, by the module compiled for the installed PyBoy"
    assert lines[1] == f"slow, by PyBoy itself: {SWITCH} is 0"
    assert lines[2] == (
        "slow, by PyBoy itself: game_rl's module is compiled for PyBoy "
        f"{fast_states.COMPILED_FOR}, but 2.8.77 is installed; install game_rl again"
    )


@pytest.mark.slow
def test_the_module_itself_refuses_another_pyboy(other_pyboy: str) -> None:
    ended = in_a_process(f"import {MODULE}", PYTHONPATH=other_pyboy)
    assert ended.returncode == 1
    assert (
        f"ImportError: compiled for PyBoy {fast_states.COMPILED_FOR}, but 2.8.77 is installed"
        in ended.stderr
    )
