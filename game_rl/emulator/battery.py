"""A battery file: what the RAM of a cartridge holds while the console is off (.sav, .ram)."""

from game_rl.emulator.emulator import Emulator
from game_rl.emulator.rom import Rom

RAM_BANK_BYTES = 8_192
_SMALL_RAM_BYTES = 2_048
_CLOCK_BYTES = (44, 48)  # what other emulators append for a cartridge with a clock
LARGEST_BATTERY_BYTES = 16 * RAM_BANK_BYTES + max(_CLOCK_BYTES)

_RAM_START = 0xA000


def battery_ram(data: bytes, rom: Rom) -> bytes:
    """Return the RAM in a battery file, without a clock, which stands still here.

    Raises:
        ValueError: the cartridge keeps no such file, or the file has another size.
    """
    cartridge = rom.cartridge
    if cartridge.has_half_bytes:
        raise ValueError(f"PyBoy's states lack the RAM of {cartridge.name}; write only a `script`")
    if not cartridge.has_battery or not rom.n_ram_banks:
        raise ValueError(
            f"the cartridge ({cartridge.name}) has no RAM with a battery, so there is no such file "
            "of this game; write only a `script`"
        )
    sizes = [rom.n_ram_banks * RAM_BANK_BYTES]
    if rom.has_small_ram:
        sizes.append(_SMALL_RAM_BYTES)
    for size in sizes:
        more = _CLOCK_BYTES if cartridge.has_clock else ()
        if len(data) - size in (0, *more):
            return data[:size]
    expected = " or ".join(f"{size:,}" for size in sizes)
    clock = " and 44 or 48 more for its clock" if cartridge.has_clock else ""
    raise ValueError(
        f"it has {len(data):,} bytes, and the RAM of the cartridge ({cartridge.name}) has "
        f"{expected}{clock}; name the file that was saved for this ROM"
    )


def put_battery_ram(emulator: Emulator, ram: bytes) -> None:
    """Fill the RAM of the cartridge, bank by bank."""
    for place, byte in enumerate(ram):
        bank, offset = divmod(place, RAM_BANK_BYTES)
        emulator.write(_RAM_START + offset, byte, bank=bank)
