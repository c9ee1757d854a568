"""Counts of visited places against a plain Counter, through the file and damaged files."""

import io
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.places import place_counts
from game_rl.places.place_counts import (
    PlaceCounts,
    PlaceTally,
    parse_place_counts,
    timesteps_of,
)
from tests.envs.example import moment

COORDINATE = st.one_of(st.integers(-40, 40), st.sampled_from([-(10**9), 65_535, 2**40]))


def counted(
    places: Sequence[tuple[int, ...]],
    names: tuple[str, ...],
    every: int = 7,
    *,
    is_timed: bool = False,
) -> PlaceCounts:
    """Counts of a walk, collected every so many timesteps; with the times of visits, or without."""
    counts, tally = PlaceCounts(names, {}), PlaceTally(names)
    for number, place in enumerate(places):
        tally.step(moment(dict(zip(names, place, strict=True))))
        if number % every == 0:
            counts.add(tally.take(), until=number * is_timed)
    counts.add(tally.take(), until=len(places) * is_timed)
    return counts


def as_counter(counts: PlaceCounts) -> Counter[tuple[int, ...]]:
    found = Counter[tuple[int, ...]]()
    for sheet in counts.sheets():
        for row, column in np.argwhere(sheet.visits):
            place = (*sheet.map_id, sheet.x + int(column), sheet.y + int(row))
            found[place] = int(sheet.visits[row, column])
    return found


@pytest.mark.parametrize("n_variables", [2, 3, 4])
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_every_timestep_is_counted_at_its_place(n_variables: int, data: st.DataObject) -> None:
    names = ("world", "map", "x", "y")[-n_variables:]
    place = st.tuples(*[COORDINATE] * n_variables)
    places = data.draw(st.lists(place, max_size=60))
    counts = counted(places, names)
    assert as_counter(counts) == Counter(places)
    assert (counts.timesteps, counts.n_places) == (len(places), len(set(places)))
    again = parse_place_counts(counts.to_bytes())
    assert as_counter(again) == Counter(places)
    assert again.to_bytes() == counts.to_bytes()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.tuples(COORDINATE, COORDINATE), max_size=9), max_size=5), st.data())
def test_a_place_knows_its_first_and_its_last_visit(
    rollouts: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    counts = PlaceCounts(("x", "y"), {})
    visits: dict[tuple[int, int], list[int]] = {}
    until = 0
    for places in rollouts:
        until += data.draw(st.integers(1, 10**7))
        tally = PlaceTally(("x", "y"))
        for place in places:
            tally.step(moment(dict(zip(("x", "y"), place, strict=True))))
            visits.setdefault(place, []).append(until)
        counts.add(tally.take(), until=until)
    again = parse_place_counts(counts.to_bytes())
    assert again.until == until
    for found in (counts, again):
        for sheet in found.sheets():
            for row, column in np.argwhere(sheet.visits):
                own = visits[sheet.x + int(column), sheet.y + int(row)]
                grids = (timesteps_of(sheet.found), timesteps_of(sheet.last))
                times = zip(grids, (own[0], own[-1]), strict=True)
                assert all(n * 127 / 128 <= grid[row, column] <= n for grid, n in times)


def test_a_file_of_an_earlier_version_has_no_times() -> None:
    counts = counted([(3, 4), (3, 4)], ("x", "y"))
    with np.load(io.BytesIO(counts.to_bytes())) as file:
        kept = {name: file[name] for name in file if name not in ("found", "last")}
    content = io.BytesIO()
    np.savez_compressed(content, **kept)
    (sheet,) = parse_place_counts(content.getvalue()).sheets()
    assert sheet.visits.sum() == 2
    assert not sheet.found.any()
    assert not sheet.last.any()


def test_equal_counts_are_equal_bytes_whatever_the_order_of_collection() -> None:
    places = [(level, x, 3) for level in (2, 1) for x in (70, 5, 5)]
    one, other = (counted(order, ("m", "x", "y")) for order in (places, places[::-1]))
    assert one.to_bytes() == other.to_bytes()


def test_a_single_variable_is_x_and_parts_of_a_number_are_cut_off() -> None:
    counts, tally = PlaceCounts(("room",), {}), PlaceTally(("room",))
    for value in (3, 3.9, -0.5, 10**30):
        tally.step(moment({"room": value}))
    counts.add(tally.take())
    assert as_counter(counts) == Counter({(3, 0): 2, (-1, 0): 1, (2**62, 0): 1})


def test_nothing_was_visited_yet() -> None:
    counts = PlaceCounts(("m", "x", "y"), {3: (1, 2)}, since=64)
    counts.add(PlaceTally(("m", "x", "y")).take())
    again = parse_place_counts(counts.to_bytes())
    assert (again.timesteps, again.n_places, again.elsewhere) == (0, 0, 0)
    assert (again.names, again.offsets, again.since) == (("m", "x", "y"), {3: (1, 2)}, 64)


def test_timesteps_beyond_the_last_sheet_are_counted_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(place_counts, "MOST_SHEETS", 2)
    counts = counted([(0, 0), (100, 0), (200, 0), (200, 0), (1, 1)], ("x", "y"), every=1)
    assert (counts.n_places, counts.elsewhere, counts.timesteps) == (3, 2, 5)
    assert parse_place_counts(counts.to_bytes()).elsewhere == 2


def test_a_count_stays_at_the_most_that_it_can_be() -> None:
    counts = counted([(0, 0)], ("x", "y"))
    counts._sheets[(0, 0)].visits[0, 0] = 2**32 - 2
    tally = PlaceTally(("x", "y"))
    for _ in range(3):
        tally.step(moment({"x": 0, "y": 0}))
    counts.add(tally.take())
    assert as_counter(counts) == Counter({(0, 0): 2**32 - 1})


def saved(**arrays: object) -> bytes:
    file = io.BytesIO()
    np.savez(file, allow_pickle=True, **arrays)  # type: ignore[arg-type]  # wrong on purpose
    return file.getvalue()


GOOD = counted([(1, 2, 3)], ("m", "x", "y")).to_bytes()
ABOUT = np.load(io.BytesIO(GOOD))["about"]
KEYS, VISITS = np.zeros((1, 3), np.int64), np.ones((1, 32, 32), np.uint32)
DAMAGED = {
    "empty": b"",
    "text": b"places",
    "cut": GOOD[: len(GOOD) // 2],
    "without its description": saved(sheets=KEYS, visits=VISITS),
    "with a description that is none": saved(sheets=KEYS, visits=VISITS, about=ABOUT[:9]),
    "with Python objects": saved(sheets=np.array([{}]), visits=VISITS, about=ABOUT),
    "with too few columns": saved(sheets=KEYS[:, :2], visits=VISITS, about=ABOUT),
    "with sheets of another size": saved(sheets=KEYS, visits=VISITS[:, 1:], about=ABOUT),
    "with other numbers": saved(sheets=KEYS, visits=VISITS.astype(np.int64), about=ABOUT),
    "with an empty sheet": saved(sheets=KEYS, visits=0 * VISITS, about=ABOUT),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_an_error_of_one_kind(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_place_counts(content)
