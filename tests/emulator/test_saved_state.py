import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.emulator.saved_state import is_packed, pack_state, unpack_state
from game_rl.errors import EmulatorError

OWNER = "ab" * 32


@given(st.binary(max_size=2_000), st.booleans())
def test_what_was_packed_is_unpacked(raw: bytes, is_colour: bool) -> None:
    packed = pack_state(raw, rom_sha256=OWNER, is_colour=is_colour)
    assert is_packed(packed)
    assert unpack_state(packed, rom_sha256=OWNER, is_colour=is_colour) == raw


@given(st.binary(max_size=300), st.data())
def test_any_cut_is_noticed(raw: bytes, data: st.DataObject) -> None:
    packed = pack_state(raw, rom_sha256=OWNER, is_colour=False)
    cut = data.draw(st.integers(0, len(packed) - 1))
    with pytest.raises(EmulatorError):
        unpack_state(packed[:cut], rom_sha256=OWNER, is_colour=False)


@given(st.binary(max_size=300), st.data())
def test_a_changed_byte_is_noticed_or_changes_nothing(raw: bytes, data: st.DataObject) -> None:
    changed = bytearray(pack_state(raw, rom_sha256=OWNER, is_colour=False))
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        unpacked = unpack_state(bytes(changed), rom_sha256=OWNER, is_colour=False)
    except EmulatorError:
        return
    assert unpacked == raw  # a bit that zlib does not use


def test_a_state_of_other_hardware_is_refused() -> None:
    packed = pack_state(b"state", rom_sha256=OWNER, is_colour=True)
    with pytest.raises(EmulatorError, match="cgb hardware"):
        unpack_state(packed, rom_sha256=OWNER, is_colour=False)


def test_a_state_that_would_fill_the_memory_is_refused() -> None:
    packed = pack_state(bytes(64 * 2**20), rom_sha256=OWNER, is_colour=False)
    assert len(packed) < 2**20
    with pytest.raises(EmulatorError, match="damaged"):
        unpack_state(packed, rom_sha256=OWNER, is_colour=False)


def test_bytes_behind_the_end_are_noticed() -> None:
    packed = pack_state(b"state", rom_sha256=OWNER, is_colour=False)
    with pytest.raises(EmulatorError, match="damaged"):
        unpack_state(packed + b"\0", rom_sha256=OWNER, is_colour=False)
