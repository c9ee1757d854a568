"""The order of places, against rules that are spelled out one by one."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cmp_to_key
from typing import Any, cast

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.emulator.emulator import Emulator
from game_rl.emulator.ram import Ram, RamRegion
from game_rl.games.symbol_files import Location
from game_rl.ram_search.encodings import ENCODINGS, U8, U16, Encoding
from game_rl.ram_search.known_facts import WAYS_OF_SHOWING, Shown
from game_rl.ram_search.proof import Proof, Verdict
from game_rl.ram_search.ranking import (
    KnownPlaces,
    Noise,
    RankedPlace,
    ranked_places,
    verdict_words,
    watch_idle,
)
from game_rl.ram_search.search import RamCandidate
from tests.ram_search.scripted_memory import FIRST, ScriptedMemory

N_BYTES = 12
RAM = Ram((RamRegion(FIRST, FIRST + N_BYTES, None),))
STILL = Noise(np.zeros(N_BYTES), np.zeros(N_BYTES, np.bool_))

candidates = st.lists(
    st.builds(
        RamCandidate,
        index=st.integers(0, N_BYTES - 6),
        encoding=st.sampled_from(ENCODINGS),
        shown=st.sampled_from(WAYS_OF_SHOWING),
    ),
    max_size=12,
    unique=True,
)


def shown_more_plainly(one: Shown, other: Shown) -> int:
    """Return a negative number if `one` is the likelier of two ways to show a number."""
    if (one.scale == 1) != (other.scale == 1):
        return -1 if one.scale == 1 else 1
    return abs(one.offset) - abs(other.offset)


def covers(outer: RamCandidate, inner: RamCandidate) -> bool:
    """Whether all bytes of `inner` are among those of `outer` after its first."""
    first = inner.index
    last = inner.index + inner.encoding.n_bytes - 1
    return outer.index < first and last <= outer.index + outer.encoding.n_bytes - 1


def named_in_order(given: Sequence[RamCandidate]) -> list[int]:
    """Return the indices in which places are expected, without noise, symbols and proof."""
    best: dict[int, RamCandidate] = {}
    for each in given:
        other = best.setdefault(each.index, each)
        way = shown_more_plainly(each.shown, other.shown)
        way = way or ENCODINGS.index(each.encoding) - ENCODINGS.index(other.encoding)
        if way < 0 or (way == 0 and each.shown.offset < other.shown.offset):
            best[each.index] = each
    chosen = list(best.values())
    single = {each.index for each in chosen if each.encoding.n_bytes == 1}
    kept = [
        each
        for each in chosen
        if not each.encoding.big_endian
        or each.encoding.type == "digits"
        or each.index + each.encoding.n_bytes - 1 not in single
        or each.encoding.n_bytes == 1
    ]

    def compare(one: RamCandidate, other: RamCandidate) -> int:
        shorter = [any(covers(outer, inner) for inner in given) for outer in (one, other)]
        if shorter[0] != shorter[1]:
            return 1 if shorter[0] else -1
        return (
            shown_more_plainly(one.shown, other.shown)
            or ENCODINGS.index(one.encoding) - ENCODINGS.index(other.encoding)
            or one.index - other.index
        )

    return [each.index for each in sorted(kept, key=cmp_to_key(compare))]


@settings(max_examples=100, deadline=None)
@given(given_=candidates)
def test_plain_numbers_come_before_others(given_: list[RamCandidate]) -> None:
    found = ranked_places(given_, RAM, STILL, KnownPlaces())
    assert [place.candidate.index for place in found] == named_in_order(given_)
    for place in found:
        of_address = {each.encoding for each in given_ if each.index == place.candidate.index}
        assert {place.candidate.encoding, *place.others} == of_address


def place_at(index: int, encoding: Encoding = U8) -> RankedPlace:
    (found,) = ranked_places([RamCandidate(index, encoding)], RAM, STILL, KnownPlaces())
    return found


def test_each_reason_outweighs_all_that_are_named_after_it() -> None:
    """A place that is worse by one reason comes after one that is worse by all later ones."""
    best = replace(
        place_at(5),
        symbol="_health",
        likeness=1.0,
        is_near_known=True,
        proof=Proof(Verdict.ORIGINAL),
    )
    reasons: list[dict[str, Any]] = [
        {"likeness": 0.5},
        {"mirrors_sprites": True},
        {"proof": Proof(Verdict.COPY)},
        {"candidate": RamCandidate(5, U8, Shown(10))},
        {"candidate": RamCandidate(5, U8, Shown(offset=1))},
        {"candidate": RamCandidate(5, U16)},
        {"size": 1},
        {"proof": Proof(Verdict.NO_EFFECT)},
        {"idle_changes": 0.9},
        {"is_near_known": False},
        {"address": best.address + 1},
    ]
    for number, reason in enumerate(reasons):
        worse_later = best
        for later in reversed(reasons[number + 1 :]):
            worse_later = replace(worse_later, **later)
        assert worse_later.order < replace(best, **reason).order, reason


def test_a_symbol_of_the_name_comes_first_and_variables_nearby_before_others() -> None:
    ram = Ram((RamRegion(FIRST, FIRST + 100, None),))
    noise = Noise(np.zeros(100), np.zeros(100, np.bool_))
    given_ = [RamCandidate(index, U8) for index in (10, 50, 90)]
    symbols = {"_health": Location(FIRST + 90, None)}
    known = KnownPlaces("health", [FIRST + 60], symbols)
    found = ranked_places(given_, ram, noise, known)
    assert [place.candidate.index for place in found] == [90, 50, 10]
    assert [place.is_near_known for place in found] == [False, True, False]
    assert found[0].symbol == "_health"


def test_a_symbol_is_of_the_bank_and_the_likest_of_several() -> None:
    ram = Ram((RamRegion(0xD000, 0xD004, 1), RamRegion(0xD000, 0xD004, 2)))
    noise = Noise(np.zeros(8), np.zeros(8, np.bool_))
    symbols = {
        "_start_of_data": Location(0xD001, 1),
        "_lives": Location(0xD001, 1),
        "_other": Location(0xD001, 2),
        "_any": Location(0xD002, None),
    }
    given_ = [RamCandidate(index, U8) for index in range(8)]
    found = ranked_places(given_, ram, noise, KnownPlaces("lives", (), symbols))
    names = {place.place: place.symbol for place in found if place.symbol is not None}
    assert names == {
        "1:0xD001": "_lives",
        "2:0xD001": "_other",
        "1:0xD002": "_any",
        "2:0xD002": "_any",
    }


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_how_often_bytes_change_is_counted_frame_by_frame(data: st.DataObject) -> None:
    steps = data.draw(st.lists(st.integers(0, 40), min_size=4, max_size=4))

    def rule(memory: bytearray, held: frozenset[str], frame: int) -> None:
        assert not held
        for index, step in enumerate(steps):
            if step and frame % step == 0:
                memory[index] = (memory[index] + 1) % 256

    game = ScriptedMemory([0] * 4, rule)
    found = watch_idle(cast("Emulator", game), game.ram, game.save_state())
    counted = [len(range(0, 120, step)) / 120 if step else 0.0 for step in steps]
    np.testing.assert_allclose(found.changes, counted)
    assert not found.sprite_mirrors.any()


def test_a_copy_of_the_sprites_is_found_at_the_beginning_of_a_page() -> None:
    sprites = bytes(range(1, 161))
    memory = [0] * 256 + list(sprites[:150]) + [0] * 106  # some of it has changed since
    game = ScriptedMemory(memory, lambda *_: None, sprites=sprites)
    found = watch_idle(cast("Emulator", game), game.ram, game.save_state())
    assert np.flatnonzero(found.sprite_mirrors).tolist() == list(range(256, 416))


def test_what_came_of_writing_is_said_in_words() -> None:
    plain = place_at(0)
    assert verdict_words(plain) == "not tested"
    for verdict, is_shown, words in (
        (Verdict.ORIGINAL, None, "original"),
        (Verdict.ORIGINAL, True, "original, on the screen"),
        (Verdict.ORIGINAL, False, "original, not on the screen"),
        (Verdict.COPY, False, "copy"),
        (Verdict.NO_EFFECT, None, "no effect seen"),
    ):
        assert verdict_words(replace(plain, proof=Proof(verdict, is_shown))) == words
