"""A variable of a game: its entry in game.yaml, where it is, and how its bytes are read."""

import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from game_rl.config.strict_model import Problem, StrictModel
from game_rl.emulator.emulator import Emulator
from game_rl.emulator.rom import Rom
from game_rl.errors import GameFileError

VariableType = Literal["u8", "u16", "u24", "u32", "s8", "s16", "bcd", "bit"]
_N_BYTES: dict[str, int] = {"u8": 1, "u16": 2, "u24": 3, "u32": 4, "s8": 1, "s16": 2, "bit": 1}


class VariableSpec(StrictModel):
    """One entry of `variables` in game.yaml."""

    symbol: str | None = None
    address: Annotated[int, Field(ge=0, le=0xFFFF)] | None = None
    bank: Annotated[int, Field(ge=0)] | None = None
    type: VariableType = "u8"
    endian: Literal["little", "big"] = "little"
    bytes: Annotated[int, Field(ge=1, le=4)] | None = None
    bit: Annotated[int, Field(ge=0, le=7)] | None = None

    def problems(self) -> Iterable[Problem]:
        if (self.symbol is None) == (self.address is None):
            yield Problem(("symbol",), "give either `symbol` or `address`")
        if (self.type == "bcd") != (self.bytes is not None):
            yield Problem(("bytes",), "`bytes` (1 to 4) goes with `type: bcd`, and only with it")
        if (self.type == "bit") != (self.bit is not None):
            yield Problem(("bit",), "`bit` (0 to 7) goes with `type: bit`, and only with it")

    @property
    def n_bytes(self) -> int:
        return self.bytes if self.bytes is not None else _N_BYTES[self.type]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable at a known address."""

    name: str
    address: int
    bank: int | None
    type: VariableType
    n_bytes: int
    big_endian: bool = False
    bit: int = 0

    def read(self, emulator: Emulator) -> int:
        if self.n_bytes == 1:
            return self._decode(emulator.read(self.address, bank=self.bank))
        raw = 0
        for address in self._most_significant_first():
            raw = raw << 8 | emulator.read(address, bank=self.bank)
        return self._decode(raw)

    def read_bytes(self, emulator: Emulator) -> bytes:
        """Return its bytes, the most significant first."""
        return bytes(emulator.read(a, bank=self.bank) for a in self._most_significant_first())

    def write(self, emulator: Emulator, raw: int) -> None:
        """Store the low `n_bytes` bytes of `raw`, the number whose bytes are in memory."""
        for address in reversed(self._most_significant_first()):
            emulator.write(address, raw & 0xFF, bank=self.bank)
            raw >>= 8

    def encode(self, value: int, before: int = 0) -> int:
        """Return the number to `write` so that `read` returns `value`.

        Args:
            value: the value to store.
            before: the number in memory (see `read_bytes`), whose other bits are kept where the
                variable has only some of them.

        Raises:
            ValueError: the variable cannot have this value; the message says which it can.
        """
        lowest, highest = self._limits()
        if not lowest <= value <= highest:
            raise ValueError(f"{value:,} does not fit: it can be {lowest:,} to {highest:,}")
        if self.type == "bit":
            return before & ~(1 << self.bit) | value << self.bit
        if self.type == "bcd":
            return int(str(value), 16)
        return value % (1 << 8 * self.n_bytes)

    def _limits(self) -> tuple[int, int]:
        n_values = 1 << 8 * self.n_bytes
        if self.type in {"s8", "s16"}:
            return -n_values // 2, n_values // 2 - 1
        if self.type == "bit":
            return 0, 1
        if self.type == "bcd":
            return 0, 100**self.n_bytes - 1
        return 0, n_values - 1

    def _most_significant_first(self) -> range:
        last = self.address + self.n_bytes - 1
        if self.big_endian:
            return range(self.address, last + 1)
        return range(last, self.address - 1, -1)

    def _decode(self, raw: int) -> int:
        if self.type == "s8":
            return raw - 0x100 if raw & 0x80 else raw
        if self.type == "s16":
            return raw - 0x10000 if raw & 0x8000 else raw
        if self.type == "bit":
            return raw >> self.bit & 1
        if self.type == "bcd":
            return _from_bcd(raw, n_digits=2 * self.n_bytes)
        return raw


def _from_bcd(raw: int, *, n_digits: int) -> int:
    """Return the sum of digit x 10^place; a nibble above 9, which no score has, counts as is."""
    return sum((raw >> 4 * place & 0xF) * 10**place for place in range(n_digits))


class Location(NamedTuple):
    address: int
    bank: int | None  # None if the file does not name one


def place_variable(
    name: str, spec: VariableSpec, location: Location, *, rom: Rom, is_colour: bool
) -> Variable:
    """Return the variable at `location`.

    Raises:
        ValueError: the variable cannot be there; the message says why.
    """
    bank = _bank_to_read(location, spec.n_bytes, rom=rom, is_colour=is_colour)
    return Variable(
        name=name,
        address=location.address,
        bank=bank,
        type=spec.type,
        n_bytes=spec.n_bytes,
        big_endian=spec.endian == "big",
        bit=spec.bit or 0,
    )


def half_byte_warning(variable: Variable, rom: Rom) -> str | None:
    """Return why a variable's type does not fit memory of four bits a byte, or None if it does."""
    is_there = rom.cartridge.has_half_bytes and variable.address in _CARTRIDGE_RAM
    fits = variable.type == "u8" or (variable.type == "bit" and variable.bit < 4)
    if fits or not is_there:
        return None
    return (
        f"variables.{variable.name}: 0x{variable.address:04X} is in the RAM of "
        f"{rom.cartridge.name}, where a byte has four bits, so it cannot be of type "
        f"{variable.type}; make each byte a u8 of its own"
    )


_CARTRIDGE_RAM = range(0xA000, 0xC000)


class _Region(NamedTuple):
    name: str
    start: int
    end: int  # exclusive


_REGIONS = (
    _Region("ROM", 0x0000, 0x8000),
    _Region("video RAM", 0x8000, 0xA000),
    _Region("cartridge RAM", 0xA000, 0xC000),
    _Region("work RAM", 0xC000, 0xD000),
    _Region("work RAM (bank 1 on)", 0xD000, 0xE000),
    _Region("echo RAM", 0xE000, 0xFE00),
    _Region("high memory", 0xFE00, 0x10000),
)


def _bank_to_read(location: Location, n_bytes: int, *, rom: Rom, is_colour: bool) -> int | None:
    """Return the bank to pass to `read`, or None to read the bank that is mapped."""
    address, bank = location
    region = next(r for r in _REGIONS if r.start <= address < r.end)
    _check_region(region, address, n_bytes, rom)
    allowed = _banks(region, rom=rom, is_colour=is_colour)
    if bank is not None and bank not in allowed:
        banks = f"{allowed[0]}" if len(allowed) == 1 else f"{allowed[0]} to {allowed[-1]}"
        raise ValueError(
            f"0x{address:04X} is in {region.name}, which has "
            f"bank{'s' if len(allowed) > 1 else ''} {banks} here, not {bank}"
        )
    if region.name == "cartridge RAM":
        return 0 if len(allowed) == 1 else bank
    switchable = is_colour and region.start in {0x8000, 0xD000}
    return bank if switchable else None


def _check_region(region: _Region, address: int, n_bytes: int, rom: Rom) -> None:
    last = address + n_bytes - 1
    if region.name == "ROM":
        raise ValueError(f"0x{address:04X} is in ROM, which never changes; RAM begins at 0x8000")
    if region.name == "echo RAM":
        raise ValueError(
            f"0x{address:04X} is an echo of work RAM; use 0x{address - 0x2000:04X} instead"
        )
    if region.name == "cartridge RAM" and rom.n_ram_banks == 0:
        raise ValueError(f"0x{address:04X} is in cartridge RAM, and this cartridge has none")
    if last >= region.end and not (region.end == 0xD000 and last < 0xE000):
        raise ValueError(f"{n_bytes} bytes at 0x{address:04X} reach beyond the {region.name}")


def _banks(region: _Region, *, rom: Rom, is_colour: bool) -> range:
    if region.name == "cartridge RAM":
        return range(rom.n_ram_banks)
    if region.start == 0x8000:
        return range(2 if is_colour else 1)
    if region.start == 0xD000:
        return range(1, 8) if is_colour else range(2)
    return range(1)


_LARGEST_FILE_BYTES = 16 * 2**20
_MOST_SYMBOLS = 250_000  # four times as many as Pokémon Crystal has
_SYM_LINE = re.compile(r"([0-9A-Fa-f]{2,3}):([0-9A-Fa-f]{4})\s+(\S+)")  # RGBDS, WLA-DX, no$gmb
_NOI_LINE = re.compile(r"DEF\s+(\S+)\s+0x([0-9A-Fa-f]{1,8})\b")  # SDCC
_SDCC_MAP_LINE = re.compile(r"([0-9A-Fa-f]{8})\s+(\S+)")
_RGBDS_MAP_BANK = re.compile(r"\w+ bank #(\d{1,3}):")
_RGBDS_MAP_LINE = re.compile(r"\$([0-9A-Fa-f]{4}) = (\S+)")


def read_symbols(path: Path) -> dict[str, Location]:
    """Read the symbols of a .sym (RGBDS), .noi (SDCC) or .map (both) file, by name.

    Raises:
        GameFileError: the file cannot be read, or it contains no symbol or too many.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise GameFileError(f"{path} is not a regular file; name a .sym, .noi or .map file")
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise GameFileError(
                f"{path} is larger than a symbol file can be (16 MiB); name another file"
            )
        with path.open(encoding="utf-8", errors="replace") as file:
            symbols = _parse(path, file)
    except FileNotFoundError:
        raise GameFileError(
            f"there is no symbol file {path}; correct `symbols`, or remove it and use addresses"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise GameFileError(
            f"the symbol file {path} cannot be read ({reason}); name another, or use addresses"
        ) from None
    if not symbols:
        raise GameFileError(
            f"{path} holds no symbol; .sym lines read `00:C0A0 name`, .noi lines `DEF name 0xC0A0`"
        )
    return symbols


def _parse(path: Path, lines: Iterable[str]) -> dict[str, Location]:
    symbols: dict[str, Location] = {}
    bank: int | None = None
    for line in map(str.strip, lines):
        if len(symbols) > _MOST_SYMBOLS:
            raise GameFileError(
                f"{path} holds more than {_MOST_SYMBOLS:,} symbols, which no game has; name "
                "another file, or use addresses"
            )
        if match := _SYM_LINE.match(line):
            symbols[match[3]] = Location(int(match[2], 16), int(match[1], 16))
        elif match := _NOI_LINE.match(line):
            symbols[match[1]] = _sdcc_location(match[2])
        elif match := _RGBDS_MAP_BANK.match(line):
            bank = int(match[1])
        elif match := _RGBDS_MAP_LINE.match(line):
            symbols[match[2]] = Location(int(match[1], 16), bank)
        elif match := _SDCC_MAP_LINE.match(line):
            symbols[match[2]] = _sdcc_location(match[1])
    return symbols


def _sdcc_location(digits: str) -> Location:
    """Split an SDCC address, whose bank is above the lower 16 bits; there is none for bank 0."""
    value = int(digits, 16)
    return Location(value & 0xFFFF, value >> 16 or None)


class DecimalCheck:
    """Looks at the bytes of the bcd variables while a game is played."""

    def __init__(self, variables: Iterable[Variable]) -> None:
        self._variables = tuple(v for v in variables if v.type == "bcd")
        self._no_decimal: dict[str, int] = {}  # a byte with a half above 9
        self._has_tens: set[str] = set()
        self._digits: dict[str, tuple[bytes, int]] = {}  # a reading of several single digits

    def look(self, emulator: Emulator) -> None:
        for variable in self._variables:
            self._note(variable, variable.read_bytes(emulator), variable.read(emulator))

    def _note(self, variable: Variable, found: bytes, value: int) -> None:
        name = variable.name
        for byte in found:
            if byte & 0x0F > 9 or byte >> 4 > 9:
                self._no_decimal.setdefault(name, byte)
        if any(byte >> 4 for byte in found):
            self._has_tens.add(name)
        elif sum(byte > 0 for byte in found) > 1:
            self._digits[name] = (found, value)

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
                    "keeps one digit in a byte: make each byte a u8 of its own"
                )
