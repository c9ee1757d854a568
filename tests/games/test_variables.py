import dataclasses
import os
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from game_rl.emulator.rom import SUPPORTED_CARTRIDGES
from game_rl.errors import GameFileError
from game_rl.games.start_states import set_variable
from game_rl.games.variables import (
    Location,
    Variable,
    VariableSpec,
    half_byte_warning,
    place_variable,
    read_symbols,
)
from tests.emulator.fake_emulator import FakeEmulator
from tests.envs.example import FAKE_ROM

ADDRESS = 0xC800
Endian = Literal["little", "big"]


def emulator_with(memory: bytes) -> FakeEmulator:
    emulator = FakeEmulator()
    for offset, byte in enumerate(memory):
        emulator.write(ADDRESS + offset, byte)
    return emulator


def place(spec: VariableSpec, *, address: int = ADDRESS, is_colour: bool = False) -> Variable:
    return place_variable(
        "it", spec, Location(address, spec.bank), rom=FAKE_ROM, is_colour=is_colour
    )


def read(memory: bytes, **spec: object) -> int:
    variable = place(VariableSpec.model_validate({"address": ADDRESS, **spec}))
    return variable.read(emulator_with(memory))


@pytest.mark.parametrize(
    ("kind", "n_bytes", "signed"),
    [
        ("u8", 1, False),
        ("u16", 2, False),
        ("u24", 3, False),
        ("u32", 4, False),
        ("s8", 1, True),
        ("s16", 2, True),
    ],
)
@given(memory=st.binary(min_size=4, max_size=4), endian=st.sampled_from(["little", "big"]))
@example(memory=b"\x80\x00\x00\x00", endian="big")  # the lowest signed number
def test_integers_are_read_as_python_reads_them(
    kind: str, n_bytes: int, signed: bool, memory: bytes, endian: Endian
) -> None:
    expected = int.from_bytes(memory[:n_bytes], endian, signed=signed)
    assert read(memory, type=kind, endian=endian) == expected


@given(st.integers(1, 4), st.data(), st.sampled_from(["little", "big"]))
def test_bcd_is_the_decimal_number_its_nibbles_spell(
    n_bytes: int, data: st.DataObject, endian: Endian
) -> None:
    number = data.draw(st.integers(0, 100**n_bytes - 1))
    memory = bytes.fromhex(str(number).zfill(2 * n_bytes))  # "1234" is the bytes 0x12 0x34
    memory = memory if endian == "big" else memory[::-1]
    assert read(memory, type="bcd", bytes=n_bytes, endian=endian) == number


@given(st.integers(0, 255), st.integers(0, 7))
def test_a_bit_is_the_digit_of_the_binary_number(byte: int, bit: int) -> None:
    assert read(bytes([byte]), type="bit", bit=bit) == int(f"{byte:08b}"[7 - bit])


@given(st.integers(0, 2**32 - 1), st.sampled_from(["u8", "u16", "u24", "u32"]), st.booleans())
def test_what_is_written_is_read_back_in_its_width(value: int, kind: str, big: bool) -> None:
    spec = VariableSpec.model_validate(
        {"address": ADDRESS, "type": kind, "endian": "big" if big else "little"}
    )
    variable, emulator = place(spec), emulator_with(bytes(5))
    variable.write(emulator, value)
    assert variable.read(emulator) == value % 256**spec.n_bytes
    assert emulator.read(ADDRESS + spec.n_bytes) == 0, "the byte after it is not touched"


@given(
    st.sampled_from(["u8", "u16", "u24", "u32", "s8", "s16", "bcd", "bit"]),
    st.integers(1, 4),
    st.booleans(),
    st.data(),
)
def test_a_value_that_is_encoded_reads_as_itself_and_leaves_other_bits(
    kind: str, n_bytes: int, big: bool, data: st.DataObject
) -> None:
    sizes = {"bcd": {"bytes": n_bytes}, "bit": {"bit": data.draw(st.integers(0, 7))}}
    spec = VariableSpec.model_validate(
        {"address": ADDRESS, "type": kind, "endian": "big" if big else "little"}
        | sizes.get(kind, {})
    )
    n_bits = 8 * spec.n_bytes
    lowest, highest = {
        "u": (0, 2**n_bits - 1),
        "s": (-(2 ** (n_bits - 1)), 2 ** (n_bits - 1) - 1),
        "bcd": (0, int("99" * spec.n_bytes)),
        "bit": (0, 1),
    }[kind if kind in sizes else kind[0]]
    value = data.draw(st.integers(lowest, highest))
    memory = data.draw(st.binary(min_size=5, max_size=5))
    variable, emulator = place(spec), emulator_with(memory)
    set_variable(emulator, variable, value)
    assert variable.read(emulator) == value
    after = bytes(emulator.read(ADDRESS + i) for i in range(5))
    assert after[spec.n_bytes :] == memory[spec.n_bytes :]
    if kind == "bit":
        assert (after[0] ^ memory[0]) & ~(1 << (spec.bit or 0)) == 0
    for outside in (lowest - 1, highest + 1):
        with pytest.raises(ValueError, match="does not fit"):
            variable.encode(outside)


@pytest.mark.parametrize(
    ("address", "bank", "is_colour", "expected"),
    [
        (0xC000, None, False, None),
        (0xC000, 0, True, None),
        (0xD000, 1, False, None),
        (0xD000, 0, False, None),
        (0xD000, 5, True, 5),
        (0xD000, None, True, None),
        (0x8000, 1, True, 1),
        (0x8000, 0, False, None),
        (0xFF80, 0, True, None),
        (0xFFFE, None, False, None),
    ],
)
def test_the_bank_is_named_only_where_there_are_several(
    address: int, bank: int | None, is_colour: bool, expected: int | None
) -> None:
    spec = VariableSpec(address=address, bank=bank)
    assert place(spec, address=address, is_colour=is_colour).bank == expected


@pytest.mark.parametrize(
    ("address", "bank", "kind", "says"),
    [
        (0x4000, None, "u8", "is in ROM"),
        (0x7FFF, None, "u16", "is in ROM"),
        (0xA000, None, "u8", "this cartridge has none"),
        (0xE123, None, "u8", "use 0xC123 instead"),
        (0x9FFF, None, "u16", "reach beyond the video RAM"),
        (0xDFFF, None, "u16", "reach beyond"),
        (0xFFFF, None, "u16", "reach beyond the high memory"),
        (0x8000, 1, "u8", "bank 0 here, not 1"),
        (0xD000, 2, "u8", "banks 0 to 1 here, not 2"),
    ],
)
def test_places_where_no_variable_can_be_are_refused(
    address: int, bank: int | None, kind: str, says: str
) -> None:
    spec = VariableSpec.model_validate({"address": address, "bank": bank, "type": kind})
    with pytest.raises(ValueError, match=says):
        place(spec, address=address)


def test_a_number_may_cross_the_two_halves_of_work_ram() -> None:
    spec = VariableSpec(address=0xCFFF, type="u16")
    assert place(spec, address=0xCFFF).n_bytes == 2


MBC2 = dataclasses.replace(FAKE_ROM, cartridge=SUPPORTED_CARTRIDGES[0x06], n_ram_banks=1)


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({}, True),
        ({"type": "bit", "bit": 3}, True),
        ({"type": "bit", "bit": 4}, False),
        ({"type": "u16"}, False),
        ({"type": "s8"}, False),
        ({"type": "bcd", "bytes": 2}, False),
    ],
)
def test_a_type_that_half_bytes_cannot_hold_is_warned_of(
    spec: dict[str, object], fits: bool
) -> None:
    for rom, address in ((MBC2, 0xA010), (MBC2, 0xC010), (FAKE_ROM, 0xC010)):
        model = VariableSpec.model_validate({"address": address, **spec})
        variable = place_variable("it", model, Location(address, None), rom=rom, is_colour=False)
        warning = half_byte_warning(variable, rom)
        if fits or address == 0xC010:
            assert warning is None
        else:
            assert warning is not None
            assert warning.startswith("variables.it: 0xA010 is in the RAM of MBC2+BATTERY, where")


RGBDS_SYM = "; File generated by rgblink\n00:0150 Main\n01:d123 wHealth\n00:c0a0 wScore ; a note\n"
WLA_SYM = "[labels]\n00:c0a0 score\n0001:d123 health\n[definitions]\n00000003 LIVES\n"
NOI = "DEF _health 0xC0A0\nDEF _far 0x2A123\nLOAD x\nnonsense\n"
RGBDS_MAP = """\
ROM0 bank #0:
\tSECTION: $0000-$0007 ($0008 bytes) ["rst"]
\t         $0000 = Reset
WRAMX bank #3:
\tSECTION: $d000-$d00f ($0010 bytes) ["Vars"]
\t         $d004 = wHealth
"""
SDCC_MAP = """\
Area                 Addr        Size        Decimal Bytes (Attributes)
     0000C0A0  _health                            game
     0001D123  _banked                            game
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            RGBDS_SYM,
            {
                "Main": Location(0x150, 0),
                "wHealth": Location(0xD123, 1),
                "wScore": Location(0xC0A0, 0),
            },
        ),
        (NOI, {"_health": Location(0xC0A0, None), "_far": Location(0xA123, 2)}),
        (RGBDS_MAP, {"Reset": Location(0, 0), "wHealth": Location(0xD004, 3)}),
        (SDCC_MAP, {"_health": Location(0xC0A0, None), "_banked": Location(0xD123, 1)}),
    ],
    ids=["sym", "noi", "rgbds map", "sdcc map"],
)
def test_each_format_is_read(tmp_path: Path, text: str, expected: dict[str, Location]) -> None:
    path = tmp_path / "game.sym"
    path.write_text(text, encoding="utf-8")
    assert read_symbols(path) == expected


def test_wla_labels_are_read(tmp_path: Path) -> None:
    path = tmp_path / "game.sym"
    path.write_text(WLA_SYM, encoding="utf-8")
    assert read_symbols(path)["score"] == Location(0xC0A0, 0)


@pytest.mark.parametrize("data", [b"", b"hello\n", b"\xff\xfe\x00" * 100])
def test_a_file_without_symbols_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "game.sym"
    path.write_bytes(data)
    with pytest.raises(GameFileError, match="holds no symbol"):
        read_symbols(path)


def test_what_is_no_ordinary_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(GameFileError, match="not a regular file"):
            read_symbols(path)
    for name in ("a" * 300, "a\0b"):
        with pytest.raises(GameFileError, match="cannot be read"):
            read_symbols(tmp_path / name)
    path = tmp_path / "game.sym"
    with path.open("wb") as file:
        file.truncate(2**34)
    with pytest.raises(GameFileError, match="larger than a symbol file"):
        read_symbols(path)


def test_more_symbols_than_a_game_can_have_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "game.sym"
    path.write_text("".join(f"00:C000 s{number}\n" for number in range(300_000)), encoding="utf-8")
    with pytest.raises(GameFileError, match="more than 250,000 symbols"):
        read_symbols(path)


@pytest.mark.parametrize(
    "line", ["DEF far 0x" + "F" * 5_000, "ROM0 bank #" + "9" * 5_000 + ":", "0" * 9_000 + " name"]
)
def test_numbers_that_no_linker_writes_are_no_symbols(tmp_path: Path, line: str) -> None:
    path = tmp_path / "game.sym"
    path.write_text(f"{line}\n00:C0A0 score\n", encoding="utf-8")
    assert read_symbols(path) == {"score": Location(0xC0A0, 0)}
