"""The states of a pool: its bound, what is dropped, weights and counts, against plain loops."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.pool.pool import (
    RECENT,
    EpisodeTally,
    NewState,
    Pool,
    PoolEnding,
    SavedPool,
    spread,
)

NEW = st.builds(
    NewState,
    state=st.binary(max_size=3),
    start_state=st.just("shore"),
    reward=st.sampled_from([0.0, 0.5, 1.0, 2.5]),
    timesteps=st.integers(0, 50),
)
BATCHES = st.lists(st.lists(NEW, max_size=8), max_size=8)


def numbers(pool: Pool) -> list[int]:
    return [each.beginning.number for each in pool.states]


@given(BATCHES, st.integers(1, 12))
def test_a_pool_is_bounded_and_even_over_the_rewards(
    batches: list[list[NewState]], size: int
) -> None:
    pool = Pool(size)
    n = 0
    plain: list[tuple[int, NewState]] = []
    for batch in batches:
        pool.add(batch)
        plain += list(enumerate(batch, n))
        n += len(batch)
        while len(plain) > size:  # one by one: of the most frequent reward, the oldest
            counts = Counter(new.reward for _, new in plain)
            most = min(counts, key=lambda reward: (-counts[reward], reward))
            plain.remove(next(each for each in plain if each[1].reward == most))
        in_order = sorted(plain, key=lambda each: (each[1].reward, each[1].timesteps, each[0]))
        assert numbers(pool) == [number for number, _ in in_order]
        assert [each.beginning.state for each in pool.states] == [e.state for _, e in in_order]
        assert len(pool.states) <= size


@given(st.lists(NEW, max_size=40), st.integers(1, 20))
def test_spread_takes_as_many_of_each_reward_as_there_are(found: list[NewState], size: int) -> None:
    chosen = spread(found, size, progress=lambda each: each.progress)
    assert len(chosen) == min(size, len(found))
    assert not Counter(chosen) - Counter(found)
    there = Counter(each.reward for each in found)
    taken = Counter(each.reward for each in chosen)
    most = max(taken.values(), default=0)
    for reward, n in there.items():
        assert taken[reward] == n or taken[reward] >= most - 1


def test_spread_takes_states_from_all_over_a_reward() -> None:
    found = [NewState(b"", "shore", 1.0, timesteps) for timesteps in range(100)]
    chosen = spread(found, 4, progress=lambda each: each.progress)
    assert [each.timesteps for each in chosen] == [0, 25, 50, 75]


def pool_of(*rewards: float, size: int = 10) -> Pool:
    pool = Pool(size)
    pool.add(NewState(b"x", "shore", reward, 0) for reward in rewards)
    return pool


def test_ranks_and_equal_weights() -> None:
    pool = pool_of(3.0, 1.0, 2.0)
    assert numbers(pool) == [1, 2, 0]
    assert pool.weights("rank") == [1, 2, 3]
    assert pool.weights("uniform") == [1, 1, 1]
    assert Pool(3).draw(0.5, "rank") is None


@given(
    st.lists(
        st.builds(
            PoolEnding,
            began=st.sampled_from([None, 0, 1, 2, 9]),
            success=st.booleans(),
            reward=st.integers(-3, 3).map(float),
        ),
        max_size=80,
    )
)
def test_what_came_of_episodes_is_counted_by_beginning(endings: list[PoolEnding]) -> None:
    pool = pool_of(1.0, 2.0, 3.0)
    pool.count(endings[:30])
    pool.count(endings[30:])
    tallies = {each.beginning.number: each.tally for each in pool.states} | {None: pool.starts}
    for began, tally in tallies.items():
        mine = [each for each in endings if each.began == began]
        assert tally.episodes == len(mine)
        assert tally.successes == sum(each.success for each in mine)
        assert tally.reward == sum(each.reward for each in mine)
        assert tally.recent == "".join("01"[each.success] for each in mine)[-RECENT:]


@given(BATCHES, st.integers(1, 12), st.integers(1, 12))
def test_a_saved_pool_goes_on_as_if_it_had_not_been_saved(
    batches: list[list[NewState]], size: int, later: int
) -> None:
    pool = Pool(size)
    for batch in batches:
        pool.add(batch)
    pool.count(PoolEnding(began=number, success=True, reward=1.0) for number in numbers(pool))
    waiting = (PoolEnding(began=None, success=False, reward=0.5),)
    text = pool.saved(waiting).model_dump_json()
    saved = SavedPool.model_validate_json(text)
    assert saved.waiting == waiting
    again = Pool.of(saved, size)
    assert again.saved(waiting).model_dump_json() == text
    for each in (pool, again):
        each.add([NewState(b"new", "shore", 1.0, 7)])
    assert again.saved() == pool.saved()
    assert len(Pool.of(saved, later).states) == min(later, len(saved.states))


def test_a_state_that_was_dropped_is_not_counted() -> None:
    pool = pool_of(1.0, 1.0, size=1)
    assert numbers(pool) == [1]
    pool.count([PoolEnding(began=0, success=True, reward=1.0)])
    assert pool.states[0].tally == pool.starts == EpisodeTally()


def test_numbers_are_never_used_twice() -> None:
    pool = pool_of(1.0, 2.0, size=1)
    again = Pool(5, next_number=pool.saved().next_number)
    again.add([NewState(b"", "shore", 0.0, 0)])
    assert numbers(again) == [2]


def test_a_damaged_tally_is_refused() -> None:
    with pytest.raises(ValueError, match="recent"):
        EpisodeTally(recent="0120")
