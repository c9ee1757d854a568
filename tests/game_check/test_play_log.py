"""Variables of which the memory is not what game.yaml says."""

import json
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.game_check.game_check import GameCheck, check_game
from game_rl.game_check.play_log import BankCheck, DecimalCheck
from game_rl.games.definition import load_game
from game_rl.games.variables import BitArray, NumberArray, Variable
from tests.emulator.fake_emulator import FakeEmulator
from tests.emulator.roms import make_rom
from tests.envs.example import FAKE_ROM

OPEN, CLOSE = bytes([0x3E, 0x0A, 0xEA, 0, 0]), bytes([0x3E, 0, 0xEA, 0, 0])  # LD A,n; LD (0000),A
STOP = bytes([0x18, 0xFE])  # JR to itself
WAIT_26_FRAMES = bytes([0x01, 0xFF, 0xFF, 0x0B, 0x78, 0xB1, 0x20, 0xFB])  # LD BC; loop: DEC BC


def select(bank: int) -> bytes:
    """LD A,bank; LD (4000),A."""
    return bytes([0x3E, bank, 0xEA, 0x00, 0x40])


def store(value: int) -> bytes:
    """LD A,value; LD (A000),A."""
    return bytes([0x3E, value, 0xEA, 0x00, 0xA0])


FILLED = OPEN + b"".join(select(bank) + store(10 + bank) for bank in range(4))
TURNS = select(1) + WAIT_26_FRAMES + select(2) + WAIT_26_FRAMES
COUNT_AT_D000 = bytes([0x21, 0x00, 0xD0, 0x34, 0x18, 0xFD])  # LD HL,D000; loop: INC (HL)
PROGRAMS = {
    "open at 2": FILLED + select(2) + STOP,
    "closed": FILLED + CLOSE + STOP,
    "in turns": FILLED + TURNS + bytes([0x18, 256 - len(TURNS) - 2]),
    "colour": bytes([0x3E, 3, 0xE0, 0x70]) + COUNT_AT_D000,  # LD A,3; LDH (SVBK),A
}


def written(folder: Path, program: str, variable: str) -> str:
    """The path of a game with this program, whose variable `it` has this place."""
    is_colour = program == "colour"
    rom = bytearray(make_rom(cartridge=0x1B, ram_size=3, colour_flag=0xC0 if is_colour else 0))
    code = PROGRAMS[program]
    rom[0x150 : 0x150 + len(code)] = code
    (folder / "game.gb").write_bytes(rom)
    (folder / "game.yaml").write_text(
        f"""\
title: Banks
rom: {{path: game.gb}}
hardware: {"cgb" if is_colour else "dmg"}
start_states: {{beginning: {{script: [{{wait: 100}}]}}}}
actions: {{idle: [], a: [a]}}
variables: {{it: {{{variable}}}}}
rewards: {{changed: {{variable: it, on: change}}}}
""",
        encoding="utf-8",
    )
    return str(folder / "game.yaml")


def checked(folder: Path, program: str, variable: str) -> GameCheck:
    return check_game(load_game(written(folder, program, variable)), seed=0, timesteps=60)


def of_banks(texts: tuple[str, ...]) -> list[str]:
    return [text for text in texts if text.startswith("variables.it: 0x")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "variable", "says"),
    [
        ("open at 2", "address: 0xA000", "0xA000 is in memory with the banks 0 to 3"),
        ("open at 2", "address: 0xA000",
         "so reads come from the bank that is mapped at that moment; at every reading it was "
         "bank 2: write `bank: 2`"),
        ("colour", "address: 0xD000", "at every reading it was bank 3: write `bank: 3`"),
        ("open at 2", "address: 0xA005", "the banks 0, 1, 2, 3 fit what was read"),
    ],
)  # fmt: skip
def test_the_bank_to_name_is_told(tmp_path: Path, program: str, variable: str, says: str) -> None:
    check = checked(tmp_path, program, variable)
    (warning,) = of_banks(check.warnings)
    assert says in warning
    assert check.errors == ()


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("closed", "what was read (ff) is in none of them, because the game disables this memory"),
        ("in turns", "the game switches between them, so what was read is not one variable"),
    ],
)
def test_what_cannot_be_right_is_an_error(tmp_path: Path, program: str, says: str) -> None:
    check = checked(tmp_path, program, "address: 0xA000")
    (error,) = check.errors
    assert says in error
    assert "name its `bank`" in error
    assert of_banks(check.warnings) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "variable"),
    [("closed", "address: 0xA000, bank: 1"), ("in turns", "address: 0xC000"),
     ("colour", "address: 0xD000, bank: 3")],
)  # fmt: skip
def test_what_has_a_bank_or_needs_none_is_not_spoken_of(
    tmp_path: Path, program: str, variable: str
) -> None:
    check = checked(tmp_path, program, variable)
    assert check.errors == ()
    assert of_banks(check.warnings) == []


def test_the_command_ends_with_2_and_prints_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, "closed", "address: 0xA000")
    assert main(["check-game", path, "--timesteps", "20", "--json"]) == 2
    facts = json.loads(capsys.readouterr().out)
    assert len(facts["errors"]) == 1
    assert main(["check-game", path, "--timesteps", "20"]) == 2
    shown = " ".join(capsys.readouterr().out.split())
    assert "error: variables.it: 0xA000 is in memory with the banks 0 to 3" in shown
    assert "contact sheet" in shown


class Banked(FakeEmulator):
    """Work RAM of a colour game: what each bank has at an address, and which one is mapped."""

    def __init__(self) -> None:
        super().__init__(colour=True)
        self.banks = {bank: bytes([bank, 7, bank % 2]) for bank in range(1, 8)}
        self.mapped = 1

    def read(self, address: int, *, bank: int | None = None) -> int:
        return self.banks[self.mapped if bank is None else bank][address - 0xD000]


def bits(address: int) -> BitArray:
    return BitArray("it", address, None, 1)


def number(address: int, bank: int | None = None) -> Variable:
    return Variable("it", address, bank, "u8", 1)


@pytest.mark.parametrize(
    ("variable", "mapped", "fitting"),
    [
        (number(0xD000), [5], {5}),
        (number(0xD001), [5, 1], {1, 2, 3, 4, 5, 6, 7}),
        (bits(0xD002), [5, 1], {1, 3, 5, 7}),
        (NumberArray("it", (number(0xD001), number(0xD000))), [4, 4], {4}),
        (NumberArray("it", (number(0xD000, 1), number(0xD002))), [4], {2, 4, 6}),
        (number(0xD000), [5, 1], set()),
    ],
)
def test_the_banks_that_fit_every_reading_are_left(
    variable: Variable | BitArray | NumberArray, mapped: list[int], fitting: set[int]
) -> None:
    emulator, check = Banked(), BankCheck([variable], FAKE_ROM, is_colour=True)
    for bank in mapped:
        emulator.mapped = bank
        check.look(emulator)
    warnings, errors = list(check.warnings()), list(check.errors())
    assert (len(warnings), len(errors)) == ((1, 0) if fitting else (0, 1))
    if len(fitting) > 1:
        assert f"the banks {', '.join(map(str, sorted(fitting)))} fit" in warnings[0]
    elif fitting:
        assert f"write `bank: {next(iter(fitting))}`" in warnings[0]


ADDRESS = 0xC020
SCORE = Variable("score", ADDRESS, None, "bcd", 4, big_endian=True)


def warnings_after(*readings: str) -> list[str]:
    """The warnings about a big-endian bcd variable that had these bytes, one after another."""
    emulator, check = FakeEmulator(), DecimalCheck([SCORE])
    for reading in readings:
        for offset, byte in enumerate(bytes.fromhex(reading)):
            emulator.write(ADDRESS + offset, byte)
        check.look(emulator)
    return list(check.warnings())


def test_decimals_are_not_spoken_of() -> None:
    assert warnings_after("00000000", "00000009", "00000010", "00000102", "00123456") == []


def test_a_small_number_tells_nothing() -> None:
    assert warnings_after("00000000", "00000007") == []


def test_a_byte_that_is_no_decimal_is_named_once() -> None:
    (warning,) = warnings_after("00000012", "0000001a", "000000ff")
    assert warning.startswith("variables.score: held 0x1A, which is not two decimal digits")


def test_one_digit_a_byte_is_named_with_what_the_screen_would_show() -> None:
    (warning,) = warnings_after("00000009", "01020304")
    assert "bcd reads 01 02 03 04 as 1,020,304, and if the screen shows 1234, the game" in warning


def test_numbers_without_tens_that_have_them_later_are_decimals() -> None:
    assert warnings_after("00000102", "00000115") == []


def test_a_byte_that_is_no_digit_is_named_if_it_follows_one() -> None:
    tiles = Variable("score", ADDRESS, None, "digits", 4, big_endian=True, zero=0x80)
    emulator, check = FakeEmulator(), DecimalCheck([NumberArray("scores", (tiles,))])
    for reading, expected in (("2c2c8081", []), ("80808089", []), ("2c812c80", ["2C"])):
        for offset, byte in enumerate(bytes.fromhex(reading)):
            emulator.write(ADDRESS + offset, byte)
        check.look(emulator)
        found = list(check.warnings())
        assert len(found) == len(expected)
        for warning, byte_in_hex in zip(found, expected, strict=True):
            assert warning.startswith(f"variables.score: held 0x{byte_in_hex} after a digit")
            assert "0x80 to 0x89" in warning


def test_other_types_are_not_looked_at() -> None:
    emulator = FakeEmulator()
    emulator.write(ADDRESS, 0xFF)
    check = DecimalCheck([Variable("it", ADDRESS, None, "u8", 1)])
    check.look(emulator)
    assert list(check.warnings()) == []
