from game_rl.games.decimal_check import DecimalCheck
from game_rl.games.variables import NumberArray, Variable
from tests.emulator.fake_emulator import FakeEmulator

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
