"""The search: which places in RAM are in agreement with all that is known of a number."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.ram import Ram
from game_rl.ram_search.encodings import ENCODINGS, Encoding
from game_rl.ram_search.known_facts import AS_STORED, WAYS_OF_SHOWING, KnownFact, Shown


@dataclass(frozen=True, slots=True)
class RamCandidate:
    """A place in RAM, and how its bytes are a number.

    Attributes:
        index: index of its first byte in `Ram`.
    """

    index: int
    encoding: Encoding
    shown: Shown = AS_STORED


@dataclass(frozen=True)
class Search:
    """What was seen of RAM at some moments; nothing of it is ever dropped.

    Attributes:
        snapshots: uint8 [n_moments, n_bytes], each a copy of `Ram`.
    """

    ram: Ram
    snapshots: NDArray[np.uint8]
    encodings: Sequence[Encoding] = ENCODINGS

    def candidates(self, facts: Sequence[KnownFact]) -> Iterator[RamCandidate]:
        """Yield every place that agrees with all facts, the most plausible encodings first."""
        needs_scale = any(known.fact.needs_scale for known in facts)
        ways = WAYS_OF_SHOWING if needs_scale else (AS_STORED,)
        first = sorted(facts, key=lambda known: not known.fact.needs_scale)  # these leave few
        for encoding in self.encodings:
            places = self._places(encoding)
            for shown in ways:
                for index in self._agreeing(encoding, shown, places, first):
                    yield RamCandidate(int(index), encoding, shown)

    def _places(self, encoding: Encoding) -> NDArray[np.int64]:
        """Return where all bytes of a number are in one region."""
        last = encoding.n_bytes - 1
        regions = self.ram.region_numbers
        first = max(0, self.ram.n_bytes - last)
        return np.flatnonzero(regions[:first] == regions[last:]).astype(np.int64)

    def _agreeing(
        self,
        encoding: Encoding,
        shown: Shown,
        places: NDArray[np.int64],
        facts: Iterable[KnownFact],
    ) -> NDArray[np.int64]:
        for known in facts:
            if not len(places):
                break
            places = places[self.agrees(encoding, shown, places, known)]
        return places

    def agrees(
        self, encoding: Encoding, shown: Shown, places: NDArray[np.int64], known: KnownFact
    ) -> NDArray[np.bool_]:
        """Return which places, indices int64 [n], agree with one fact, bool [n]."""
        now, is_valid = encoding.values(self.snapshots[known.moment], places)
        then = None
        if known.before is not None:
            stored, was_valid = encoding.values(self.snapshots[known.before], places)
            then = shown.of(stored)
            is_valid = is_valid & was_valid
        return is_valid & known.fact.holds(shown.of(now), then)

    def first_against(
        self, candidate: RamCandidate, facts: Sequence[KnownFact]
    ) -> KnownFact | None:
        """Return the first fact that speaks against a place; None if all agree with it."""
        place = np.array([candidate.index])
        for known in facts:
            if not self.agrees(candidate.encoding, candidate.shown, place, known)[0]:
                return known
        return None

    def numbers_of(self, candidate: RamCandidate) -> NDArray[np.int64]:
        """Return the number in memory at each moment, int64 [n_moments]."""
        place = np.array([candidate.index])
        found = [candidate.encoding.values(each, place)[0][0] for each in self.snapshots]
        return np.array(found, np.int64)
