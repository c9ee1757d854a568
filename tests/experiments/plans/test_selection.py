"""Selection against a plain loop."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from game_rl.config.experiments.population_config import SelectionConfig
from game_rl.experiments.plans.evolution import Copy, Scored, ranked, select

FITNESSES = st.lists(
    st.one_of(st.none(), st.sampled_from([0.0, 0.25, 0.5, 0.55, 0.9, 0.95, 1.0])),
    min_size=2,
    max_size=20,
)
SHARES = st.sampled_from([0.1, 0.2, 0.25, 0.29, 0.5])
GAPS = st.sampled_from([0.0, 0.05, 0.3])


def members(fitnesses: list[float | None]) -> list[Scored]:
    return [Scored(number, fitness, 0.0) for number, fitness in enumerate(fitnesses)]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def worse_than(one: Scored, other: Scored) -> bool:
    """By the words of the rule, one comparison at a time."""
    if (one.fitness is None) != (other.fitness is None):
        return one.fitness is None
    if one.fitness is not None and one.fitness != other.fitness:
        return one.fitness < other.fitness  # type: ignore[operator]
    if one.fitness is not None and one.mean_reward != other.mean_reward:
        return one.mean_reward < other.mean_reward
    return one.number > other.number


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0])),
            st.sampled_from([-1.0, 0.0, 2.0]),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_the_ranking_is_that_of_a_bubble_sort(figures: list[tuple[float | None, float]]) -> None:
    scored = [Scored(n, fitness, reward) for n, (fitness, reward) in enumerate(figures)]
    sorted_slowly = list(scored)
    for _ in sorted_slowly:
        for i in range(len(sorted_slowly) - 1):
            if worse_than(sorted_slowly[i], sorted_slowly[i + 1]):
                sorted_slowly[i : i + 2] = sorted_slowly[i + 1], sorted_slowly[i]
    assert ranked(scored) == sorted_slowly


def naive_copies(
    scored: list[Scored], share: float, gap: float, control: int
) -> list[tuple[int, set[int]]]:
    """Who must copy, and whom it may copy, with whole percents instead of floats."""
    finite = [m for m in ranked(scored) if m.fitness is not None]
    k = max(1, round(100 * share) * len(scored) // 100)
    best = finite[:k]
    broken = [m for m in scored if m.fitness is None]
    todo = list(broken)
    for member in reversed(finite):
        if len(todo) >= k:
            break
        if member not in best and member.number >= control:
            todo.append(member)
    found = []
    for member in sorted(todo, key=lambda m: m.number):
        parents = {
            parent.number
            for parent in best
            if member.fitness is None
            or round(100 * (parent.fitness or 0)) - round(100 * member.fitness) >= round(100 * gap)
        }
        found.append((member.number, parents))
    return found


@given(FITNESSES, SHARES, GAPS, st.integers(0, 3), st.integers(0, 1000))
def test_copies_are_those_that_a_plain_loop_finds(
    fitnesses: list[float | None], share: float, gap: float, control: int, seed: int
) -> None:
    scored = members(fitnesses)
    copies = select(
        scored,
        SelectionConfig(share=share, gap=gap),
        control=control,
        rng=np.random.default_rng(seed),
    )
    if all(fitness is None for fitness in fitnesses):
        assert copies == []
        return
    allowed = dict(naive_copies(scored, share, gap, control))
    assert {copy.number for copy in copies} <= set(allowed)
    for copy in copies:
        assert copy.parent in allowed[copy.number]
    best = {m.number for m in ranked(scored) if m.fitness is not None}
    k = max(1, round(100 * share) * len(scored) // 100)
    best = {m.number for m in [m for m in ranked(scored) if m.fitness is not None][:k]}
    must = {number for number, parents in allowed.items() if parents == best}
    assert must <= {copy.number for copy in copies}  # whichever parent it drew


@given(FITNESSES, st.integers(0, 1000))
def test_a_gap_takes_copies_away_and_changes_no_other(
    fitnesses: list[float | None], seed: int
) -> None:
    def copies(gap: float) -> set[Copy]:
        config = SelectionConfig(share=0.5, gap=gap)
        generator = np.random.default_rng(seed)
        return set(select(members(fitnesses), config, control=1, rng=generator))

    assert copies(0.3) <= copies(0.0)


def test_a_success_rate_that_is_exactly_the_gap_below_is_copied_over() -> None:
    """0.95 - 0.90 is less than 0.05 in floats."""
    found = select(members([0.95, 0.90]), SelectionConfig(gap=0.05), control=0, rng=rng())
    assert found == [Copy(1, 0)]


def test_of_equals_the_lower_number_stays() -> None:
    found = select(members([0.5, 0.5, 0.5]), SelectionConfig(gap=0.0), control=0, rng=rng())
    assert found == [Copy(2, 0)]


def test_a_control_member_is_not_copied_over_and_the_next_worst_is() -> None:
    found = select(members([0.0, 0.9, 0.1]), SelectionConfig(), control=1, rng=rng())
    assert found == [Copy(2, 1)]


def test_a_control_member_can_be_the_parent() -> None:
    found = select(members([0.9, 0.1]), SelectionConfig(), control=1, rng=rng())
    assert found == [Copy(1, 0)]


def test_whoever_is_not_finite_is_replaced_however_many_and_even_a_control_member() -> None:
    found = select(members([None, None, 0.2, None]), SelectionConfig(gap=1), control=1, rng=rng())
    assert found == [Copy(0, 2), Copy(1, 2), Copy(3, 2)]


def test_every_one_of_the_best_is_drawn_about_as_often() -> None:
    scored, drawn = members([1.0, 0.9, 0.1, 0.0]), {0: 0, 1: 0}
    generator = np.random.default_rng(0)
    for _ in range(2_000):
        for copy in select(scored, SelectionConfig(share=0.5), control=0, rng=generator):
            drawn[copy.parent] += 1
    assert abs(drawn[0] - drawn[1]) < 4 * 4_000**0.5  # 4 standard deviations of 2,000 +- 31.6
