"""An entry of `variables` in game.yaml."""

from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import Annotated, Literal

from pydantic import Field

from game_rl.config.strict_model import Problem, StrictModel

VariableType = Literal[
    "u8", "u16", "u24", "u32", "s8", "s16", "s24", "s32", "bcd", "digits", "bit", "bits"
]
UNSIGNED: tuple[VariableType, ...] = ("u8", "u16", "u24", "u32")
SIGNED: tuple[VariableType, ...] = ("s8", "s16", "s24", "s32")
_N_BYTES = {name: n for names in (UNSIGNED, SIGNED) for n, name in enumerate(names, 1)} | {"bit": 1}
_MOST_BYTES = {"bcd": 8, "digits": 8, "bits": 1024}
_HIGHEST_ZERO = 0xFF - 9


class BitOf(StrictModel):
    """`{variable: events, index: 27}`: bit 27 of an array of bits, or of an unsigned number."""

    variable: str
    index: Annotated[int, Field(ge=0, lt=8 * _MOST_BYTES["bits"])]


Names = str | Annotated[tuple[str, ...], Field(min_length=1)]
_Two = Annotated[tuple[str, ...], Field(min_length=2, max_length=2)]

OPERATIONS = ("count", "sum", "minimum", "maximum", "ratio", "difference", "bit_of")
"""The keys of variables that are computed from others."""

TAKES_ARRAYS = ("count", "sum", "minimum", "maximum", "bit_of")
"""The operations whose variables may be arrays."""

_PLACES = ("symbol", "address", "addresses")
_OF_MEMORY = (*_PLACES, "bank", "type", "endian", "bytes", "bit", "mask", "shift", "zero")


class VariableSpec(StrictModel):
    """One entry of `variables` in game.yaml: a place in memory, or an operation on others."""

    symbol: str | None = None
    """Name in the symbol file, in place of `address`."""
    address: Annotated[int, Field(ge=0, le=0xFFFF)] | None = None
    addresses: (
        Annotated[
            tuple[Annotated[int, Field(ge=0, le=0xFFFF)], ...], Field(min_length=1, max_length=256)
        ]
        | None
    ) = None
    """Addresses of an array, whose numbers are all of this `type`."""
    bank: Annotated[int, Field(ge=0)] | None = None
    type: VariableType = "u8"
    endian: Literal["little", "big"] = "little"
    bytes: Annotated[int, Field(ge=1, le=1024)] | None = None
    """How many bytes: `bcd` and `digits` have 1 to 8, `bits` up to 1,024."""
    bit: Annotated[int, Field(ge=0, le=7)] | None = None
    """Number of the bit of `type: bit`; 0 is the lowest."""
    mask: Annotated[int, Field(ge=1, le=0xFFFFFFFF)] | None = None
    """Bits of an unsigned number, or of each byte of `digits`, that count; the others belong to
    something else."""
    shift: Annotated[int, Field(ge=0, le=31)] | None = None
    """How many bits the masked number is moved to the right."""
    zero: Annotated[int, Field(ge=0, le=_HIGHEST_ZERO)] | None = None
    """Byte that stands for the digit 0 in `type: digits`, often a tile number; 0 by default."""
    count: str | None = None
    """How many bits are set: of an array of bits, or of an unsigned number."""
    sum: Names | None = None
    """Sum of an array, or of the variables in a list."""
    minimum: Names | None = None
    """Lowest number of an array, or of the variables in a list."""
    maximum: Names | None = None
    """Highest number of an array, or of the variables in a list."""
    ratio: _Two | None = None
    """First variable divided by the second, 0 where the second is 0."""
    difference: _Two | None = None
    """First variable minus the second."""
    bit_of: BitOf | None = None
    """One bit of an array of bits or of an unsigned number, 0 or 1."""

    def problems(self) -> Iterable[Problem]:
        given = [key for key in OPERATIONS if getattr(self, key) is not None]
        if given:
            yield from self._operation_problems(given)
        else:
            yield from self._memory_problems()

    def _operation_problems(self, given: list[str]) -> Iterable[Problem]:
        if len(given) > 1:
            yield Problem((given[1],), f"does not go with `{given[0]}`; make two variables of them")
        for key in _OF_MEMORY:
            if getattr(self, key) != type(self).model_fields[key].default:
                yield Problem(
                    (key,),
                    f"does not go with `{given[0]}`, which is computed from other variables; "
                    "remove one of the two",
                )

    def _memory_problems(self) -> Iterable[Problem]:
        if len([key for key in _PLACES if getattr(self, key) is not None]) != 1:
            yield Problem(
                ("symbol",),
                "give either `symbol` or `address`, `addresses` for an array, or one of "
                f"{', '.join(OPERATIONS)} to compute it from other variables",
                reads=tuple((key,) for key in (*_PLACES, *OPERATIONS)),
            )
        yield from self._size_problems()
        if (self.type == "bit") != (self.bit is not None):
            yield Problem(("bit",), "`bit` (0 to 7) goes with `type: bit`, and only with it")
        if self.zero is not None and self.type != "digits":
            yield Problem(("zero",), "`zero` goes with `type: digits`, and only with it")
        yield from self._mask_problems()
        if self.type == "bits" and self.addresses is not None:
            yield Problem(
                ("addresses",), "bits are at one `address`, and `bytes` says how many bytes of them"
            )
        if self.type == "bits" and self.endian == "big":
            yield Problem(("endian",), "bits are an array, which has no `endian`; remove it")

    def _size_problems(self) -> Iterable[Problem]:
        most = _MOST_BYTES.get(self.type)
        if most is None and self.bytes is not None:
            yield Problem(
                ("bytes",),
                "`bytes` goes with `type: bcd`, `digits` and `bits`, and only with them; the other "
                "types have their size in their name",
            )
        elif most is not None and not 1 <= (self.bytes or 0) <= most:
            yield Problem(("bytes",), f"`bytes` (1 to {most:,}) goes with `type: {self.type}`")

    def _mask_problems(self) -> Iterable[Problem]:
        if self.mask is None and self.shift is None:
            return
        key = ("shift",) if self.mask is None else ("mask",)
        if self.type == "digits":
            if self.shift is not None:
                message = f"`shift` goes with {', '.join(UNSIGNED)}, not with `type: digits`"
                yield Problem(("shift",), message)
            if self.mask is not None:
                yield from self._digit_mask_problems(self.mask)
            return
        if self.type not in UNSIGNED:
            able = (*UNSIGNED, "digits") if key == ("mask",) else UNSIGNED
            yield Problem(key, f"goes with {', '.join(able)}, not with `type: {self.type}`")
            return
        n_bits = 8 * self.n_bytes
        mask = self.mask or (1 << n_bits) - 1
        if mask >> n_bits:
            yield Problem(key, f"0x{mask:X} has more bits than the {n_bits} of a {self.type}")
        elif not mask >> (self.shift or 0):
            yield Problem(
                ("shift",),
                f"moves every bit of 0x{mask:X} out, so the value is always 0; lower it",
                reads=(key,),
            )

    def _digit_mask_problems(self, mask: int) -> Iterable[Problem]:
        zero = self.zero or 0
        if mask > 0xFF:
            yield Problem(("mask",), f"0x{mask:X} has more bits than the 8 of a byte of digits")
        elif any(zero + digit & ~mask for digit in range(10)):
            yield Problem(
                ("mask",),
                f"0x{mask:X} leaves out bits of the digits, which are 0x{zero:02X} to "
                f"0x{zero + 9:02X}; a mask of 0x0F keeps 0 to 9",
                reads=(("zero",),),
            )

    @property
    def operation(self) -> str | None:
        """The key by which it is computed from other variables; None if it is in memory."""
        return next((key for key in OPERATIONS if getattr(self, key) is not None), None)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the variables that it is computed from."""
        if self.operation is None:
            return ()
        found: str | tuple[str, ...] | BitOf = getattr(self, self.operation)
        if isinstance(found, BitOf):
            return (found.variable,)
        return (found,) if isinstance(found, str) else found

    @property
    def n_bytes(self) -> int:
        return self.bytes if self.bytes is not None else _N_BYTES[self.type]

    @property
    def is_array(self) -> bool:
        return self.addresses is not None or self.type == "bits"

    @property
    def is_whole_number(self) -> bool:
        """Whether it is an unsigned number that has all bits of its bytes for itself."""
        is_one = self.operation is None and not self.is_array
        return is_one and self.type in UNSIGNED and self.mask is None and self.shift is None

    @property
    def n_numbers(self) -> int:
        """How many numbers it has, a bit of an array of bits counting as one."""
        if self.operation is not None:
            return 1
        return 8 * self.n_bytes if self.type == "bits" else len(self.addresses or (0,))

    @property
    def is_of_bits(self) -> bool:
        """Whether each of its numbers is 0 or 1."""
        if self.operation is not None:
            return self.operation == "bit_of"
        return self.type in ("bit", "bits")


Specs = Mapping[str, VariableSpec]
"""The section `variables` of a game.yaml."""


def is_always_whole(name: str, variables: Specs) -> bool:
    """Whether a variable, or what it is computed from, is always whole numbers."""
    seen = set[str]()
    left = [name]
    while left:
        name = left.pop()
        if name in seen or name not in variables:
            continue
        seen.add(name)
        spec = variables[name]
        if spec.operation == "ratio":
            return False
        if spec.operation not in ("count", "bit_of"):
            left += spec.sources
    return True


def derivation_problems(specs: Specs) -> Iterator[Problem]:
    """Yield what is wrong with the operations, apart from unknown names and arrays.

    No variable is computed from itself if nothing is yielded.
    """
    cycles = list(_cycles(specs))
    for cycle in cycles:
        first = next(name for name in specs if name in cycle)
        at = cycle.index(first)
        way = " from ".join((*cycle[at:], *cycle[:at], first))
        yield Problem(
            ("variables", first, str(specs[first].operation)),
            f"is computed from itself ({way}); compute one of them from something else",
            reads=tuple(("variables", name) for name in cycle),
        )
    in_cycles = set(chain.from_iterable(cycles))
    for name, spec in specs.items():
        if spec.operation not in ("count", "bit_of") or spec.sources[0] not in specs:
            continue
        source = spec.sources[0]
        if source in in_cycles:
            continue
        if message := _bit_problem(spec, source, specs[source]):
            key = ("variables", name, spec.operation)
            yield Problem(key, message, reads=(("variables", source),))


def _bit_problem(spec: VariableSpec, source: str, of: VariableSpec) -> str | None:
    """Return why the bits of `source` cannot be counted or named, or None if they can."""
    if of.operation is not None or of.type not in (*UNSIGNED, "bit", "bits"):
        what = f"is computed by `{of.operation}`" if of.operation else f"is of type {of.type}"
        return f"{source} {what}; name a variable of type {', '.join(UNSIGNED)} or bits"
    if spec.bit_of is None:
        return None
    if of.addresses is not None:
        return f"{source} is an array of numbers; name one number, or a variable of type bits"
    n_bits = 1 if of.type == "bit" else 8 * of.n_bytes
    if spec.bit_of.index >= n_bits:
        found = spec.bit_of.index
        last = n_bits - 1
        return f"{source} has no bit {found:,}; write the number of one that it has, 0 to {last:,}"
    return None


def _cycles(specs: Specs) -> Iterator[list[str]]:
    """Yield variables that are computed each from the next, the last from the first."""
    left = {name: spec.sources for name, spec in specs.items()}
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            cycle: list[str] = error.args[1][:0:-1]
        else:
            return
        yield cycle
        for name in cycle:
            del left[name]
