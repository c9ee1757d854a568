"""Numbers that a game draws with tiles."""

import numpy as np
import pytest

from game_rl.errors import UsageError
from game_rl.ram_search.shown_numbers import (
    NumberPlace,
    Statement,
    learned_from_counter,
    parse_statement,
    stated_place,
)
from game_rl.ram_search.symbol_words import likeness

ZERO = 40


def screen(row: int, column: int, digits: str) -> np.ndarray:
    tiles = np.full((18, 20), 300, np.int16)
    for offset, digit in enumerate(digits):
        tiles[row, column + offset] = ZERO + int(digit)
    return tiles


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("28", Statement("28")),
        ("row 1 column 5 is 028", Statement("028", 1, 5)),
        ("28 at row 1, col 5", Statement("28", 1, 5)),
        ("r1 c5 28", Statement("28", 1, 5)),
    ],
)
def test_a_number_is_told_in_words(text: str, statement: Statement) -> None:
    assert parse_statement(text) == statement


@pytest.mark.parametrize("text", ["", "health", "row 1 is 28", "28 29", "row 18 column 0 is 3"])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--number"):
        parse_statement(text)


def test_a_number_is_read_as_it_gets_longer_on_either_side() -> None:
    (place,) = stated_place(Statement("28"), {"tiles": screen(3, 8, "28")})
    assert (place.row, place.column, place.zero) == (3, 8, ZERO)
    assert place.read(screen(3, 7, "128")) == 128
    assert place.read(screen(3, 9, "7")) == 7
    assert place.read(screen(3, 8, "281")) == 281
    assert place.read(screen(4, 8, "28")) is None


def test_rows_and_columns_that_are_counted_from_1_are_understood() -> None:
    (place,) = stated_place(Statement("5", 4, 9), {"tiles": screen(4, 9, "5")})
    assert (place.row, place.column) == (4, 9)
    (near,) = stated_place(Statement("285", 4, 9), {"tiles": screen(3, 8, "285")})
    assert (near.row, near.column) == (3, 8)


def test_one_digit_needs_a_place_and_a_number_that_is_not_there_is_said() -> None:
    with pytest.raises(UsageError, match="say where"):
        stated_place(Statement("5"), {"tiles": screen(4, 9, "5")})
    with pytest.raises(UsageError, match="does not show 99"):
        stated_place(Statement("99"), {"tiles": np.arange(360, dtype=np.int16).reshape(18, 20)})


@pytest.mark.parametrize("way", [1, -1])
def test_digits_in_any_order_are_learned_from_a_counter(way: int) -> None:
    rng = np.random.default_rng(0)
    tiles_of = rng.permutation(200)[:10]
    numbers = [(3 + way * n) % 10 for n in range(30)]
    frames = np.full((30, 18, 20), 300, np.int16)
    for frame, number in zip(frames, numbers, strict=True):
        frame[2, 5] = tiles_of[number]
    place = NumberPlace(2, 5, 1, "tiles", {int(tiles_of[3]): 3})
    up, down = learned_from_counter(place, frames)
    learned = up if way == 1 else down
    assert [learned.read(frame) for frame in frames] == numbers


def test_symbols_are_alike_by_meaning() -> None:
    assert likeness("health", "wPlayerHP") > likeness("health", "wPlayerX")
    assert likeness("lives", "_lives") == 1
    assert likeness("score", "_fighter_update") == 0
