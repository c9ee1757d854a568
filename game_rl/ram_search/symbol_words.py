"""Symbols by words: which names of a symbol file may mean `health`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from game_rl.emulator.ram import Ram
from game_rl.games.symbol_files import Location

_ALIKE = (
    ("health", "hp", "life", "hitpoints", "energy", "vitality", "hearts"),
    ("lives", "life", "men", "tries", "continues", "balls"),
    ("score", "points", "pts", "money", "cash"),
    ("level", "stage", "world", "round", "map", "floor"),
    ("time", "timer", "clock", "countdown", "seconds"),
    ("x", "xpos", "posx", "xcoord", "column"),
    ("y", "ypos", "posy", "ycoord", "row"),
    ("position", "pos", "coord", "coords"),
    ("room", "map", "area", "screen", "scene"),
    ("state", "status", "mode", "phase"),
    ("seed", "rng", "random", "rand"),
    ("enemy", "opponent", "foe", "creature", "boss", "monster"),
    ("player", "hero", "runner", "mario", "character"),
    ("coins", "rings", "gems", "money", "gold", "apples"),
    ("keys", "key", "items", "item"),
    ("speed", "velocity", "vel"),
    ("camera", "scroll", "scx", "scy"),
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_FIRST_LETTERS = ("w", "h", "s")  # of RGBDS: where a symbol is, as in wPlayerHP
_LEAST = 0.34


class FoundSymbol(NamedTuple):
    name: str
    location: Location
    likeness: float


def find_symbols(words: str, symbols: Mapping[str, Location], ram: Ram) -> list[FoundSymbol]:
    """Return the symbols in RAM whose names are like the words, the likest first."""
    found = []
    for name, location in symbols.items():
        bank = location.bank if any(r.bank == location.bank for r in ram.regions) else None
        if ram.index_of(location.address, bank) is None:
            continue
        alike = likeness(words, name)
        if alike >= _LEAST:
            found.append(FoundSymbol(name, location, alike))
    return sorted(found, key=lambda each: (-each.likeness, len(each.name), each.name))


def likeness(words: str, name: str) -> float:
    """Return how alike a name and a symbol are in meaning, 0 to 1."""
    wanted = _words_in(words)
    there = _words_in(name)
    if not wanted or not there:
        return 0.0
    best = [max(_alike(one, other) for other in there) for one in wanted]
    share = sum(best) / len(best)
    extra = max(0, len(there) - len(wanted))
    return share * 0.97**extra if share >= 0.5 else 0.0


def _words_in(name: str) -> Sequence[str]:
    found = [word.lower() for word in _WORD.findall(name.replace("_", " "))]
    if len(found) > 1 and found[0] in _FIRST_LETTERS:
        return found[1:]
    return found


def _alike(one: str, other: str) -> float:
    if one == other or one.rstrip("s") == other.rstrip("s"):
        return 1.0
    if any(one in group and other in group for group in _ALIKE):
        return 0.8
    if min(len(one), len(other)) >= 3 and (one in other or other in one):
        return 0.7
    ratio = SequenceMatcher(None, one, other).ratio()
    return ratio if ratio >= 0.75 and min(len(one), len(other)) >= 4 else 0.0


def words_meant(word: str) -> Iterator[str]:
    """Yield words that mean about the same."""
    for group in _ALIKE:
        if word in group:
            yield from (other for other in group if other != word)
