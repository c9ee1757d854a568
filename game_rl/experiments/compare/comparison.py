"""The comparison of arms: how folders become arms, statistics, and verdicts by a fixed rule."""

import fnmatch
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Literal

from game_rl.config.allowed_changes import ARM
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import flat
from game_rl.errors import UsageError
from game_rl.files.saved import Natural, Saved
from game_rl.statistics import holm, paired_values, probability_of_superiority, unpaired_values

Metric = Literal["success_rate", "mean_reward"]


class Point(Saved):
    """An evaluation during training."""

    timesteps: Natural
    """Timesteps of the run itself."""
    total_timesteps: Natural
    """Timesteps that the run and everything that it comes from had played by then."""
    total_frames: Natural
    mean_reward: float
    success_rate: float | None = None


@dataclass(frozen=True)
class Score:
    """The result of some episodes."""

    mean_reward: float
    success_rate: float | None
    episodes: int

    def value(self, metric: Metric) -> float | None:
        return self.success_rate if metric == "success_rate" else self.mean_reward


@dataclass(frozen=True, kw_only=True)
class Totals:
    """What a run or an experiment has played, and its curve.

    Attributes:
        timesteps: timesteps that it has played itself; of an experiment, those of all its runs, and
            of those that were copied over.
        total_timesteps: the same with everything that it comes from.
        total_frames: emulator frames of these.
        curve: a run's evaluations. Of an experiment, it is the champion's or, before there is one,
            the best member's. It has a point for the run and its ancestors at the end of each
            generation; in a live mixture, for each evaluation of the run. Its x axis counts the
            timesteps of all runs.
    """

    timesteps: int
    total_timesteps: int
    total_frames: int
    curve: tuple[Point, ...]


@dataclass(frozen=True, kw_only=True)
class Outcome(Totals):
    """The outcome of one seed of an arm.

    Attributes:
        name: path of its folder or file.
        score: score on episodes that were not used for selection; None if it failed or is not
            complete.
        failure: why it failed; empty if it did not.
    """

    name: str
    seed: int
    score: Score | None
    failure: str = ""


@dataclass(frozen=True, kw_only=True)
class ComparedFolder(Outcome):
    """The outcome of the run or experiment that a folder holds.

    Attributes:
        settings: its config, without keys in which the runs of an arm may differ, such as the seed.
        last: score of its newest evaluation, or None before the first one.
    """

    settings: dict[str, object]
    last: Score | None

    @property
    def path(self) -> Path:
        return Path(self.name)


@dataclass(frozen=True)
class Arm:
    """Runs that differ by nothing but their seed."""

    name: str
    outcomes: tuple[Outcome, ...]

    @property
    def seeds(self) -> list[int]:
        return [outcome.seed for outcome in self.outcomes]

    def scores(self, metric: Metric, *, worst: float) -> list[float]:
        """Return one score for each seed; a seed that failed gets `worst`."""
        found = (None if o.score is None else o.score.value(metric) for o in self.outcomes)
        return [worst if value is None else value for value in found]


def worst_value(arms: Sequence[Arm], metric: Metric) -> float:
    """Return the score of a failed seed: success 0, or the lowest mean reward of all others."""
    if metric == "success_rate":
        return 0.0
    scores = [o.score.mean_reward for arm in arms for o in arm.outcomes if o.score is not None]
    return min(scores, default=0.0)


def grouped(
    found: Sequence[ComparedFolder], patterns: Mapping[str, str]
) -> dict[str, list[ComparedFolder]]:
    """Return the folders of each arm, in the order in which they were named.

    Args:
        patterns: by an arm's name, the shell pattern of its folders' paths or names. A folder that
            matches no pattern is grouped by its config.

    Raises:
        UsageError: a pattern matches no folder.
    """
    arms: dict[str, list[ComparedFolder]] = {name: [] for name in patterns}
    others: dict[str, list[ComparedFolder]] = {}
    for each in found:
        own_names = (str(each.path), each.path.name)
        matching = (arm for arm, pattern in patterns.items() if fnmatch.filter(own_names, pattern))
        arm = next(matching, None)
        if arm is not None:
            arms[arm].append(each)
        else:
            others.setdefault(json.dumps(each.settings, sort_keys=True), []).append(each)
    empty = [name for name, members in arms.items() if not members]
    if empty:
        raise UsageError(
            f"--arm {empty[0]}={patterns[empty[0]]}: none of the folders named matches the "
            "pattern; write it as in a shell, such as 'runs/pqn_*'"
        )
    folders = [[each.path.name for each in members] for members in others.values()]
    names = arm_names(folders, taken=set(arms))
    return arms | dict(zip(names, others.values(), strict=True))


def arms_of(groups: Mapping[str, Sequence[ComparedFolder]]) -> tuple[list[Arm], bool]:
    """Return arms with their scores, and whether the scores are those of final evaluations.

    If any run is not complete, the scores of all runs are those of their newest evaluations.

    Raises:
        UsageError: a run has neither failed nor ever been evaluated, or an arm has a seed twice.
    """
    every_seed = [each for members in groups.values() for each in members]
    is_final = all(each.score is not None for each in every_seed if not each.failure)
    for each in every_seed:
        if each.last is None and each.score is None and not each.failure:
            raise UsageError(
                f"{each.path} has no evaluation yet; train it further, or leave it out"
            )
    arms = []
    for name, members in groups.items():
        outcomes = []
        for each in sorted(members, key=lambda each: each.seed):
            score = each.score if is_final else each.last
            outcomes.append(replace(each, score=None if each.failure else score))
        arms.append(Arm(name, tuple(outcomes)))
    for arm in arms:
        twice = [seed for seed in arm.seeds if arm.seeds.count(seed) > 1]
        if twice:
            raise UsageError(
                f"arm {arm.name} has seed {twice[0]} more than once; name each run once, or split "
                "the arm with --arm NAME=PATTERN"
            )
    return arms, is_final


def metric_of(arms: Sequence[Arm]) -> Metric:
    """Return the success rate if the games of all runs define success, else the mean reward."""
    scores = [o.score for arm in arms for o in arm.outcomes if o.score is not None]
    return "success_rate" if all(s.success_rate is not None for s in scores) else "mean_reward"


def check_metric(arms: Sequence[Arm], metric: Metric) -> None:
    """Raise UsageError if a run has no value of the metric."""
    for arm in arms:
        for outcome in arm.outcomes:
            if outcome.score is not None and outcome.score.value(metric) is None:
                raise UsageError(
                    f"{outcome.name}: its game does not define success; compare by mean_reward, or "
                    "give the game file a success condition"
                )


def arm_names(groups: Sequence[Sequence[str]], *, taken: set[str]) -> Iterator[str]:
    """Yield the name of each group of folders: what their names begin with, else the first name.

    Args:
        taken: names that are in use; those that are yielded are added.
    """
    for folders in groups:
        shared = os.path.commonprefix(folders)  # noqa: RUF071 - of letters
        name = shared.rstrip("_-.0123456789 ").removesuffix("seed").rstrip("_-. ") or folders[0]
        number = 2
        while name in taken:
            name = f"{folders[0]} ({number})"
            number = number + 1
        taken.add(name)
        yield name


def settings_of(config: RunConfig) -> dict[str, object]:
    """Return the values of a config, by dotted key, in which all runs of an arm agree."""
    settings = flat(config.model_dump(mode="json"))
    return {key: settings[key] for key in ARM.bound_of(settings)}


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
    differences: tuple[float, ...] = ()
    if rule.paired:
        differences = tuple(one - two for one, two in zip(scores, others, strict=True))
        values = paired_values(differences)
    else:
        values = unpaired_values(scores, others)
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


def _verdict(difference: Difference, rule: Rule) -> Verdict:
    """Apply the rule: first significance and size, then the margin."""
    is_different = difference.adjusted_p_value <= rule.alpha
    if is_different and abs(difference.mean) >= rule.minimum and difference.mean != 0:
        return "better" if difference.mean > 0 else "worse"
    lower = difference.lower_end
    if rule.margin is not None and lower is not None and lower > -rule.margin:
        return "not worse"
    return "undecided"
