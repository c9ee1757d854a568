"""Texts for the figures of a comparison: rates in percent, their differences in points."""

from game_rl.experiments.compare.comparison import LEAST_SEEDS, Difference, Rule
from game_rl.experiments.compare.outcome import Metric
from game_rl.statistics import wilson_interval


def score_words(value: float, metric: Metric) -> str:
    return f"{100 * value:.1f} %" if metric == "success_rate" else f"{value:.2f}"


def difference_words(value: float, metric: Metric) -> str:
    return f"{100 * value:+.1f} points" if metric == "success_rate" else f"{value:+.2f}"


def interval_words(interval: tuple[float, float] | None, metric: Metric, *, signed: bool) -> str:
    """Args:
    signed: write a plus sign, as for differences.
    """
    if interval is None:
        return f"none: fewer than {LEAST_SEEDS} seeds"
    scale, digits = (100, 1) if metric == "success_rate" else (1, 2)
    sign = "+" if signed else ""
    low, high = (f"{scale * end:{sign}.{digits}f}" for end in interval)
    return f"{low} to {high}"


def share_words(rate: float, episodes: int) -> str:
    """Return Wilson's 95 % interval of a success rate over one policy's episodes, in percent."""
    low, high = wilson_interval(round(rate * episodes), episodes)
    return f"{100 * low:.0f} to {100 * high:.0f}"


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
    return f"{100 * value:g} points" if metric == "success_rate" else f"{value:g}"
