"""Finds variables whose memory is not as game.yaml says: in several banks, or no digits."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from game_rl.emulator.emulator import Emulator
from game_rl.emulator.rom import Rom
from game_rl.games.variables import BitArray, MemoryVariable, Variable, switchable_banks

_COMPARED_BYTES = 64  # of each variable, as a reading of every bank takes time


@dataclass
class _Watched:
    """A variable without a bank.

    Attributes:
        places: the numbers or bits of it that are in memory with banks.
        banks: the banks that there are.
        fitting: banks that held what was read, at every reading so far.
        in_no_bank: what was read at the first reading at which no bank held it, or None.
    """

    name: str
    places: tuple[Variable | BitArray, ...]
    banks: range
    fitting: set[int]
    in_no_bank: bytes | None = None

    def look(self, emulator: Emulator) -> None:
        addresses = [a for p in self.places for a in range(p.address, p.address + p.n_bytes)]
        addresses = addresses[:_COMPARED_BYTES]
        found = bytes(emulator.read(a) for a in addresses)
        fits = {
            bank
            for bank in self.banks
            if all(emulator.read(a, bank=bank) == found[i] for i, a in enumerate(addresses))
        }
        self.fitting &= fits
        if not fits and self.in_no_bank is None:
            self.in_no_bank = found

    @property
    def where(self) -> str:
        return (
            f"variables.{self.name}: 0x{self.places[0].address:04X} is in memory with the banks "
            f"{self.banks[0]} to {self.banks[-1]}, and no `bank` is named"
        )


class BankCheck:
    """Looks at the variables without a bank while a game is played."""

    def __init__(self, variables: Iterable[MemoryVariable], rom: Rom, *, is_colour: bool) -> None:
        self._watched: list[_Watched] = []
        for variable in variables:
            parts = (variable,) if isinstance(variable, BitArray) else variable.numbers
            banks = [
                (part, switchable_banks(part.address, rom=rom, is_colour=is_colour))
                for part in parts
                if part.bank is None
            ]
            places = tuple(part for part, several in banks if several)
            if places:
                several = next(several for _, several in banks if several)
                self._watched.append(_Watched(variable.name, places, several, set(several)))

    def look(self, emulator: Emulator) -> None:
        for watched in self._watched:
            watched.look(emulator)

    def warnings(self) -> Iterator[str]:
        """Yield what may be right, with the bank to name."""
        for one in self._watched:
            if len(one.fitting) == 1:
                (bank,) = one.fitting
                way_out = f"at every reading it was bank {bank}: write `bank: {bank}`"
            elif one.fitting:
                shown = ", ".join(map(str, sorted(one.fitting)))
                way_out = f"the banks {shown} fit what was read: name the right one"
            else:
                continue
            yield f"{one.where}, so it is the bank that the game has mapped just then; {way_out}"

    def errors(self) -> Iterator[str]:
        """Yield what cannot be right."""
        for one in self._watched:
            if one.in_no_bank is not None:
                yield (
                    f"{one.where}, and what was read ({one.in_no_bank[:4].hex(' ')}) was in none "
                    "of them, as the game keeps this memory closed; name its `bank`"
                )
            elif not one.fitting:
                yield (
                    f"{one.where}; the game maps one and then another, so what was read is not one "
                    "variable; name its `bank`"
                )


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
