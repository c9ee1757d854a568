"""Timesteps to go along an archive's graph, compared with relaxing every step again and again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.errors import UsageError
from game_rl.explore.archive import ENDED
from game_rl.explore.graph import goals, timesteps_to_go
from game_rl.games.cell import Cell
from tests.explore.made_archives import Steps, made_lines

CELLS = [(x, y) for x in range(3) for y in range(3)]
steps_of = st.dictionaries(
    st.tuples(st.sampled_from(CELLS), st.sampled_from(CELLS)), st.integers(1, 20), max_size=20
)


def relaxed(steps: Steps, ends: list[Cell]) -> dict[Cell, int]:
    """Return the fewest timesteps to one of the cells, by Bellman and Ford's algorithm."""
    found = dict.fromkeys(ends, 0)
    for _ in range(len(CELLS) + 1):
        for (before, after), timesteps in steps.items():
            if after in found:
                found[before] = min(found.get(before, 10**9), found[after] + timesteps)
    return found


@given(steps_of, st.lists(st.sampled_from(CELLS), unique=True))
def test_timesteps_to_go_are_those_of_the_shortest_way_to_a_success(
    steps: Steps, successes: list[Cell]
) -> None:
    archive, _ = made_lines((0, 0), steps, successes=successes)
    ends = [record.cell for record in archive.successes()]
    if not ends:
        with pytest.raises(UsageError, match="none is a success, and none has a reward"):
            timesteps_to_go(archive)
        return
    assert timesteps_to_go(archive) == relaxed(steps, ends)


@given(steps_of, st.dictionaries(st.sampled_from(CELLS[1:]), st.integers(1, 3), min_size=1))
def test_without_a_success_the_way_is_to_the_highest_reward(
    steps: Steps, rewards: dict[Cell, float]
) -> None:
    archive, _ = made_lines((0, 0), steps, rewards=rewards)
    known = {record.cell: rewards.get(record.cell, 0) for record in archive.cells}
    best = max(known.values())
    if not best:
        with pytest.raises(UsageError, match="none has a reward"):
            goals(archive)
        return
    ends = [cell for cell, reward in known.items() if reward == best]
    assert timesteps_to_go(archive) == relaxed(steps, ends)


def test_a_way_goes_through_what_has_to_be_done_first() -> None:
    """A cell has what was taken, so the way from the start leads to the key, then to the door."""
    start, at_key, back, behind_door = (0, 0), (9, 1), (0, 1), (1, 1)
    steps: Steps = {(start, at_key): 5, (at_key, back): 5, (back, behind_door): 1}
    archive, _ = made_lines(start, steps, successes=[behind_door])
    assert timesteps_to_go(archive) == {behind_door: 0, back: 1, at_key: 6, start: 11}


def test_an_end_counts_as_its_cell_unless_that_is_known_itself() -> None:
    won = (2, 0, ENDED)
    lost = (1, 0, ENDED)
    steps: Steps = {((0, 0), (1, 0)): 3, ((1, 0), won): 4, ((1, 0), lost): 1, ((0, 0), (2, 0)): 9}
    archive, _ = made_lines((0, 0), steps, successes=[won])
    assert timesteps_to_go(archive) == {(2, 0): 0, (1, 0): 4, (0, 0): 7}
    stays: Steps = {**steps, ((2, 0), won): 5}
    archive, _ = made_lines((0, 0), stays, successes=[won])
    assert timesteps_to_go(archive) == {(2, 0): 5, (1, 0): 4, (0, 0): 7}


def test_a_cell_with_no_way_is_unknown() -> None:
    steps: Steps = {((0, 0), (1, 0)): 3, ((0, 0), (2, 2)): 1}
    archive, _ = made_lines((0, 0), steps, successes=[(1, 0)])
    assert timesteps_to_go(archive) == {(1, 0): 0, (0, 0): 3}
