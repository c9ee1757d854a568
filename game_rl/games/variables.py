"""Variables: where in memory they are, how they are read and written, and what is computed."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import chain
from typing import Any, NamedTuple

from game_rl.emulator.emulator import Emulator
from game_rl.emulator.rom import Rom
from game_rl.games.symbol_files import Location
from game_rl.games.variable_spec import SIGNED, UNSIGNED, Specs, VariableSpec, VariableType

Value = int | float | tuple[int, ...]
"""The value of a variable: a number, or an array of whole numbers."""

Values = Mapping[str, Any]
"""A `Value` by the name of its variable. Where a number is needed, game.yaml was checked for it."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A number at a known address.

    Attributes:
        mask: bits of an unsigned number that count, before the shift, or of each byte of digits;
            None for all.
        zero: the byte that stands for the digit 0.
    """

    name: str
    address: int
    bank: int | None
    type: VariableType
    n_bytes: int
    big_endian: bool = False
    bit: int = 0
    mask: int | None = None
    shift: int = 0
    zero: int = 0

    @property
    def numbers(self) -> "tuple[Variable, ...]":
        return (self,)

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
        if self.type == "digits":
            return self._with_digits(value, before)
        if self.mask is not None and value << self.shift & ~self.mask:
            raise ValueError(
                f"{value:,} has bits that the mask 0x{self.mask:X} leaves out; choose a value "
                "without them"
            )
        if self.type == "bit":
            return before & ~(1 << self.bit) | value << self.bit
        if self.type == "bcd":
            return int(str(value), 16)
        if self.mask is not None:
            return before & ~self.mask | value << self.shift
        return value % (1 << 8 * self.n_bytes)

    def digit_in(self, byte: int) -> int | None:
        """Return the digit that a byte of `digits` stands for; None if it is none, as a blank."""
        digit = (byte if self.mask is None else byte & self.mask) - self.zero
        return digit if 0 <= digit <= 9 else None

    def _with_digits(self, value: int, before: int) -> int:
        kept = 0 if self.mask is None else ~self.mask & 0xFF
        digits = str(value).zfill(self.n_bytes)
        pairs = zip(digits, before.to_bytes(self.n_bytes, "big"), strict=True)
        return int.from_bytes(
            bytes(byte & kept | self.zero + int(digit) for digit, byte in pairs), "big"
        )

    def _limits(self) -> tuple[int, int]:
        n_values = 1 << 8 * self.n_bytes
        if self.type in SIGNED:
            return -n_values // 2, n_values // 2 - 1
        if self.type == "bit":
            return 0, 1
        if self.type == "bcd":
            return 0, 100**self.n_bytes - 1
        if self.type == "digits":
            return 0, 10**self.n_bytes - 1
        return 0, (n_values - 1 if self.mask is None else self.mask) >> self.shift

    def _most_significant_first(self) -> range:
        last = self.address + self.n_bytes - 1
        if self.big_endian:
            return range(self.address, last + 1)
        return range(last, self.address - 1, -1)

    def _decode(self, raw: int) -> int:
        if self.type in UNSIGNED:
            return raw if self.mask is None else (raw & self.mask) >> self.shift
        if self.type == "bit":
            return raw >> self.bit & 1
        if self.type == "bcd":
            # a nibble above 9, which no score has, counts as is
            return sum((raw >> 4 * n & 0xF) * 10**n for n in range(2 * self.n_bytes))
        if self.type == "digits":
            value = 0
            for byte in raw.to_bytes(self.n_bytes, "big"):
                value = 10 * value + (self.digit_in(byte) or 0)
            return value
        n_bits = 8 * self.n_bytes
        return raw - (raw >> n_bits - 1 << n_bits)


@dataclass(frozen=True, slots=True)
class NumberArray:
    """Numbers of one type at several addresses."""

    name: str
    numbers: tuple[Variable, ...]

    def read(self, emulator: Emulator) -> tuple[int, ...]:
        return tuple(number.read(emulator) for number in self.numbers)


_BITS_OF_BYTE = tuple(tuple(byte >> bit & 1 for bit in range(8)) for byte in range(256))


@dataclass(frozen=True, slots=True)
class BitArray:
    """The bits of some bytes, the lowest bit of the first byte first."""

    name: str
    address: int
    bank: int | None
    n_bytes: int

    @property
    def numbers(self) -> tuple[Variable, ...]:
        return ()

    def read(self, emulator: Emulator) -> tuple[int, ...]:
        addresses = range(self.address, self.address + self.n_bytes)
        found = (_BITS_OF_BYTE[emulator.read(a, bank=self.bank)] for a in addresses)
        return tuple(chain.from_iterable(found))


MemoryVariable = Variable | NumberArray | BitArray


def as_tuple(value: Value) -> tuple[int | float, ...]:
    """Return the numbers of an array, or the only one."""
    return value if isinstance(value, tuple) else (value,)


def numbers_of(values: Values) -> dict[str, int | float]:
    """Return the values that are numbers."""
    return {name: value for name, value in values.items() if not isinstance(value, tuple)}


def place_variable(
    name: str, spec: VariableSpec, location: Location, *, rom: Rom, is_colour: bool
) -> Variable | BitArray:
    """Return the variable at `location`.

    Raises:
        ValueError: the variable cannot be there; the message says why.
    """
    bank = _bank_to_read(location, spec.n_bytes, rom=rom, is_colour=is_colour)
    if spec.type == "bits":
        return BitArray(name, location.address, bank, spec.n_bytes)
    has_all_bits = spec.mask is None and spec.shift is None
    return Variable(
        name=name,
        address=location.address,
        bank=bank,
        type=spec.type,
        n_bytes=spec.n_bytes,
        big_endian=spec.endian == "big",
        bit=spec.bit or 0,
        mask=None if has_all_bits else spec.mask or (1 << 8 * spec.n_bytes) - 1,
        shift=spec.shift or 0,
        zero=spec.zero or 0,
    )


def place_array(
    name: str, spec: VariableSpec, addresses: Sequence[int], *, rom: Rom, is_colour: bool
) -> NumberArray:
    """Return the array of the numbers at `addresses`.

    Raises:
        ValueError: a number cannot be where it is; the message says which and why.
    """
    found = (
        place_variable(
            f"{name}[{index}]", spec, Location(address, spec.bank), rom=rom, is_colour=is_colour
        )
        for index, address in enumerate(addresses)
    )
    return NumberArray(name, tuple(number for number in found if isinstance(number, Variable)))


def half_byte_warning(variable: MemoryVariable, rom: Rom) -> str | None:
    """Return why a variable's type does not fit memory of four bits a byte, or None if it does."""
    parts = (variable,) if isinstance(variable, BitArray) else variable.numbers
    wrong = [part for part in parts if part.address in _CARTRIDGE_RAM and not _fits_nibbles(part)]
    if not wrong or not rom.cartridge.has_half_bytes:
        return None
    kind = "bits" if isinstance(wrong[0], BitArray) else wrong[0].type
    return (
        f"variables.{variable.name}: 0x{wrong[0].address:04X} is in the RAM of "
        f"{rom.cartridge.name}, where a byte has four bits, so it cannot be of type "
        f"{kind}; make each byte a u8 of its own"
    )


def _fits_nibbles(variable: Variable | BitArray) -> bool:
    if isinstance(variable, BitArray):
        return False
    if variable.mask is not None:
        return not variable.mask & int("F0" * variable.n_bytes, 16)
    return (
        variable.type == "u8"
        or (variable.type == "bit" and variable.bit < 4)
        or (variable.type == "digits" and variable.zero + 9 < 16)
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
    last = address + n_bytes - 1
    if region.name == "ROM":
        raise ValueError(f"0x{address:04X} is in ROM, which never changes; RAM starts at 0x8000")
    if region.name == "echo RAM":
        raise ValueError(
            f"0x{address:04X} is an echo of work RAM; use 0x{address - 0x2000:04X} instead"
        )
    if region.name == "cartridge RAM" and rom.n_ram_banks == 0:
        raise ValueError(f"0x{address:04X} is in cartridge RAM, and this cartridge has none")
    if last >= region.end and not (region.end == 0xD000 and last < 0xE000):
        raise ValueError(f"{n_bytes} bytes at 0x{address:04X} reach beyond the {region.name}")
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


def switchable_banks(address: int, *, rom: Rom, is_colour: bool) -> range:
    """Return the banks of which the game maps one to this address; an empty range if it has one."""
    region = next(r for r in _REGIONS if r.start <= address < r.end)
    banks = _banks(region, rom=rom, is_colour=is_colour)
    is_switchable = region.name == "cartridge RAM" or is_colour
    return banks if len(banks) > 1 and is_switchable else range(0)


def _banks(region: _Region, *, rom: Rom, is_colour: bool) -> range:
    if region.name == "cartridge RAM":
        return range(rom.n_ram_banks)
    if region.start == 0x8000:
        return range(2 if is_colour else 1)
    if region.start == 0xD000:
        return range(1, 8) if is_colour else range(2)
    return range(1)


_OF_MANY: dict[str, Callable[[Iterable[Any]], int | float]] = {
    "count": lambda numbers: sum(number.bit_count() for number in numbers),
    "sum": sum,
    "minimum": min,
    "maximum": max,
}


@dataclass(frozen=True, slots=True)
class DerivedVariable:
    """A number that is computed from other variables.

    Attributes:
        operation: one of `OPERATIONS`.
        index: number of the bit of `bit_of`.
    """

    name: str
    operation: str
    sources: tuple[str, ...]
    index: int = 0

    def compute(self, values: Values) -> int | float:
        found: list[Any] = [values[source] for source in self.sources]
        match self.operation:
            case "bit_of":
                bits = found[0]
                return int(bits[self.index] if isinstance(bits, tuple) else bits >> self.index & 1)
            case "ratio":
                return float(found[0] / found[1]) if found[1] else 0.0
            case "difference":
                return found[0] - found[1]  # type: ignore[no-any-return]  # of two numbers
            case operation:
                return _OF_MANY[operation](chain.from_iterable(map(as_tuple, found)))


def derived_in_order(specs: Specs) -> tuple[DerivedVariable, ...]:
    """Return the variables that are computed, each after those that it is computed from."""
    found = []
    for name in TopologicalSorter({n: spec.sources for n, spec in specs.items()}).static_order():
        spec = specs[name]
        if spec.operation is not None:
            index = 0 if spec.bit_of is None else spec.bit_of.index
            found.append(DerivedVariable(name, spec.operation, spec.sources, index))
    return tuple(found)


class VariableReader:
    """Reads variables from memory and computes those that are computed from others.

    Args:
        variables: the game's variables in memory.
        specs: all of its variables, as game.yaml has them.
        names: the variables that are needed; None for all.
    """

    def __init__(
        self,
        variables: Iterable[MemoryVariable],
        specs: Specs,
        names: Collection[str] | None = None,
    ) -> None:
        derived = derived_in_order(specs)
        needed = set(specs if names is None else names)
        for one in reversed(derived):
            if one.name in needed:
                needed.update(one.sources)
        self._memory = tuple(v for v in variables if v.name in needed)
        self._derived = tuple(d for d in derived if d.name in needed)

    def read(self, emulator: Emulator) -> dict[str, Value]:
        values: dict[str, Value] = {v.name: v.read(emulator) for v in self._memory}
        for derived in self._derived:
            values[derived.name] = derived.compute(values)
        return values
