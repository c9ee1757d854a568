"""The ways in which bytes may be a number, and the numbers that all places in RAM are in them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from game_rl.games.variable_spec import SIGNED, VariableType


@dataclass(frozen=True)
class Encoding:
    """How some bytes are read as a number, as an entry of `variables` says it.

    Attributes:
        mask, shift: of a nibble; None for a number that has all bits.
        zero: the byte that stands for the digit 0.
    """

    type: VariableType
    n_bytes: int = 1
    big_endian: bool = False
    mask: int | None = None
    shift: int = 0
    zero: int = 0

    @property
    def rank(self) -> int:
        """How plausible it is: the most plausible has 0."""
        if self.zero:
            return len(ENCODINGS)
        return ENCODINGS.index(self)

    @property
    def keys(self) -> str:
        """What an entry of `variables` says besides the address: `type: bcd, bytes: 3`."""
        found = [f"type: {self.type}"]
        if self.type in ("bcd", "digits"):
            found.append(f"bytes: {self.n_bytes}")
        if self.big_endian and self.n_bytes > 1:
            found.append("endian: big")
        if self.mask is not None:
            found.append(f"mask: 0x{self.mask:02X}")
        if self.shift:
            found.append(f"shift: {self.shift}")
        if self.zero:
            found.append(f"zero: {self.zero}")
        return ", ".join(found)

    @property
    def name(self) -> str:
        """A short name for a table: `u16 big`."""
        if self.mask is not None:
            return "high nibble" if self.shift else "low nibble"
        sized = self.type in ("bcd", "digits")
        size = f" x {self.n_bytes}" if sized else ""
        end = " big" if self.big_endian and self.n_bytes > 1 else ""
        return f"{self.type}{size}{end}"

    def values(
        self, snapshot: NDArray[np.uint8], at: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the number at each place, and whether its bytes are of this encoding at all.

        Args:
            snapshot: uint8 [n_bytes], a copy of RAM.
            at: int64 [n], the index of the first byte of each place.

        Returns:
            int64 [n] and bool [n].
        """
        raw = [snapshot[at + n].astype(np.int64) for n in range(self.n_bytes)]
        if not self.big_endian:
            raw.reverse()
        whole = np.zeros(len(at), np.int64)
        is_valid = np.ones(len(at), np.bool_)
        if self.type == "bcd":
            for byte in raw:
                whole = whole * 100 + (byte >> 4) * 10 + (byte & 15)
                is_valid &= (byte >> 4 <= 9) & (byte & 15 <= 9)
            return whole, is_valid
        if self.type == "digits":
            for byte in raw:
                digit = byte - self.zero
                whole = whole * 10 + digit
                is_valid &= (digit >= 0) & (digit <= 9)
            return whole, is_valid
        for byte in raw:
            whole = whole << 8 | byte
        if self.mask is not None:
            whole = (whole & self.mask) >> self.shift
        if self.type in SIGNED:
            whole -= (whole >> 8 * self.n_bytes - 1) << 8 * self.n_bytes
        return whole, is_valid

    def bytes_of(self, number: int, before: bytes) -> bytes | None:
        """Return the bytes of a number; None if this encoding has no such number.

        Args:
            before: the bytes now, whose bits outside a mask stay.
        """
        order: Literal["big", "little"] = "big" if self.big_endian else "little"
        if self.type in ("bcd", "digits"):
            n_digits = self.n_bytes * (2 if self.type == "bcd" else 1)
            if not 0 <= number < 10**n_digits:
                return None
            digits = str(number).zfill(n_digits)
            if self.type == "bcd":
                found = bytes.fromhex(digits)
            elif self.zero + max(map(int, digits)) > 255:
                return None
            else:
                found = bytes(self.zero + int(digit) for digit in digits)
            return found if self.big_endian else found[::-1]
        if self.mask is not None:
            if not 0 <= number <= self.mask >> self.shift:
                return None
            others = int.from_bytes(before, order) & ~self.mask
            return (others | number << self.shift).to_bytes(self.n_bytes, order)
        try:
            return number.to_bytes(self.n_bytes, order, signed=self.type in SIGNED)
        except OverflowError:
            return None


def _both_ends(type_: VariableType, n_bytes: int) -> tuple[Encoding, Encoding]:
    return Encoding(type_, n_bytes), Encoding(type_, n_bytes, big_endian=True)


U8 = Encoding("u8")
U16 = Encoding("u16", 2)

ENCODINGS: tuple[Encoding, ...] = (
    U8,
    U16,
    Encoding("u16", 2, big_endian=True),
    Encoding("bcd", 1),
    *_both_ends("bcd", 2),
    *_both_ends("bcd", 3),
    *(each for n in range(2, 7) for each in _both_ends("digits", n)[::-1]),
    Encoding("s8"),
    *_both_ends("s16", 2),
    *_both_ends("u24", 3),
    *_both_ends("bcd", 4),
    Encoding("u8", mask=0x0F),
    Encoding("u8", mask=0xF0, shift=4),
)
"""The most plausible first, as games have them."""


def encodings_with(zeros: tuple[int, ...]) -> tuple[Encoding, ...]:
    """Return all encodings, and those of a digit a byte in which these bytes stand for 0."""
    more = (
        Encoding("digits", n, big_endian=True, zero=zero) for zero in zeros for n in range(1, 7)
    )
    return (*ENCODINGS, *more)
