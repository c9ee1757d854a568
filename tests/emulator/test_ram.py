"""A copy of all RAM, against bytes that are read one by one."""

from contextlib import closing
from pathlib import Path

import pytest

from game_rl.emulator.pyboy_emulator import PyBoyEmulator
from game_rl.emulator.ram import ram_of
from game_rl.emulator.rom import read_rom
from game_rl.errors import EmulatorError
from tests.emulator.roms import make_rom


@pytest.mark.parametrize(
    ("rom", "colour", "n_bytes"),
    [
        ({}, False, 0x2000 + 127),
        ({"colour_flag": 0x80}, True, 0x8000 + 127),
        ({"cartridge": 0x06}, False, 0x2000 + 127 + 0x200),
        ({"cartridge": 0x1B, "ram_size": 0x03}, False, 0x2000 + 127 + 0x8000),
        ({"cartridge": 0x09, "ram_size": 0x01}, False, 0x2000 + 127 + 0x800),
    ],
)
def test_a_copy_of_ram_has_every_byte_of_every_bank(
    tmp_path: Path, rom: dict[str, int], colour: bool, n_bytes: int
) -> None:
    path = tmp_path / "a.gb"
    path.write_bytes(make_rom(**rom))  # type: ignore[arg-type]
    cartridge = read_rom(path)
    ram = ram_of(cartridge, colour=colour)
    assert ram.n_bytes == n_bytes
    with closing(PyBoyEmulator(cartridge, colour=colour)) as emulator:
        emulator.tick(60, render=False)
        for index in range(0, n_bytes, 97):
            address = int(ram.addresses[index])
            emulator.write(address, (7 * index + 1) % 256, bank=ram.bank_of(index))
        copy = ram.read(emulator).tolist()
        for index in (*range(0, n_bytes, 97), *range(1, n_bytes, 101), n_bytes - 1):
            bank = ram.bank_of(index)
            address = int(ram.addresses[index])
            assert copy[index] == emulator.read(address, bank=bank)
            assert ram.index_of(address, bank) == index
        assert emulator.read_range(0xC000, 0xC001) == bytes([copy[0]])
        with pytest.raises(EmulatorError, match="empty"):
            emulator.read_range(0xC001, 0xC001)
