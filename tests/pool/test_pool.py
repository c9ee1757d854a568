"""The states of a pool: its bound, what is dropped, weights and counts, against plain loops."""

import math
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.config.pool_config import PoolConfig
from game_rl.pool.pool import (
    LEAST_EPISODES,
    MOST_LEVELS,
    RECENT,
    EpisodeTally,
    NewState,
    Pool,
    PoolEnding,
    RoutePlace,
    SavedPool,
    spread,
)


def settings(size: int = 10, **keys: object) -> PoolConfig:
    return PoolConfig.model_validate({"from": "explored", "size": size, **keys})


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
    pool = Pool(settings(size))
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


@given(
    st.lists(st.integers(0, 30), max_size=60),
    st.lists(st.tuples(st.integers(0, 59), st.booleans(), st.integers(-9, 9)), max_size=60),
)
def test_levels_count_the_episodes_from_states_of_a_reward(
    tenths: list[int], ends: list[tuple[int, bool, int]]
) -> None:
    pool = Pool(settings(size=100))
    pool.add(NewState(b"", "shore", tenth / 10, 1) for tenth in tenths)
    pool.count(PoolEnding(began=number, success=won, reward=float(r)) for number, won, r in ends)
    levels = pool.levels()
    assert len(levels) == min(len(set(tenths)), MOST_LEVELS)
    assert sum(level.states for level in levels) == len(tenths)
    before = -1.0
    for level in levels:
        least, most = level.least_reward, level.most_reward
        assert before < least <= most
        before = most
        if len(set(tenths)) <= MOST_LEVELS:
            assert least == most
        held = {n for n, tenth in enumerate(tenths) if least <= tenth / 10 <= most}
        of_level = [(won, reward) for number, won, reward in ends if number in held]
        assert (level.states, level.episodes) == (len(held), len(of_level))
        assert level.successes == sum(won for won, _ in of_level)
        if of_level:
            assert level.mean_reward == sum(reward for _, reward in of_level) / len(of_level)
        else:
            assert (level.mean_reward, level.success_rate) == (None, None)


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


def pool_of(*rewards: float, size: int = 10, **keys: object) -> Pool:
    pool = Pool(settings(size, **keys))
    pool.add(NewState(b"x", "shore", reward, 0) for reward in rewards)
    return pool


def test_ranks_and_equal_weights() -> None:
    ranked = pool_of(3.0, 1.0, 2.0, choose="rank", share=0.5)
    assert numbers(ranked) == [1, 2, 0]
    assert ranked.weights() == [1, 2, 3]
    draw = ranked.draw()
    assert draw is not None
    assert (draw.share, draw.numbers, draw.furthest) == (0.5, (1, 2, 0), ())
    assert draw.bounds.tolist() == pytest.approx([1 / 6, 3 / 6, 1])
    assert pool_of(3.0, 1.0, 2.0, choose="uniform").weights() == [1, 1, 1]
    assert pool_of(choose="rank").draw() is None


def endings(number: int | None, outcomes: str) -> list[PoolEnding]:
    return [PoolEnding(began=number, success=each == "1", reward=0.0) for each in outcomes]


@given(st.text("01", max_size=60))
def test_success_draws_by_the_mean_of_p_times_1_minus_p(outcomes: str) -> None:
    """Compare with a sum over many success rates, weighted by how well they fit."""
    pool = pool_of(1.0, choose="success")
    pool.count(endings(0, outcomes))
    recent = outcomes[-RECENT:]
    total = mean = 0.0
    n = 20_000
    for k in range(n):
        # p = sin^2(t) for even t is Jeffreys' prior
        p = math.sin((k + 0.5) / n * math.pi / 2) ** 2
        fit = p ** recent.count("1") * (1 - p) ** recent.count("0")
        total += fit
        mean += fit * p * (1 - p)
    assert pool.weights() == [pytest.approx(mean / total, rel=1e-4)]


def test_success_prefers_what_neither_always_fails_nor_always_succeeds() -> None:
    pool = pool_of(1.0, 2.0, 3.0, 4.0, choose="success")
    for number, outcomes in enumerate(("0" * 30, "01" * 15, "1" * 30, "")):
        pool.count(endings(number, outcomes))
    never, half, always, untried = pool.weights()
    assert never == pytest.approx(always)
    assert half > 1.8 * untried > 1.8 * 8 * never


def route_pool(lefts: Sequence[int], rewards: Sequence[float], **keys: object) -> Pool:
    """A pool of states of one route, which is as long as the first is away from its end."""
    pool = Pool(settings(100, choose="backward", **keys))
    pool.add(
        NewState(b"", "shore", reward, max(lefts) - left, RoutePlace(route=0, left=left))
        for left, reward in zip(lefts, rewards, strict=True)
    )
    return pool


def test_beginnings_move_back_along_a_route_when_episodes_succeed() -> None:
    pool = route_pool([30, 20, 10], [0.0, 0.5, 1.0])
    assert numbers(pool) == [0, 1, 2]
    assert pool.weights() == [0, 0, 1]
    pool.count(endings(2, "1" * (LEAST_EPISODES - 1)))
    assert pool.weights() == [0, 0, 1]  # too few to say
    pool.count(endings(2, "0"))
    assert pool.weights() == [0, 0.5, 0.5]
    pool.count(endings(1, "0" * 15))
    assert pool.weights() == [0, 0.5, 0.5]
    pool.count(endings(1, "1" * 5))  # 5 of 20 are a quarter
    assert pool.weights() == [0.5, 0.25, 0.25]
    assert pool.share_passed == pytest.approx(2 / 3)
    pool.count([*endings(0, "1" * 10), *endings(2, "0" * 30)])
    assert pool.weights() == pytest.approx([1 / 3] * 3)  # passed once is passed


def test_with_rewards_as_the_goal_each_stretch_moves_back_for_itself() -> None:
    pool = route_pool([40, 30, 20, 10], [0.0, 0.0, 1.0, 1.0], goal="reward")
    assert pool.weights() == [0, 1, 0, 1]
    pool.count(endings(3, "1" * 8))
    assert pool.weights() == [0, 1, 0.5, 0.5]


def test_routes_move_back_apart() -> None:
    pool = Pool(settings(choose="backward"))
    pool.add(
        NewState(b"", "shore", 0.0, 0, RoutePlace(route=route, left=left))
        for route in (0, 1)
        for left in (10, 20)
    )
    pool.count(endings(0, "1" * 8))
    weights = dict(zip(numbers(pool), pool.weights(), strict=True))
    assert weights == {0: 0.5, 1: 0.5, 2: 1, 3: 0}


def test_a_swarm_goes_to_all_states_with_the_highest_reward() -> None:
    draw = pool_of(2.0, 0.5, 2.0, 1.0, migrate="furthest").draw()
    assert draw is not None
    assert draw.furthest == (0, 2)


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
def test_what_came_of_episodes_is_counted_by_beginning(ended: list[PoolEnding]) -> None:
    pool = pool_of(1.0, 2.0, 3.0)
    pool.count(ended[:30])
    pool.count(ended[30:])
    tallies = {each.beginning.number: each.tally for each in pool.states} | {None: pool.starts}
    for began, tally in tallies.items():
        mine = [each for each in ended if each.began == began]
        assert tally.episodes == len(mine)
        assert tally.successes == sum(each.success for each in mine)
        assert tally.reward == sum(each.reward for each in mine)
        assert tally.recent == "".join("01"[each.success] for each in mine)[-RECENT:]


@given(BATCHES, st.integers(1, 12), st.integers(1, 12))
def test_a_saved_pool_goes_on_as_if_it_had_not_been_saved(
    batches: list[list[NewState]], size: int, later: int
) -> None:
    pool = Pool(settings(size))
    for batch in batches:
        pool.add(batch)
    pool.count(PoolEnding(began=number, success=True, reward=1.0) for number in numbers(pool))
    waiting = (PoolEnding(began=None, success=False, reward=0.5),)
    text = pool.saved(waiting).model_dump_json()
    saved = SavedPool.model_validate_json(text)
    assert saved.waiting == waiting
    again = Pool.of(saved, settings(size))
    assert again.saved(waiting).model_dump_json() == text
    for each in (pool, again):
        each.add([NewState(b"new", "shore", 1.0, 7)])
    assert again.saved() == pool.saved()
    assert len(Pool.of(saved, settings(later)).states) == min(later, len(saved.states))


def test_a_state_that_was_dropped_is_not_counted() -> None:
    pool = pool_of(1.0, 1.0, size=1)
    assert numbers(pool) == [1]
    pool.count([PoolEnding(began=0, success=True, reward=1.0)])
    assert pool.states[0].tally == pool.starts == EpisodeTally()


def test_numbers_are_never_used_twice() -> None:
    pool = pool_of(1.0, 2.0, size=1)
    again = Pool(settings(5), next_number=pool.saved().next_number)
    again.add([NewState(b"", "shore", 0.0, 0)])
    assert numbers(again) == [2]


def test_a_damaged_tally_is_refused() -> None:
    with pytest.raises(ValueError, match="recent"):
        EpisodeTally(recent="0120")
