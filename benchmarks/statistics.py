"""A test of the statistics of `game-rl compare` on simulated arms with a known truth.

    python -m benchmarks.statistics [--repeats 4000] [--seeds 8]

For each truth, `--repeats` studies are simulated and judged. The tables show how often two arms are
called different (for equal arms this is the error, at most 5 %; otherwise the power) and how often
the 95 % interval contains the true difference. The usual intervals, from bootstraps with 1,000
resamples, are shown for comparison.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from game_rl.statistics import paired_values, unpaired_values

_RESAMPLES = 1_000
_EPISODES = 200

Floats = NDArray[np.float64]
Bounds = tuple[float, float]


@dataclass(frozen=True)
class Truth:
    """The distributions of a seed's score in both arms.

    Attributes:
        kind: "normal" (each arm has a standard deviation of 1), "skewed" (an exponential
            distribution) or "rates" (200 episodes of a seed, won with a chance around 90 %).
        effect: difference of the second arm's mean from the first one's; for rates, in points.
    """

    kind: str
    effect: float

    def scores(self, rng: np.random.Generator, seeds: int) -> tuple[Floats, Floats]:
        if self.kind == "normal":
            return rng.normal(0, 1, seeds), rng.normal(self.effect, 1, seeds)
        if self.kind == "skewed":
            return rng.exponential(1, seeds), self.effect + rng.exponential(1, seeds)
        return self._rates(rng, 0.9, seeds), self._rates(rng, 0.9 + self.effect / 100, seeds)

    @property
    def difference(self) -> float:
        return self.effect / 100 if self.kind == "rates" else self.effect

    def _rates(self, rng: np.random.Generator, mean: float, seeds: int) -> Floats:
        """Draw beta-binomial rates, whose seeds differ by about 5 points."""
        chances = rng.beta(35 * mean, 35 * (1 - mean), seeds)
        return rng.binomial(_EPISODES, chances) / _EPISODES


@dataclass(frozen=True)
class Characteristics:
    """Shares of simulated studies that find a difference and whose interval covers the truth."""

    called_different: float
    coverage: float
    width: float


def characteristics(truth: Truth, *, seeds: int, paired: bool, repeats: int) -> Characteristics:
    rng = np.random.default_rng(1)
    different, covered, widths = 0, 0, []
    for _ in range(repeats):
        one, two = truth.scores(rng, seeds)
        found = paired_values(list(two - one)) if paired else unpaired_values(list(two), list(one))
        interval = found.interval()
        assert interval is not None
        different += found.p_value() <= 0.05
        covered += interval[0] <= truth.difference <= interval[1]
        widths.append(interval[1] - interval[0])
    return Characteristics(different / repeats, covered / repeats, float(np.mean(widths)))


def percentile(differences: Floats, rng: np.random.Generator) -> Bounds:
    """Return the percentile bootstrap interval."""
    means = rng.choice(differences, (_RESAMPLES, len(differences))).mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def bca(differences: Floats, rng: np.random.Generator) -> Bounds:
    """Return the bias-corrected and accelerated bootstrap interval (Efron 1987)."""
    means = rng.choice(differences, (_RESAMPLES, len(differences))).mean(axis=1)
    normal, n = NormalDist(), len(differences)
    below = np.clip((means < differences.mean()).mean(), 1e-4, 1 - 1e-4)
    bias = normal.inv_cdf(float(below))
    without = (differences.sum() - differences) / (n - 1)
    centred = without.mean() - without
    spread = float((centred**2).sum()) ** 1.5
    acceleration = float((centred**3).sum()) / (6 * spread) if spread else 0.0
    tails = []
    for tail in (0.025, 0.975):
        z = bias + normal.inv_cdf(tail)
        tails.append(normal.cdf(bias + z / (1 - acceleration * z)))
    low, high = np.quantile(means, tails)
    return float(low), float(high)


def studentised(differences: Floats, rng: np.random.Generator) -> Bounds:
    """Return the bootstrap-t interval (Efron 1982): quantiles of the resamples' t.

    t is infinite for resamples that do not vary.
    """
    n, mean = len(differences), differences.mean()
    resampled = rng.choice(differences, (_RESAMPLES, n))
    errors = resampled.std(axis=1, ddof=1) / n**0.5
    gaps = resampled.mean(axis=1) - mean
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where((errors == 0) & (gaps == 0), 0.0, gaps / errors)
    low, high = np.quantile(t, (0.025, 0.975), method="nearest")
    error = differences.std(ddof=1) / n**0.5
    return float(mean - high * error), float(mean - low * error)


def coverage_of(
    bounds: Callable[[Floats, np.random.Generator], Bounds],
    truth: Truth,
    *,
    seeds: int,
    repeats: int,
) -> float:
    """Return the coverage of a bootstrap interval with paired seeds."""
    rng, covered = np.random.default_rng(1), 0
    for _ in range(repeats):
        one, two = truth.scores(rng, seeds)
        low, high = bounds(two - one, rng)
        covered += low - 1e-12 <= truth.difference <= high + 1e-12
    return covered / repeats


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=4_000)
    parser.add_argument("--seeds", type=int, default=8)
    arguments = parser.parse_args()
    seeds, repeats = arguments.seeds, arguments.repeats
    print(f"{seeds} seeds an arm, {repeats:,} made-up studies a row; shares in %")
    print(f"{'truth':<16} {'seeds':<9} {'different':>9} {'covered':>8} {'width':>7}")
    for kind, effects in (("normal", (0, 1, 2)), ("skewed", (0, 1, 2)), ("rates", (0, 4, 8))):
        for effect in effects:
            for paired in (True, False):
                truth = Truth(kind, effect)
                found = characteristics(truth, seeds=seeds, paired=paired, repeats=repeats)
                print(
                    f"{f'{kind} +{effect}':<16} {'paired' if paired else 'unpaired':<9} "
                    f"{100 * found.called_different:>9.1f} {100 * found.coverage:>8.1f} "
                    f"{found.width:>7.3f}",
                    flush=True,
                )
    print("\ncovered by other intervals, paired")
    print(f"{'truth':<16} {'percentile':>10} {'BCa':>6} {'studentised':>12}")
    for kind in ("normal", "skewed", "rates"):
        shares = [
            100 * coverage_of(each, Truth(kind, 0), seeds=seeds, repeats=repeats)
            for each in (percentile, bca, studentised)
        ]
        print(
            f"{f'{kind} +0':<16} {shares[0]:>10.1f} {shares[1]:>6.1f} {shares[2]:>12.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
