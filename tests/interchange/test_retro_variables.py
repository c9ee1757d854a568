"""Types of stable-retro, each read from memory as its documents say."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.games.symbol_files import Location
from game_rl.games.variable_spec import VariableSpec
from game_rl.games.variables import place_variable
from game_rl.interchange.retro_variables import CannotBeSaidError, retro_variable
from tests.emulator.fake_emulator import FakeEmulator
from tests.envs.example import FAKE_ROM

ADDRESS = 0xC800
GREY_ROM = dataclasses.replace(FAKE_ROM, supports_colour=False)
COLOUR_ROM = dataclasses.replace(FAKE_ROM, supports_colour=True, n_ram_banks=4)


def our_value(entry: dict[str, Any], memory: bytes) -> int:
    emulator = FakeEmulator()
    for offset, byte in enumerate(memory):
        emulator.write(ADDRESS + offset, byte)
    fields = retro_variable({"address": ADDRESS, **entry}, FAKE_ROM)
    spec = VariableSpec.model_validate(fields)
    place = Location(fields["address"], fields.get("bank"))
    variable = place_variable("it", spec, place, rom=FAKE_ROM, is_colour=False)
    value = variable.read(emulator)
    assert isinstance(value, int)
    return value


def their_value(order: str, form: str, memory: bytes, mask: int | None) -> int:
    """Return what the documents say, digit by digit; the highest byte comes first."""
    half = len(memory) // 2
    high_first = {
        ">": memory,
        "><": memory[:half][::-1] + memory[half:][::-1],
        "<>": memory[half:] + memory[:half],
    }.get(order, memory[::-1])
    if order == ">=":  # the native order is the little one
        high_first = memory[:half][::-1] + memory[half:][::-1]
    if form == "d":
        value = int("".join(f"{byte:02x}" for byte in high_first))
    elif form == "n":
        value = int("".join(f"{byte % 16}" for byte in high_first))
    else:
        value = 0
        for byte in high_first:
            value = 256 * value + byte
        if form == "i" and high_first[0] >= 128:
            value -= 256 ** len(memory)
    if mask is None:
        return value
    masked = (value & mask) % 2**64
    return masked - 2**64 if masked >= 2**63 else masked  # its numbers have 64 bits and a sign


def memory_of(form: str, width: int) -> st.SearchStrategy[bytes]:
    decimals = {
        "d": st.integers(0, 99).map(lambda number: int(f"{number:02}", 16)),
        "n": st.tuples(st.integers(0, 15), st.integers(0, 9)).map(lambda two: 16 * two[0] + two[1]),
    }
    byte = decimals.get(form, st.integers(0, 255))
    return st.lists(byte, min_size=width, max_size=width).map(bytes)


@given(
    order=st.sampled_from(["<", ">", "><", "<>", ">=", "<=", "=", "|"]),
    form=st.sampled_from("iudn"),
    width=st.integers(1, 8),
    mask=st.none() | st.integers(0, 2**33) | st.sampled_from([0xFF, 0x1FF, 0xFFFF, 2**64 - 1]),
    data=st.data(),
)
def test_a_type_is_read_as_stable_retro_reads_it_or_refused(
    order: str, form: str, width: int, mask: int | None, data: st.DataObject
) -> None:
    memory = data.draw(memory_of(form, width))
    entry: dict[str, Any] = {"type": f"{order}{form}{width}"}
    if mask is not None:
        entry["mask"] = mask
    is_middle = width > 2 and order in ("><", "<>", ">=")
    is_wide = form in "iu" and width > 4
    is_masked_oddly = mask is not None and (
        form in "dn" or mask % 256**width == 0 or (form == "i" and 256**width <= mask < 2**64 - 1)
    )
    if is_middle or is_wide or is_masked_oddly:
        with pytest.raises(CannotBeSaidError):
            our_value(entry, memory)
    else:
        assert our_value(entry, memory) == their_value(order, form, memory, mask)


@pytest.mark.parametrize("text", ["|u1", "<u2", ">u3", "=u4", "|i1", ">i2", "<d5", ">n6", "|n1"])
def test_the_types_of_game_boy_games_can_be_said(text: str) -> None:
    assert retro_variable({"address": ADDRESS, "type": text}, FAKE_ROM)["address"] == ADDRESS


@pytest.mark.parametrize("text", ["u2", "?u4", ">q2", "=i0", "<u9", "", None, 3, "<u2 ", "<U2"])
def test_what_is_no_type_is_named(text: object) -> None:
    with pytest.raises(CannotBeSaidError, match="is not a type of stable-retro"):
        retro_variable({"address": ADDRESS, "type": text}, FAKE_ROM)


@pytest.mark.parametrize(
    ("address", "bank"),
    [(0x9800, 0), (0xA000, 0), (0xC000, None), (0xDFFF, 1), (0xFE10, None), (0xFFFE, None)],
)
def test_its_core_shows_one_bank_of_memory_with_several(address: int, bank: int | None) -> None:
    entry = {"address": address, "type": "|u1"}
    assert retro_variable(entry, COLOUR_ROM).get("bank") == bank
    assert "bank" not in retro_variable(entry, GREY_ROM)


@pytest.mark.parametrize("address", [0x0000, 0x7FFF, 0xE000, 0xFEA0, 0xFF00, 0x10000, -1])
def test_memory_that_its_core_does_not_show_is_told(address: int) -> None:
    with pytest.raises(CannotBeSaidError, match="exposes no memory at"):
        retro_variable({"address": address, "type": "|u1"}, FAKE_ROM)


@pytest.mark.parametrize("address", [None, "0xC000", 1.5, True, [1]])
def test_an_address_that_is_none_is_told(address: object) -> None:
    with pytest.raises(CannotBeSaidError, match="is not a whole number"):
        retro_variable({"address": address, "type": "|u1"}, FAKE_ROM)
