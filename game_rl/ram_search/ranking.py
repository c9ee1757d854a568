"""In which order places are shown that all agree with what is known: the likeliest first."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.emulator import Emulator
from game_rl.emulator.ram import Ram
from game_rl.games.symbol_files import Location
from game_rl.ram_search.encodings import Encoding
from game_rl.ram_search.proof import Proof, Prover, Verdict
from game_rl.ram_search.search import RamCandidate
from game_rl.ram_search.symbol_words import likeness

_IDLE_FRAMES = 120
_OAM = (0xFE00, 0xFEA0)
_SPRITE_BYTES = 160
_NEAR_BYTES = 24
_RESTLESS = 0.5  # of the frames without a button; timers and random numbers change in them
_NEVER_PROVED = 1  # as far as the order goes, like one without an effect
MOST_PROVED = 24


@dataclass(frozen=True)
class RankedPlace:
    """A place in RAM, with what speaks for it.

    Attributes:
        others: other encodings at the same address that agree as well.
        idle_changes: share of the frames without a button in which it changes.
        symbol: name of the symbol at its address, if there is a file of them.
        mirrors_sprites: whether it is in a copy of the sprites' attributes.
        size: how large its numbers are, as far as that tells something.
        has_shorter: whether fewer of its bytes agree as well, so that the others may be anything.
    """

    candidate: RamCandidate
    address: int
    bank: int | None
    others: tuple[Encoding, ...]
    idle_changes: float
    is_near_known: bool
    symbol: str | None
    likeness: float
    mirrors_sprites: bool
    size: int = 0
    has_shorter: bool = False
    proof: Proof | None = None

    @property
    def order(self) -> tuple[float, ...]:
        """What the places are sorted by; lower is likelier."""
        proved = _NEVER_PROVED if self.proof is None else int(self.proof.verdict)
        shown = self.candidate.shown
        return (
            -self.likeness,
            max(proved == Verdict.COPY, self.has_shorter) + 2 * self.mirrors_sprites,
            shown.scale > 1,
            abs(shown.offset),
            self.candidate.encoding.rank,
            self.size,
            proved,
            self.idle_changes > _RESTLESS,
            not self.is_near_known,
            self.address,
        )

    @property
    def place(self) -> str:
        """The address, with the bank where it has one: `0xC0A5`, `3:0xD012`."""
        bank = "" if self.bank is None else f"{self.bank}:"
        return f"{bank}0x{self.address:04X}"


@dataclass(frozen=True)
class Noise:
    """How RAM changes while no button is held.

    Attributes:
        changes: float64 [n_bytes], the share of frames in which each byte changes.
        sprite_mirrors: bool [n_bytes], whether a byte is in a copy of the sprites' attributes.
    """

    changes: NDArray[np.float64]
    sprite_mirrors: NDArray[np.bool_]


def watch_idle(emulator: Emulator, ram: Ram, state: bytes) -> Noise:
    """Play two seconds from a state without a button."""
    emulator.load_state(state)
    frames = [ram.read(emulator)]
    mirrors = np.zeros(ram.n_bytes, np.bool_)
    for _ in range(_IDLE_FRAMES):
        emulator.tick(1, render=False)
        frames.append(ram.read(emulator))
    sprites = emulator.read_range(*_OAM)
    if any(sprites):
        raw = frames[-1].tobytes()
        for page in np.flatnonzero(ram.addresses % 256 == 0):
            found = raw[page : page + _SPRITE_BYTES]
            alike = sum(a == b for a, b in zip(found, sprites, strict=False))
            if alike >= 0.9 * _SPRITE_BYTES:
                mirrors[page : page + _SPRITE_BYTES] = True
    changed = np.diff(np.array(frames), axis=0) != 0
    return Noise(changed.mean(axis=0), mirrors)


@dataclass(frozen=True)
class KnownPlaces:
    """What is known besides the moments.

    Attributes:
        name: name of the variable to find; empty if it has none yet.
        addresses: addresses of the variables that game.yaml has.
        symbols: the symbols at the user's side.
    """

    name: str = ""
    addresses: Collection[int] = ()
    symbols: Mapping[str, Location] | None = None


def ranked_places(
    candidates: Iterable[RamCandidate],
    ram: Ram,
    noise: Noise,
    known: KnownPlaces,
    provers: Sequence[Prover] = (),
    size_of: Callable[[RamCandidate], int] = lambda _: 0,
) -> list[RankedPlace]:
    """Return one place for each address, the likeliest first.

    Args:
        provers: write into the likeliest. What is a copy for the first one is written into again by
            the others, since games write over a number while they do not use it.
        size_of: how large the numbers of a place are, of which smaller ones are likelier.
    """
    by_index: dict[int, list[RamCandidate]] = {}
    for candidate in candidates:
        by_index.setdefault(candidate.index, []).append(candidate)
    symbols_at: dict[int, list[tuple[str, int | None]]] = {}
    for name, location in (known.symbols or {}).items():
        symbols_at.setdefault(location.address, []).append((name, location.bank))
    found = []
    for each in by_index.values():
        place = _placed(each, ram, noise, known, symbols_at)
        first = place.candidate.index
        end = first + place.candidate.encoding.n_bytes
        inner = (by_index.get(index, ()) for index in range(first + 1, end))
        has_shorter = any(c.index + c.encoding.n_bytes <= end for group in inner for c in group)
        size = size_of(place.candidate)
        found.append(replace(place, size=size, has_shorter=has_shorter))
    found = sorted(_without_parts(found), key=lambda place: place.order)
    if not provers:
        return found
    proved = [replace(p, proof=_proof(p.candidate, provers)) for p in found[:MOST_PROVED]]
    return sorted((*proved, *found[MOST_PROVED:]), key=lambda place: place.order)


def _proof(candidate: RamCandidate, provers: Sequence[Prover]) -> Proof:
    first, *others = provers
    proof = first.prove(candidate)
    for prover in others:
        if proof.verdict is Verdict.COPY:
            again = prover.prove(candidate)
            proof = replace(proof, verdict=again.verdict)
    return proof


def _placed(
    candidates: Sequence[RamCandidate],
    ram: Ram,
    noise: Noise,
    known: KnownPlaces,
    symbols_at: Mapping[int, Sequence[tuple[str, int | None]]],
) -> RankedPlace:
    best = min(candidates, key=_plausibility)
    address = int(ram.addresses[best.index])
    places = slice(best.index, best.index + best.encoding.n_bytes)
    others = dict.fromkeys(each.encoding for each in candidates if each != best)
    near = (abs(address - other) <= _NEAR_BYTES for other in known.addresses)
    bank = ram.bank_of(best.index)
    symbols = [
        symbol
        for symbol, of_bank in symbols_at.get(address, ())
        if bank is None or of_bank in (None, bank)
    ]
    symbol = max(symbols, key=lambda each: likeness(known.name, each), default=None)
    return RankedPlace(
        best,
        address,
        bank,
        tuple(others),
        float(noise.changes[places].max()),
        any(near),
        symbol,
        likeness(known.name, symbol or ""),
        bool(noise.sprite_mirrors[best.index]),
    )


def _plausibility(candidate: RamCandidate) -> tuple[int, ...]:
    shown = candidate.shown
    return (shown.scale > 1, abs(shown.offset), candidate.encoding.rank, shown.offset)


def _without_parts(places: Sequence[RankedPlace]) -> list[RankedPlace]:
    """Leave out a number whose lowest byte alone agrees as well, at an address of its own."""
    single = {place.candidate.index for place in places if place.candidate.encoding.n_bytes == 1}
    found = []
    for place in places:
        encoding = place.candidate.encoding
        last = place.candidate.index + encoding.n_bytes - 1
        has_part = encoding.big_endian and encoding.n_bytes > 1 and last in single
        if not has_part or encoding.type == "digits":
            found.append(place)
    return found


def verdict_words(place: RankedPlace) -> str:
    """Return what came of writing into a place."""
    if place.proof is None:
        return "not tested"
    words = place.proof.verdict.words
    if place.proof.is_shown:
        return f"{words}, on the screen"
    if place.proof.verdict is Verdict.ORIGINAL and place.proof.is_shown is False:
        return f"{words}, not on the screen"
    return words
