"""`game-rl find --moments`: the bytes that agree with all that is known at some moments."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from game_rl.errors import UsageError
from game_rl.games.definition import unknown_name
from game_rl.ram_search.encodings import ENCODINGS
from game_rl.ram_search.known_facts import AS_STORED, ChangeFact, KnownFact
from game_rl.ram_search.moments import MomentsFile, PlayedMoments, play_moments
from game_rl.ram_search.proof import Prover
from game_rl.ram_search.ranking import KnownPlaces, Noise, RankedPlace, ranked_places, watch_idle
from game_rl.ram_search.search import RamCandidate, Search
from game_rl.ram_search.searched_game import SearchedGame

_SIZES = (16, 64)
"""Of numbers that stand for one of several things: there are seldom more."""

_MOST_RANKED = 20_000
"""Places beyond them are counted only: no order of so many helps anybody."""


@dataclass(frozen=True)
class PlacesFound:
    """What a search by moments has found.

    Attributes:
        places: the likeliest first; empty if there are too many to say anything.
        n_places: how many places agree with all that is known.
        left: how many bytes agree as u8 after each moment of which something is known.
    """

    name: str
    places: tuple[RankedPlace, ...]
    n_places: int
    left: dict[int, int]
    seconds: float
    played: PlayedMoments = field(repr=False)
    search: Search = field(repr=False)
    facts: tuple[KnownFact, ...] = ()


def choose_name(name: str | None, file: MomentsFile, path: Path) -> str:
    """Return the number to search for: the one that is named, or the only one of the file.

    Raises:
        UsageError: nothing is known of it, or of several.
    """
    if not file.names:
        raise UsageError(
            f"{path}: nothing is known at any moment; write what you know, such as "
            "`known: {health: 3}` and later `known: {health: decreased}`"
        )
    if name is None:
        if len(file.names) > 1:
            raise UsageError(
                f"{path} has facts about {', '.join(file.names)}; choose one: "
                f"--name {file.names[0]}"
            )
        return file.names[0]
    if name not in file.names:
        raise UsageError(unknown_name(name, "number", file.names, of=str(path)))
    return name


def find_in_moments(
    searched: SearchedGame,
    file: MomentsFile,
    folder: Path,
    name: str,
    known: KnownPlaces,
    *,
    played: PlayedMoments | None = None,
    proves: bool = True,
) -> PlacesFound:
    """Search for the bytes that agree with all that is known of a number.

    Args:
        folder: folder that paths of the moments are relative to.
        played: the moments, if they were played before.
        proves: whether other numbers are written into the likeliest places.
    """
    begun = time.monotonic()
    played = played or play_moments(file.moments, searched, folder)
    search = Search(searched.ram, played.snapshots)
    facts = tuple(file.facts_of(name, played.variables))
    candidates = list(search.candidates(facts))
    n_places = len({candidate.index for candidate in candidates})
    places: Sequence[RankedPlace] = ()

    def size_of(candidate: RamCandidate) -> int:
        largest = int(np.abs(search.numbers_of(candidate)).max())
        return sum(largest >= limit for limit in _SIZES)

    is_of_kinds = all(
        isinstance(each.fact, ChangeFact) and each.fact.how in ("changed", "unchanged")
        for each in facts
    )
    if 0 < n_places <= _MOST_RANKED:
        places = _ranked(
            searched,
            candidates,
            known,
            played,
            facts,
            proves=proves,
            size_of=size_of if is_of_kinds else lambda _: 0,
        )
    left = _left(search, facts)
    seconds = round(time.monotonic() - begun, 1)
    return PlacesFound(name, tuple(places), n_places, left, seconds, played, search, facts)


def _ranked(
    searched: SearchedGame,
    candidates: Sequence[RamCandidate],
    known: KnownPlaces,
    played: PlayedMoments,
    facts: Sequence[KnownFact],
    *,
    proves: bool,
    size_of: Callable[[RamCandidate], int],
) -> list[RankedPlace]:
    moments = sorted({fact.moment for fact in facts})
    with searched.emulator() as emulator:
        idle = [watch_idle(emulator, searched.ram, played.states[m]) for m in moments[:4]]
        noise = Noise(
            np.mean([each.changes for each in idle], axis=0),
            np.any([each.sprite_mirrors for each in idle], axis=0),
        )
        proved_in = (moments[len(moments) // 2], moments[-1]) if proves else ()
        provers = [
            Prover(emulator, searched.ram, played.states[moment], searched.button_sets)
            for moment in dict.fromkeys(proved_in)
        ]
        return ranked_places(candidates, searched.ram, noise, known, provers, size_of)


def _left(search: Search, facts: Sequence[KnownFact]) -> dict[int, int]:
    """Return how many addresses agree as one byte, whatever it says, with the facts up to each."""
    places = np.arange(search.ram.n_bytes)
    found = {}
    for known in facts:
        places = places[search.agrees(ENCODINGS[0], AS_STORED, places, known)]
        found[known.moment + 1] = len(places)
    return found
