"""The comparison of arms: statistics, and verdicts that follow from them by a fixed rule."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from game_rl.experiments.compare.comparison_arms import Arm, Metric, worst_value
from game_rl.statistics import (
    TypicalValues,
    holm,
    paired_values,
    probability_of_superiority,
    unpaired_values,
)

LEAST_SEEDS = 8
"""The fewest seeds for an interval; with fewer, the single values say more."""

Verdict = Literal["better", "worse", "not worse", "undecided"]
Pair = tuple[str, str]
"""The names of an arm and of the arm that it is compared with."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The rule by which a verdict follows from the scores.

    Attributes:
        paired: whether seeds of the same number belong together.
        alpha: the accepted probability of calling two equal arms different.
        minimum: the least difference of the means for the verdicts better and worse.
        margin: an arm that is worse by less than this is "not worse"; None: no such verdict.
    """

    metric: Metric
    paired: bool
    alpha: float = 0.05
    minimum: float = 0.0
    margin: float | None = None


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The figures of one arm; timesteps and frames are means over its seeds."""

    name: str
    scores: tuple[float, ...]
    mean: float
    interval: tuple[float, float] | None
    failed: int
    timesteps: float
    total_timesteps: float
    total_frames: float


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference of two arms: `arm` minus `against`.

    Attributes:
        differences: one for each pair of seeds; empty if seeds are not paired.
        interval: the interval of the mean difference, at 1 - alpha; None with too few seeds.
        lower_end: lower end of its one-sided interval, at 1 - alpha / number of comparisons; None
            with too few seeds.
        p_value: two-sided.
        adjusted_p_value: adjusted with Holm's method over all comparisons.
        smallest_p_value: the smallest one that so many seeds can give.
        patterns: number of regroupings that the test looks at.
        is_exact: whether these are all regroupings, instead of drawn ones.
        superiority: share of pairs of seeds in which `arm` has the higher score; ties count half.
    """

    arm: str
    against: str
    differences: tuple[float, ...]
    mean: float
    interval: tuple[float, float] | None
    lower_end: float | None
    p_value: float
    adjusted_p_value: float
    smallest_p_value: float
    patterns: int
    is_exact: bool
    superiority: float
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Everything that the reports show."""

    rule: Rule
    arms: tuple[Arm, ...]
    summaries: tuple[Summary, ...]
    differences: tuple[Difference, ...]


def compare_arms(arms: Sequence[Arm], rule: Rule, pairs: Sequence[Pair]) -> Comparison:
    """Compare each pair of arms, and judge it by the rule."""
    worst = worst_value(arms, rule.metric)
    by_name = {arm.name: arm for arm in arms}
    found = [
        _difference(by_name[arm], by_name[against], rule, worst, len(pairs))
        for arm, against in pairs
    ]
    adjusted = holm([difference.p_value for difference in found])
    pairs_of_p = zip(found, adjusted, strict=True)
    judged = (replace(difference, adjusted_p_value=p) for difference, p in pairs_of_p)
    return Comparison(
        rule=rule,
        arms=tuple(arms),
        summaries=tuple(_summary(arm, rule, worst) for arm in arms),
        differences=tuple(replace(each, verdict=_verdict(each, rule)) for each in judged),
    )


def can_be_paired(arms: Sequence[Arm]) -> bool:
    """Whether all arms have the same seeds."""
    return len({tuple(arm.seeds) for arm in arms}) == 1


def _summary(arm: Arm, rule: Rule, worst: float) -> Summary:
    scores = arm.scores(rule.metric, worst=worst)
    outcomes = arm.outcomes
    has_interval = len(scores) >= LEAST_SEEDS
    return Summary(
        name=arm.name,
        scores=tuple(scores),
        mean=fmean(scores),
        interval=paired_values(scores).interval(1 - rule.alpha) if has_interval else None,
        failed=sum(outcome.score is None for outcome in outcomes),
        timesteps=fmean(outcome.timesteps for outcome in outcomes),
        total_timesteps=fmean(outcome.total_timesteps for outcome in outcomes),
        total_frames=fmean(outcome.total_frames for outcome in outcomes),
    )


def _difference(arm: Arm, against: Arm, rule: Rule, worst: float, comparisons: int) -> Difference:
    scores, others = (each.scores(rule.metric, worst=worst) for each in (arm, against))
    values, differences = _values(scores, others, paired=rule.paired)
    has_interval = min(len(scores), len(others)) >= LEAST_SEEDS
    p = values.p_value()
    return Difference(
        arm=arm.name,
        against=against.name,
        differences=differences,
        mean=fmean(scores) - fmean(others),
        interval=values.interval(1 - rule.alpha) if has_interval else None,
        lower_end=values.lower_end(1 - rule.alpha / comparisons) if has_interval else None,
        p_value=p,
        adjusted_p_value=p,
        smallest_p_value=values.smallest_p_value(),
        patterns=values.patterns,
        is_exact=values.is_exact,
        superiority=probability_of_superiority(scores, others),
        verdict="undecided",
    )


def _values(
    scores: Sequence[float], others: Sequence[float], *, paired: bool
) -> tuple[TypicalValues, tuple[float, ...]]:
    if not paired:
        return unpaired_values(scores, others), ()
    differences = tuple(one - two for one, two in zip(scores, others, strict=True))
    return paired_values(differences), differences


def _verdict(difference: Difference, rule: Rule) -> Verdict:
    """Apply the rule: first significance and size, then the margin."""
    is_different = difference.adjusted_p_value <= rule.alpha
    if is_different and abs(difference.mean) >= rule.minimum and difference.mean != 0:
        return "better" if difference.mean > 0 else "worse"
    lower = difference.lower_end
    if rule.margin is not None and lower is not None and lower > -rule.margin:
        return "not worse"
    return "undecided"
