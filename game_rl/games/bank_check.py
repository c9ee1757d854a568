"""Finds variables whose memory has several banks, of which game.yaml names none."""

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
