import dataclasses
from typing import Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from game_rl.emulator.rom import SUPPORTED_CARTRIDGES
from game_rl.games.start_state import set_variable
from game_rl.games.symbol_files import Location
from game_rl.games.variable_spec import VariableSpec
from game_rl.games.variables import (
    BitArray,
    Variable,
    half_byte_warning,
    place_array,
    place_variable,
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
    variable = place_variable(
        "it", spec, Location(address, spec.bank), rom=FAKE_ROM, is_colour=is_colour
    )
    assert isinstance(variable, Variable)
    return variable


def variable_of(**spec: object) -> Variable:
    return place(VariableSpec.model_validate({"address": ADDRESS, **spec}))


def read(memory: bytes, **spec: object) -> int:
    return variable_of(**spec).read(emulator_with(memory))


@pytest.mark.parametrize(
    ("kind", "n_bytes", "signed"),
    [
        ("u8", 1, False),
        ("u16", 2, False),
        ("u24", 3, False),
        ("u32", 4, False),
        ("s8", 1, True),
        ("s16", 2, True),
        ("s24", 3, True),
        ("s32", 4, True),
    ],
)
@given(memory=st.binary(min_size=4, max_size=4), endian=st.sampled_from(["little", "big"]))
@example(memory=b"\x80\x00\x00\x00", endian="big")  # the lowest signed number
def test_integers_are_read_as_python_reads_them(
    kind: str, n_bytes: int, signed: bool, memory: bytes, endian: Endian
) -> None:
    expected = int.from_bytes(memory[:n_bytes], endian, signed=signed)
    assert read(memory, type=kind, endian=endian) == expected


@given(st.integers(1, 8), st.data(), st.sampled_from(["little", "big"]))
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


@given(st.integers(1, 8), st.integers(0, 246), st.data(), st.sampled_from(["little", "big"]))
def test_digits_are_the_number_they_spell_and_other_bytes_are_0(
    n_bytes: int, zero: int, data: st.DataObject, endian: Endian
) -> None:
    text = data.draw(st.text("0123456789 ", min_size=n_bytes, max_size=n_bytes))
    blank = data.draw(st.sampled_from(sorted({*range(256)} - {*range(zero, zero + 10)})))
    memory = bytes(blank if character == " " else zero + int(character) for character in text)
    memory = memory if endian == "big" else memory[::-1]
    found = read(memory, type="digits", bytes=n_bytes, zero=zero, endian=endian)
    assert found == int(text.replace(" ", "0"))


@given(st.binary(min_size=4, max_size=4), st.integers(1, 4), st.data())
def test_mask_and_shift_take_digits_out_of_the_binary_number(
    memory: bytes, n_bytes: int, data: st.DataObject
) -> None:
    lowest = data.draw(st.integers(0, 8 * n_bytes - 1))
    mask = data.draw(st.integers(1, 2 ** (8 * n_bytes - lowest) - 1)) << lowest
    number = f"{int.from_bytes(memory[:n_bytes], 'big'):0{8 * n_bytes}b}"
    pairs = zip(number, f"{mask:0{8 * n_bytes}b}", strict=True)
    kept = "".join(digit if is_kept == "1" else "0" for digit, is_kept in pairs)
    spec = {"type": f"u{8 * n_bytes}", "endian": "big", "mask": mask, "shift": lowest}
    assert read(memory, **spec) == int(kept[: len(kept) - lowest], 2)


@given(st.integers(0, 10**6 - 1), st.binary(min_size=6, max_size=6), st.booleans())
def test_a_mask_of_digits_keeps_the_low_half_of_each_byte(
    number: int, memory: bytes, big: bool
) -> None:
    high_halves = [byte >> 4 for byte in memory]
    held = bytes(
        int(f"{high:x}{d}", 16) for high, d in zip(high_halves, f"{number:06}", strict=True)
    )
    spec = {"type": "digits", "bytes": 6, "mask": 0x0F, "endian": "big" if big else "little"}
    assert read(held if big else held[::-1], **spec) == number


@given(st.binary(min_size=1, max_size=40))
def test_bits_are_those_of_each_byte_from_the_lowest(memory: bytes) -> None:
    spec = VariableSpec(address=ADDRESS, type="bits", bytes=len(memory))
    bits = place_variable("it", spec, Location(ADDRESS, None), rom=FAKE_ROM, is_colour=False)
    assert isinstance(bits, BitArray)
    text = "".join(f"{byte:08b}"[::-1] for byte in memory)
    assert "".join(map(str, bits.read(emulator_with(memory)))) == text


@given(st.binary(min_size=8, max_size=8), st.lists(st.integers(0, 6), min_size=1, max_size=9))
def test_an_array_has_the_number_at_each_address(memory: bytes, offsets: list[int]) -> None:
    addresses = [ADDRESS + offset for offset in offsets]
    spec = VariableSpec.model_validate({"addresses": addresses, "type": "u16", "mask": 0x0FF0})
    array = place_array("it", spec, addresses, rom=FAKE_ROM, is_colour=False)
    numbers = tuple(memory[o] + 256 * memory[o + 1] for o in offsets)
    assert array.read(emulator_with(memory)) == tuple(number & 0x0FF0 for number in numbers)


_WRITABLE: tuple[dict[str, Any], ...] = (
    *({"type": kind} for kind in ("u8", "u16", "u24", "u32", "s8", "s16", "s24", "s32")),
    *({"type": "bcd", "bytes": n_bytes} for n_bytes in (1, 3, 8)),
    *({"type": "digits", "bytes": n_bytes, "zero": 0x80} for n_bytes in (1, 3, 8)),
    {"type": "digits", "bytes": 3, "mask": 0x0F},
    {"type": "digits", "bytes": 3, "zero": 0x30, "mask": 0x7F},
    {"type": "bit", "bit": 5},
    {"type": "u8", "mask": 0xF0, "shift": 4},
    {"type": "u16", "mask": 0x0FF0},
    {"type": "u24", "shift": 3},
)


@given(st.sampled_from(_WRITABLE), st.booleans(), st.binary(min_size=9, max_size=9), st.data())
def test_a_value_that_is_read_is_encoded_to_bytes_that_read_so(
    spec: dict[str, Any], big: bool, memory: bytes, data: st.DataObject
) -> None:
    variable = variable_of(**spec, endian="big" if big else "little")
    value = variable.read(emulator_with(data.draw(st.binary(min_size=8, max_size=8))))
    if spec["type"] == "bcd":
        value %= 100 ** spec["bytes"]  # a nibble above 9 counts as is, and cannot be written
    emulator = emulator_with(memory)
    before = int.from_bytes(variable.read_bytes(emulator), "big")
    variable.write(emulator, variable.encode(value, before))
    assert variable.read(emulator) == value
    assert emulator.read(ADDRESS + variable.n_bytes) == memory[variable.n_bytes]
    after = int.from_bytes(variable.read_bytes(emulator), "big")
    assert not (before ^ after) & ~_own_bits(spec, variable.n_bytes), "other bits are kept"


def _own_bits(spec: dict[str, Any], n_bytes: int) -> int:
    every = 256**n_bytes - 1
    if spec["type"] == "digits":
        return int(f"{spec.get('mask', 0xFF):02x}" * n_bytes, 16)
    return 1 << spec["bit"] if spec["type"] == "bit" else int(spec.get("mask", every))


@pytest.mark.parametrize(
    ("spec", "lowest", "highest"),
    [
        ({"type": "u8"}, 0, 255),
        ({"type": "s16"}, -32_768, 32_767),
        ({"type": "s24"}, -8_388_608, 8_388_607),
        ({"type": "bcd", "bytes": 3}, 0, 999_999),
        ({"type": "digits", "bytes": 4}, 0, 9_999),
        ({"type": "bit", "bit": 7}, 0, 1),
        ({"type": "u8", "mask": 0xF0, "shift": 4}, 0, 15),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_the_limits(
    spec: dict[str, Any], lowest: int, highest: int
) -> None:
    variable = variable_of(**spec)
    for value in (lowest, highest):
        variable.encode(value)
    for value in (lowest - 1, highest + 1):
        with pytest.raises(ValueError, match=f"it can be {lowest:,} to {highest:,}"):
            variable.encode(value)


def test_a_value_with_bits_that_the_mask_leaves_out_is_refused() -> None:
    with pytest.raises(ValueError, match="the mask 0x5 leaves out"):
        variable_of(type="u8", mask=0b101).encode(0b010)


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
        ({"type": "s24"}, False),
        ({"type": "digits", "bytes": 4}, True),
        ({"type": "digits", "bytes": 4, "zero": 0x10}, False),
        ({"type": "digits", "bytes": 4, "mask": 0x0F}, True),
        ({"type": "digits", "bytes": 4, "mask": 0x1F}, False),
        ({"mask": 0x0C, "shift": 2}, True),
        ({"mask": 0x1C}, False),
        ({"type": "u16", "mask": 0x0F0F}, True),
        ({"type": "bits", "bytes": 2}, False),
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


def test_an_array_in_half_bytes_is_named_with_its_first_wrong_address() -> None:
    for kind, says in (("u8", None), ("u16", "variables.it: 0xA010 is in the RAM of MBC2")):
        spec = VariableSpec.model_validate({"addresses": [0xC000, 0xA010], "type": kind})
        array = place_array("it", spec, spec.addresses or (), rom=MBC2, is_colour=False)
        warning = half_byte_warning(array, MBC2)
        assert warning is None if says is None else str(warning).startswith(says)
