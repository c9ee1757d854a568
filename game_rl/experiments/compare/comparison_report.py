"""The comparison as text with tables, as Markdown and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from game_rl.experiments.compare.comparison import (
    LEAST_SEEDS,
    Comparison,
    Difference,
    Metric,
    Outcome,
    Rule,
)
from game_rl.statistics import percentage, wilson_interval

_METRIC_NAMES = {"success_rate": "success rate", "mean_reward": "mean reward"}
_MUCH_MORE = 1.02  # a ratio of total timesteps; more than what the last update can overshoot


def verdict_lines(comparison: Comparison) -> list[str]:
    return [
        f"{d.arm} against {d.against}: **{d.verdict}** "
        f"({difference_words(d.mean, comparison.rule.metric)}, p {d.adjusted_p_value:.4f})"
        for d in comparison.differences
    ]


@dataclass(frozen=True)
class Cells:
    """A table: a header and rows of texts."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


Parts = Sequence[str | Cells]
"""Lines of Markdown, an empty one between two paragraphs, and tables."""


def comparison_parts(comparison: Comparison, notes: Sequence[str] = ()) -> list[str | Cells]:
    """Return verdicts, rule, tables and notes; for a single arm only tables and notes.

    Args:
        notes: the caller's notes, which come first.
    """
    verdicts = list[str]()
    between = list[str | Cells]()
    if comparison.differences:
        lines = verdict_lines(comparison)
        rule = rule_words(comparison.rule)
        verdicts = [*(f"- {x}" for x in lines), "", "Rule:", "", *(f"- {x}" for x in rule), ""]
        between = [_differences(comparison), ""]
    return [
        *verdicts,
        _arms(comparison),
        "",
        *between,
        _seeds(comparison),
        "",
        *(f"- {note}" for note in (*notes, *_notes(comparison))),
    ]


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    return {
        "rule": asdict(comparison.rule),
        "arms": [asdict(summary) for summary in comparison.summaries],
        "differences": [asdict(difference) for difference in comparison.differences],
        "seeds": [
            {
                "arm": arm.name,
                **asdict(outcome),
                "curve": [point.model_dump(mode="json") for point in outcome.curve],
            }
            for arm in comparison.arms
            for outcome in arm.outcomes
        ],
    }


def markdown_lines(parts: Parts) -> list[str]:
    """Return the parts as lines of Markdown."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, str):
            lines.append(part)
            continue
        lines.append(f"| {' | '.join(part.header)} |")
        lines.append(f"|{'---|' * len(part.header)}")
        lines += [f"| {' | '.join(row)} |" for row in part.rows]
    return lines


def _arms(comparison: Comparison) -> Cells:
    metric = comparison.rule.metric
    mean = f"{_METRIC_NAMES[metric]}, mean"
    header = ["arm", "seeds", "failed", mean, _interval_head(comparison)]
    header += ["own timesteps", "timesteps of all runs", "frames of all runs"]
    rows = [
        [
            each.name,
            f"{len(each.scores)}",
            f"{each.failed}",
            score_words(each.mean, metric),
            interval_words(each.interval, metric, signed=False),
            f"{each.timesteps:,.0f}",
            f"{each.total_timesteps:,.0f}",
            f"{each.total_frames:,.0f}",
        ]
        for each in comparison.summaries
    ]
    return Cells(header, rows)


def _differences(comparison: Comparison) -> Cells:
    metric = comparison.rule.metric
    header = ["comparison", "difference of means", _interval_head(comparison), "p", "p (Holm)"]
    header += ["higher in pairs of seeds", "verdict"]
    rows = [
        [
            f"{each.arm} - {each.against}",
            difference_words(each.mean, metric),
            interval_words(each.interval, metric, signed=True),
            p_words(each),
            f"{each.adjusted_p_value:.4f}",
            f"{percentage(each.superiority)} %",
            each.verdict,
        ]
        for each in comparison.differences
    ]
    return Cells(header, rows)


def _seeds(comparison: Comparison) -> Cells:
    metric = comparison.rule.metric
    header = ["arm", "seed", _METRIC_NAMES[metric], "success, 95 % over its episodes", "episodes"]
    header += ["timesteps of all runs", "where"]
    rows = [
        [
            arm.name,
            f"{outcome.seed}",
            f"{score_words(value, metric)}{' (failed)' if outcome.score is None else ''}",
            *_episode_cells(outcome),
            f"{outcome.total_timesteps:,}",
            outcome.name,
        ]
        for arm, summary in zip(comparison.arms, comparison.summaries, strict=True)
        for outcome, value in zip(arm.outcomes, summary.scores, strict=True)
    ]
    return Cells(header, rows)


def _episode_cells(outcome: Outcome) -> tuple[str, str]:
    score = outcome.score
    if score is None:
        return "", ""
    rate = score.success_rate
    return "" if rate is None else share_words(rate, score.episodes), f"{score.episodes}"


def _interval_head(comparison: Comparison) -> str:
    return f"{100 * (1 - comparison.rule.alpha):g} % over seeds"


def _notes(comparison: Comparison) -> Iterator[str]:
    """Yield caveats about the figures."""
    for arm in comparison.arms:
        for outcome in arm.outcomes:
            if outcome.failure:
                yield (
                    f"{arm.name}, seed {outcome.seed} failed and counts as the worst value: "
                    f"{outcome.failure}"
                )
    for each in comparison.differences:
        if each.smallest_p_value > comparison.rule.alpha:
            yield (
                f"{each.arm} - {each.against}: so few seeds can never give a p below "
                f"{each.smallest_p_value:.4f}; run more seeds"
            )
    if any(len(summary.scores) < LEAST_SEEDS for summary in comparison.summaries):
        yield f"an interval needs at least {LEAST_SEEDS} seeds: look at the value of each seed"
    played = {summary.name: summary.total_timesteps for summary in comparison.summaries}
    least = min(played, key=lambda n: played[n])
    most = max(played, key=lambda n: played[n])
    if played[most] > _MUCH_MORE * played[least]:
        yield (
            f"the arms played different amounts: all runs of {most} {played[most]:,.0f} timesteps, "
            f"those of {least} {played[least]:,.0f}"
        )
    yield "no column of timesteps counts the episodes of evaluations"


def score_words(value: float, metric: Metric) -> str:
    if metric == "success_rate":
        return f"{percentage(value, 1)} %"
    return f"{value:.2f}"


def difference_words(value: float, metric: Metric) -> str:
    if metric == "success_rate":
        return f"{_signed(value)} points"
    return f"{value:+.2f}"


def interval_words(interval: tuple[float, float] | None, metric: Metric, *, signed: bool) -> str:
    """Args:
    signed: write a plus sign, as for differences.
    """
    if interval is None:
        return f"none: fewer than {LEAST_SEEDS} seeds"
    low, high = interval
    if metric == "success_rate":
        words = _signed if signed else _unsigned
        return f"{words(low)} to {words(high)}"
    sign = "+" if signed else ""
    return f"{low:{sign}.2f} to {high:{sign}.2f}"


def _signed(share: float) -> str:
    """Return a difference of shares in points, with its sign."""
    return f"{'+' if share >= 0 else ''}{_unsigned(share)}"


def _unsigned(share: float) -> str:
    return percentage(share, 1)


def share_words(rate: float, episodes: int) -> str:
    """Return Wilson's 95 % interval of a success rate over one policy's episodes, in percent."""
    low, high = wilson_interval(round(rate * episodes), episodes)
    return f"{percentage(low)} to {percentage(high)}"


def p_words(difference: Difference) -> str:
    how = "exact" if difference.is_exact else "drawn"
    return f"{difference.p_value:.4f} ({how}, {difference.patterns:,} patterns)"


def rule_words(rule: Rule) -> list[str]:
    """Return one sentence for each verdict."""
    least = ""
    if rule.minimum:
        least = f" and the means differ by at least {_amount(rule.minimum, rule.metric)}"
    test = "sign-flip permutation test over paired seeds"
    if not rule.paired:
        test = "two-sample permutation test over seeds"
    lines = [
        f"better, worse: p is at most {rule.alpha:g} ({test}, two-sided; Holm's over several "
        f"comparisons){least}."
    ]
    if rule.margin is not None:
        lines.append(
            f"not worse: neither, and the lower end of the one-sided {100 * (1 - rule.alpha):g} % "
            f"interval is above -{_amount(rule.margin, rule.metric)}."
        )
    return [*lines, "undecided: everything else."]


def _amount(value: float, metric: Metric) -> str:
    if metric == "success_rate":
        return f"{100 * value:g} points"
    return f"{value:g}"
