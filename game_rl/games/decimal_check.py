"""Finds variables whose bytes are not the decimal digits that their type says."""

from collections.abc import Iterable, Iterator

from game_rl.emulator.emulator import Emulator
from game_rl.games.variables import MemoryVariable, Variable


class DecimalCheck:
    """Looks at the bytes of the bcd and digits variables while a game is played."""

    def __init__(self, variables: Iterable[MemoryVariable]) -> None:
        numbers = [number for variable in variables for number in variable.numbers]
        self._variables = tuple(v for v in numbers if v.type == "bcd")
        self._of_digits = tuple(v for v in numbers if v.type == "digits")
        self._no_digit: dict[str, tuple[int, int]] = {}  # a byte after a digit, and its zero
        self._no_decimal: dict[str, int] = {}  # a byte with a half above 9
        self._has_tens: set[str] = set()
        self._digits: dict[str, tuple[bytes, int]] = {}  # a reading of several single digits

    def look(self, emulator: Emulator) -> None:
        for variable in self._variables:
            self._note(variable, variable.read_bytes(emulator), variable.read(emulator))
        for variable in self._of_digits:
            self._note_digits(variable, variable.read_bytes(emulator))

    def _note(self, variable: Variable, found: bytes, value: int) -> None:
        name = variable.name
        for byte in found:
            if byte & 0x0F > 9 or byte >> 4 > 9:
                self._no_decimal.setdefault(name, byte)
        if any(byte >> 4 for byte in found):
            self._has_tens.add(name)
        elif sum(byte > 0 for byte in found) > 1:
            self._digits[name] = (found, value)

    def _note_digits(self, variable: Variable, found: bytes) -> None:
        """Note a byte that is no digit and follows one; blanks before a number are common."""
        has_begun = False
        for byte in found:
            is_digit = 0 <= byte - variable.zero <= 9
            if has_begun and not is_digit:
                self._no_digit.setdefault(variable.name, (byte, variable.zero))
            has_begun = has_begun or is_digit

    def warnings(self) -> Iterator[str]:
        for name, byte in self._no_decimal.items():
            yield (
                f"variables.{name}: held 0x{byte:02X}, which is not two decimal digits, so it is "
                "no bcd; correct its type or its address"
            )
        for name, (found, value) in self._digits.items():
            if name not in self._has_tens:
                digits = "".join(f"{byte}" for byte in found)
                yield (
                    f"variables.{name}: no byte held more than one digit; bcd reads "
                    f"{found.hex(' ')} as {value:,}, and if the screen shows {digits}, the game "
                    "keeps one digit in a byte: write `type: digits`"
                )
        for name, (byte, zero) in self._no_digit.items():
            yield (
                f"variables.{name}: held 0x{byte:02X} after a digit, and the digits 0 to 9 are "
                f"0x{zero:02X} to 0x{zero + 9:02X}; correct its zero, bytes, endian or address"
            )
