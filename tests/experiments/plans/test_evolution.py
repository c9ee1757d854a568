"""Who is cloned over, beside a plain reading of the rule."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.config.experiments.mixture_config import CloneConfig
from game_rl.config.experiments.population_config import MutationConfig, SelectionConfig
from game_rl.experiments.plans.rules import Copy, Scored, clones, mutated, ranked, select

VALUES = st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0])


def scored(values: list[float | None], rewards: list[float]) -> list[Scored]:
    return [Scored(n, v, r) for n, (v, r) in enumerate(zip(values, rewards, strict=True))]


@given(
    st.lists(st.tuples(VALUES, st.sampled_from([0.0, 1.0])), min_size=3, max_size=6), st.booleans()
)
def test_to_all_takes_the_broken_and_whom_the_learner_beats(
    drawn: list[tuple[float | None, float]], only_if_better: bool
) -> None:
    *members, learner = scored([value for value, _ in drawn], [reward for _, reward in drawn])
    wanted = []
    finite = [m for m in members if m.fitness is not None]
    best = max(finite, key=lambda m: (m.fitness, m.mean_reward, -m.number), default=None)
    for member in members:
        if learner.fitness is None:
            if member.fitness is None and best is not None:
                wanted.append(Copy(member.number, best.number))
            continue
        is_beaten = member.fitness is None or (learner.fitness, learner.mean_reward) > (
            member.fitness,
            member.mean_reward,
        )
        if is_beaten or not only_if_better:
            wanted.append(Copy(member.number, learner.number))
    assert clones(members, learner, CloneConfig(only_if_better=only_if_better)) == wanted


def test_to_worst_takes_the_worst_and_only_if_it_is_beaten() -> None:
    members = scored([0.5, 0.25, 0.75], [0.0, 0.0, 0.0])
    config = CloneConfig(to="worst")
    assert clones(members, Scored(3, 0.6, 0.0), config) == [Copy(1, 3)]
    assert clones(members, Scored(3, 0.25, 0.0), config) == []
    assert clones(members, Scored(3, 0.25, 1.0), config) == [Copy(1, 3)]


RATE = "algorithm.learning_rate"
GAMMA = "algorithm.gamma"


def rule(
    low: float = 0.8, high: float = 1.25, bounds: tuple[float, float] = (0, 10)
) -> MutationConfig:
    return MutationConfig(factor=(low, high), bounds=bounds)


def draw(values: dict, rules: dict, seed: int = 0) -> dict:
    return mutated(values, rules, np.random.default_rng(seed))


@given(
    st.floats(1e-6, 5),
    st.floats(0.1, 1),
    st.floats(1, 10),
    st.tuples(st.floats(1e-7, 1), st.floats(1.5, 20)),
    st.integers(0, 10**6),
)
def test_a_value_stays_in_bounds_and_moves_by_a_factor_in_range(
    value: float, low: float, high: float, bounds: tuple[float, float], seed: int
) -> None:
    new = draw({RATE: value}, {RATE: rule(low, high, bounds)}, seed)[RATE]
    assert bounds[0] <= new <= bounds[1]
    if bounds[0] < new < bounds[1]:
        assert low * (1 - 1e-12) <= new / value <= high * (1 + 1e-12)


def test_factors_are_even_on_a_log_scale() -> None:
    """Of U(-a, a): mean 0, variance a^2 / 3; half of them lower the value."""
    generator, a = np.random.default_rng(0), log(1.25)
    moves = [
        log(mutated({RATE: 1.0}, {RATE: rule()}, generator)[RATE])  # type: ignore[arg-type]
        for _ in range(20_000)
    ]
    assert abs(np.mean(moves)) < 4 * a / (3 * 20_000) ** 0.5
    assert np.var(moves) == pytest.approx(a * a / 3, rel=0.03)
    assert abs(sum(move < 0 for move in moves) - 10_000) < 4 * 5_000**0.5


@given(st.floats(0.5, 0.9999), st.integers(0, 10**6))
def test_a_discount_moves_as_its_distance_from_one(gamma: float, seed: int) -> None:
    rules = {GAMMA: rule(bounds=(0.1, 0.99999))}
    distance = 1 - draw({GAMMA: gamma}, rules, seed)[GAMMA]
    plain = draw({RATE: 1 - gamma}, {RATE: rule()}, seed)[RATE]
    if 1e-5 < plain < 0.9:
        assert distance == pytest.approx(plain, rel=1e-6)


@given(st.floats(1e-5, 1), st.floats(0, 1), st.integers(0, 10**6), st.sampled_from([0.5, 2.0]))
def test_a_schedule_is_scaled_whole_even_where_its_start_meets_a_bound(
    start: float, end: float, seed: int, most: float
) -> None:
    new = draw(
        {RATE: {"start": start, "end": end}}, {RATE: rule(bounds=(1e-6, most * start))}, seed
    )[RATE]
    assert new["start"] <= most * start
    assert new["end"] * start == pytest.approx(end * new["start"])


def test_each_key_draws_a_factor_of_its_own() -> None:
    rules = {RATE: rule(), "algorithm.ent_coef": rule()}
    new = draw({RATE: 1.0, "algorithm.ent_coef": 1.0}, rules)
    assert new[RATE] != new["algorithm.ent_coef"]


def test_the_same_generator_gives_the_same_values() -> None:
    assert draw({RATE: 0.3}, {RATE: rule()}, 7) == draw({RATE: 0.3}, {RATE: rule()}, 7)


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
        return one.fitness < other.fitness
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
