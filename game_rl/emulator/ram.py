"""All RAM of a console that a game can keep numbers in: its regions, its banks, a copy of it.

Echo RAM, video RAM, sprite attributes and hardware registers are left out.
Source: Pan Docs, "Memory Map".
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.emulator import Emulator
from game_rl.emulator.rom import Rom

_HALF_BYTES_RAM = 0x200
_SMALL_RAM = 0x800


class RamRegion(NamedTuple):
    """Addresses from `start` up to but not including `end`, of one bank.

    Attributes:
        bank: the bank to read; None where there is only one.
    """

    start: int
    end: int
    bank: int | None


class Ram:
    """The RAM of a console with a cartridge in it, as one array of bytes.

    Attributes:
        regions: where the bytes are, in the order of the array.
        addresses: int64 [n_bytes], the address of each byte.
        region_numbers: int64 [n_bytes], the index in `regions` of each byte.
    """

    def __init__(self, regions: tuple[RamRegion, ...]) -> None:
        self.regions = regions
        self.addresses = np.concatenate([np.arange(r.start, r.end) for r in regions])
        sizes = [region.end - region.start for region in regions]
        self.region_numbers = np.repeat(np.arange(len(regions)), sizes)
        self._firsts = np.cumsum([0, *sizes[:-1]]).tolist()

    @property
    def n_bytes(self) -> int:
        return len(self.addresses)

    def read(self, emulator: Emulator) -> NDArray[np.uint8]:
        """Return a copy of all bytes, uint8 [n_bytes]."""
        parts = [emulator.read_range(r.start, r.end, bank=r.bank) for r in self.regions]
        return np.frombuffer(b"".join(parts), np.uint8)

    def bank_of(self, index: int) -> int | None:
        region: int = self.region_numbers[index]
        return self.regions[region].bank

    def index_of(self, address: int, bank: int | None = None) -> int | None:
        """Return where a byte is in the array; None if it is not in it.

        Args:
            bank: None for the first bank that has the address.
        """
        for first, region in zip(self._firsts, self.regions, strict=True):
            if region.start <= address < region.end and bank in (None, region.bank):
                return int(first + address - region.start)
        return None


def ram_of(rom: Rom, *, colour: bool) -> Ram:
    """Return the RAM of the console: work RAM, high RAM, then that of the cartridge."""
    found = [RamRegion(0xC000, 0xE000, None)]
    if colour:
        banks = (RamRegion(0xD000, 0xE000, bank) for bank in range(1, 8))
        found = [RamRegion(0xC000, 0xD000, None), *banks]
    found.append(RamRegion(0xFF80, 0xFFFF, None))
    end = 0xC000
    if rom.cartridge.has_half_bytes:
        end = 0xA000 + _HALF_BYTES_RAM
    elif rom.has_small_ram:
        end = 0xA000 + _SMALL_RAM
    found += [RamRegion(0xA000, end, bank) for bank in range(rom.n_ram_banks)]
    return Ram(tuple(found))
