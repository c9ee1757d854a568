"""What follows from scores by the rule."""

from dataclasses import replace

import pytest

from game_rl.experiments.compare.comparison import Arm, Outcome, Rule, Score, compare_arms

RULE = Rule(metric="success_rate", paired=True, margin=0.05)


def arm(name: str, *rates: float | None) -> Arm:
    """None: that seed has failed."""
    return Arm(
        name,
        tuple(
            Outcome(
                name=f"{name}{seed}",
                seed=seed,
                score=None if rate is None else Score(rate, rate, 100),
                curve=(),
                timesteps=1,
                total_timesteps=1,
                total_frames=1,
                failure="" if rate is not None else "NaN",
            )
            for seed, rate in enumerate(rates)
        ),
    )


def verdict(one: Arm, two: Arm, rule: Rule = RULE) -> str:
    return compare_arms([two, one], rule, [(one.name, two.name)]).differences[0].verdict


LOW = arm("low", 0.5, 0.52, 0.48, 0.55, 0.5, 0.47, 0.51, 0.5)
HIGH = arm("high", 0.7, 0.75, 0.68, 0.71, 0.73, 0.69, 0.7, 0.74)
LIKE_LOW = arm("like", 0.51, 0.51, 0.49, 0.54, 0.5, 0.48, 0.5, 0.51)


@pytest.mark.parametrize("paired", [True, False])
def test_the_four_verdicts(paired: bool) -> None:
    rule = replace(RULE, paired=paired)
    assert verdict(HIGH, LOW, rule) == "better"
    assert verdict(LOW, HIGH, rule) == "worse"
    assert verdict(LIKE_LOW, LOW, rule) == "not worse"
    assert verdict(LIKE_LOW, LOW, replace(rule, margin=None)) == "undecided"


@pytest.mark.parametrize("paired", [True, False])
def test_an_arm_against_itself_is_undecided_or_not_worse(paired: bool) -> None:
    same = replace(LOW, name="same")
    rule = replace(RULE, paired=paired, margin=None)
    assert verdict(same, LOW, rule) == "undecided"
    found = compare_arms([LOW, same], rule, [("same", "low")]).differences[0]
    assert found.p_value == 1.0
    assert found.superiority == 0.5


def test_a_difference_below_the_minimum_is_none() -> None:
    assert verdict(HIGH, LOW, replace(RULE, minimum=0.3)) == "not worse"
    assert verdict(LOW, HIGH, replace(RULE, minimum=0.3)) == "undecided"


def test_fewer_than_eight_seeds_have_no_interval_and_are_not_called_not_worse() -> None:
    few, others = arm("few", 0.5, 0.5, 0.5, 0.5, 0.5), arm("others", 0.5, 0.5, 0.5, 0.5, 0.5)
    found = compare_arms([few, others], RULE, [("few", "others")])
    assert found.differences[0].interval is None
    assert found.summaries[0].interval is None
    assert found.differences[0].verdict == "undecided"


def test_a_seed_that_failed_counts_as_the_worst_value() -> None:
    broken = arm("broken", 0.9, 0.9, None)
    found = compare_arms([broken, arm("a", 0.3, 0.4, 0.2)], RULE, [])
    assert found.summaries[0].scores == (0.9, 0.9, 0.0)
    assert found.summaries[0].failed == 1
    by_reward = compare_arms(
        [broken, arm("a", 0.3, 0.4, 0.2)], replace(RULE, metric="mean_reward"), []
    )
    assert by_reward.summaries[0].scores == (0.9, 0.9, 0.2)


def test_several_comparisons_share_the_error() -> None:
    """Alone, p = 10/256 < 0.05; as one of two with the same p, twice that."""
    base = arm("base", *[0.5] * 8)
    some = arm("some", 0.58, 0.57, 0.56, 0.55, 0.54, 0.53, 0.48, 0.49)
    alone = compare_arms([base, some], RULE, [("some", "base")]).differences[0]
    assert alone.p_value <= 0.05
    assert alone.verdict == "better"
    again = replace(some, name="again")
    both = compare_arms([base, some, again], RULE, [("some", "base"), ("again", "base")])
    assert [d.adjusted_p_value for d in both.differences] == [2 * alone.p_value] * 2
    assert {d.verdict for d in both.differences} <= {"not worse", "undecided"}
