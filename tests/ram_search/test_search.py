"""The search for places in RAM, against one that tries each place by itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.emulator.ram import Ram, RamRegion
from game_rl.games.variables import Variable
from game_rl.ram_search.encodings import ENCODINGS, Encoding
from game_rl.ram_search.known_facts import (
    AS_STORED,
    WAYS_OF_SHOWING,
    ChangeFact,
    KnownFact,
    NumberFact,
    PlacedFact,
    Shown,
    parse_fact,
    placed_facts,
)
from game_rl.ram_search.search import RamCandidate, Search

FIRST = 0xC000


class Bytes:
    """Memory behind `read`, as variables read it."""

    def __init__(self, snapshot: np.ndarray) -> None:
        self.snapshot = snapshot

    def read(self, address: int, *, bank: int | None = None) -> int:  # noqa: ARG002
        return int(self.snapshot[address - FIRST])


def stored(snapshot: np.ndarray, index: int, encoding: Encoding) -> int | None:
    """The number as game.yaml's variables read it; None if a digit is none."""
    raw = snapshot[index : index + encoding.n_bytes].tolist()
    if encoding.type == "bcd" and any(b >> 4 > 9 or b & 15 > 9 for b in raw):
        return None
    if encoding.type == "digits" and any(not 0 <= b - encoding.zero <= 9 for b in raw):
        return None
    variable = Variable(
        "n",
        FIRST + index,
        None,
        encoding.type,
        encoding.n_bytes,
        encoding.big_endian,
        mask=encoding.mask,
        shift=encoding.shift,
        zero=encoding.zero,
    )
    return variable.read(Bytes(snapshot))  # type: ignore[arg-type]


def agrees(fact: NumberFact | ChangeFact, now: int, then: int | None) -> bool:
    if isinstance(fact, NumberFact):
        return (fact.lowest <= now <= fact.highest) != fact.is_not
    assert then is not None
    is_so = {
        "increased": now > then,
        "decreased": now < then,
        "changed": now != then,
        "unchanged": now == then,
    }[fact.how]
    return is_so and fact.by in (None, abs(now - then))


def dumb_search(snapshots: np.ndarray, facts: list[KnownFact]) -> set[tuple[int, Encoding, Shown]]:
    scaled = any(isinstance(k.fact, NumberFact) or k.fact.by is not None for k in facts)
    found = set()
    for encoding in ENCODINGS:
        for index in range(snapshots.shape[1] - encoding.n_bytes + 1):
            numbers = [stored(each, index, encoding) for each in snapshots]
            for shown in WAYS_OF_SHOWING if scaled else (AS_STORED,):
                seen = [None if n is None else n * shown.scale + shown.offset for n in numbers]
                if all(
                    seen[k.moment] is not None
                    and (k.before is None or seen[k.before] is not None)
                    and agrees(k.fact, seen[k.moment], None if k.before is None else seen[k.before])
                    for k in facts
                ):
                    found.add((index, encoding, shown))
    return found


numbers = st.integers(-2, 300)
changes = st.builds(
    ChangeFact,
    how=st.sampled_from(["increased", "decreased", "changed"]),
    before=st.just("previous") | st.just("first") | st.integers(1, 3),
    by=st.none() | st.integers(0, 20),
) | st.builds(ChangeFact, how=st.just("unchanged"), before=st.just("previous"))
absolute = st.builds(
    lambda one, other, is_not: NumberFact(min(one, other), max(one, other), is_not),
    numbers,
    numbers,
    st.booleans(),
)


@settings(max_examples=2_000, deadline=None)
@given(data=st.data())
@pytest.mark.slow
def test_a_search_finds_what_trying_each_place_finds(data: st.DataObject) -> None:
    n_moments = data.draw(st.integers(1, 4))
    n_bytes = data.draw(st.integers(6, 10))
    byte = st.integers(0, 255) | st.integers(0, 9) | st.sampled_from([0x10, 0x99, 0xF0])
    rows = data.draw(
        st.lists(
            st.lists(byte, min_size=n_bytes, max_size=n_bytes),
            min_size=n_moments,
            max_size=n_moments,
        )
    )
    snapshots = np.array(rows, np.uint8)
    facts = data.draw(st.lists(absolute | changes, min_size=1, max_size=n_moments))
    try:
        known = list(placed_facts(list(enumerate(facts)), n_moments))
    except ValueError:
        return  # it compares with a moment that is not there
    search = Search(Ram((RamRegion(FIRST, FIRST + n_bytes, None),)), snapshots)
    found = [(c.index, c.encoding, c.shown) for c in search.candidates(known)]
    assert len(found) == len(set(found))
    assert set(found) == dumb_search(snapshots, known)
    for candidate in search.candidates(known):
        assert search.first_against(candidate, known) is None


def test_numbers_do_not_reach_from_one_bank_into_the_next() -> None:
    ram = Ram((RamRegion(0xD000, 0xD002, 1), RamRegion(0xD000, 0xD002, 2)))
    search = Search(ram, np.array([[0, 1, 2, 3]], np.uint8))
    known = [KnownFact(0, NumberFact(0x0201, 0x0201), None)]
    assert RamCandidate(1, Encoding("u16", 2)) not in list(search.candidates(known))
    assert ram.index_of(0xD001, 2) == 3
    assert ram.index_of(0xD001) == 1
    assert ram.bank_of(2) == 2


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        (3, NumberFact(3, 3)),
        ("3", NumberFact(3, 3)),
        ("2 to 5", NumberFact(2, 5)),
        ("not 3", NumberFact(3, 3, is_not=True)),
        ("below 3", NumberFact(-(2**62), 2)),
        ("Decreased", ChangeFact("decreased")),
        ("increased by 1,000", ChangeFact("increased", by=1000)),
        ("unchanged", ChangeFact("unchanged")),
        ("restored", ChangeFact("unchanged", "first")),
        ("same as moment 2", ChangeFact("unchanged", 2)),
        ("different from 2", ChangeFact("changed", 2)),
    ],
)
def test_what_is_known_is_written_in_words(text: int | str, fact: object) -> None:
    assert parse_fact(text) == fact


@pytest.mark.parametrize("text", ["", "more", "decreased by", "same as", "3 to", "equals"])
def test_words_that_say_nothing_are_refused_with_those_that_do(text: str) -> None:
    with pytest.raises(ValueError, match="increased, decreased"):
        parse_fact(text)


def test_a_change_compares_with_the_last_moment_of_which_something_is_known() -> None:
    facts: list[tuple[int, PlacedFact]] = [
        (0, NumberFact(3, 3)),
        (2, ChangeFact("decreased")),
        (4, ChangeFact("unchanged", "first")),
    ]
    assert [known.before for known in placed_facts(facts, 5)] == [None, 0, 0]
    assert [known.before for known in placed_facts([(1, ChangeFact("changed"))], 2)] == [0]
    with pytest.raises(ValueError, match="no moment is before it"):
        list(placed_facts([(0, ChangeFact("changed"))], 2))
    with pytest.raises(ValueError, match="there are 2"):
        list(placed_facts([(0, ChangeFact("changed", 7))], 2))


def test_a_word_is_the_same_number_wherever_it_stands_and_another_elsewhere() -> None:
    words = ("is crab", "is bat", "is crab", "is none")
    facts = list(placed_facts([(n, parse_fact(word)) for n, word in enumerate(words)], 4))  # type: ignore[misc]
    snapshots = np.array([[1, 1, 7, 7], [2, 2, 7, 8], [1, 3, 7, 7], [3, 4, 7, 7]], np.uint8)
    search = Search(Ram((RamRegion(FIRST, FIRST + 4, None),)), snapshots)
    found = [c.index for c in search.candidates(facts) if c.encoding == ENCODINGS[0]]
    assert found == [0]
