"""Shares in words, intervals, a sequential test of a rate, and tests that compare arms.

To compare arms, the unit is the seed. In a paired test, chance alone decides which arm has a seed's
better score if the arms are equal, so the sign of each difference can be flipped. In an unpaired
test, chance alone decides which scores belong to which arm, so scores can be exchanged. A shift is
the value by which one arm would differ from the other, and the interval contains the shifts that
the test accepts.

Each regrouping rejects the shifts on one side of a single value, its *typical value*. The sorted
typical values give the p-value of any shift and the interval without another test:

    paired:   mean(S) for each set S of at least one difference, 2^n - 1 values
    unpaired: mean(S) - mean(T), S from one arm and T from the other, |S| = |T| >= 1,
              C(n + m, n) - 1 values

Sources: Fisher 1935, The Design of Experiments, 17 and 21; Hartigan 1969, Using Subsample Values as
Typical Values; Garthwaite 1996, Confidence Intervals from Randomization Tests. For drawn
regroupings: Phipson and Smyth 2010, Permutation P-values Should Never Be Zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from math import ceil, comb, floor, isfinite, lgamma, log, log1p, sqrt

import numpy as np
from numpy.typing import NDArray

Z95 = 1.959963984540054  # the normal distribution's 97.5 % point


def percentage(share: float, digits: int = 0) -> str:
    """Return 100 times a share, a half rounded up as on paper: "13" of 1/8, "58" of 23/40.

    Python's own formats round 12.5 to 12, and 23/40 down, as its float is a little less. The
    `percentage` of the page (`words.js`) does the same as this one.
    """
    if not isfinite(share):
        return f"{share}"
    exact = Decimal(f"{100 * share:.12g}")  # without the error of the float
    return f"{exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) + 0:f}"  # no "-0"


def percent(share: float, digits: int = 0) -> str:
    """Return a share in percent, such as "13%"."""
    return f"{percentage(share, digits)}%"


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share (Wilson 1927), which is also valid for 0 and 1.

    (p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²)) / (1 + z²/n), with p = successes / n.
    """
    n = trials
    z = Z95
    p = successes / n
    middle = p + z * z / (2 * n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if successes == 0 else (middle - half) / scale  # exactly, without rounding
    high = 1.0 if successes == trials else (middle + half) / scale
    return low, high


def mean_interval(mean: float, deviation: float, count: int) -> tuple[float, float] | None:
    """Return Student's 95 % interval of a mean, or None for fewer than five values.

    The quantile t of Student's distribution is a series in 1 / (count - 1), which is 0.5 % too
    small at five values and better with more. Source: Abramowitz and Stegun 1964, 26.7.5.

    Args:
        deviation: sqrt(sum((x - mean)²) / count), as `np.std` returns it.
    """
    freedom = count - 1
    z = Z95
    if freedom < _LEAST_FREEDOM:
        return None
    t = z + (z**3 + z) / (4 * freedom)
    t += (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    t += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    half = t * deviation / sqrt(freedom)
    return mean - half, mean + half


MOST_BATCHES = 4
"""Number of batches of trials after which a sequential test decides in any case."""
_LEAST_FREEDOM = 4
_TOO_LOW = 0.03  # a rate that is lower than the wanted one by this much passes rarely
_PASSES_RARELY = 0.05
_LARGE_BATCH = 1_000  # of which no rate that is too low passes by chance
_ROUNDING_OF_RATES = 1e-9


@dataclass(frozen=True)
class RateTest:
    """A sequential test of whether a success rate is as high as the wanted one.

    It looks at all trials so far after each of four batches, and passes, fails or goes on.

    Attributes:
        batch: number of trials between two looks.
        passes: smallest number of successes that passes at each look; more than there are trials
            if none does.
        fails: largest number of successes that fails at each look; -1 if none does. The last look
            decides, so there it is the one below `passes`.
    """

    batch: int
    passes: tuple[int, ...]
    fails: tuple[int, ...]

    def decide(self, successes: int, trials: int) -> bool | None:
        """Return whether the rate passes, or None if another batch has to decide."""
        look = trials // self.batch - 1
        if successes >= self.passes[look]:
            return True
        return False if successes <= self.fails[look] else None

    def pass_probability(self, rate: float) -> float:
        """Return the exact probability that trials with this success rate pass.

        The distribution of the successes is carried from look to look: what passes or fails is
        taken out, and the rest is convolved with the binomial distribution of the next batch.
        """
        of_batch = _binomial(self.batch, rate)
        passed = 0.0
        undecided = np.ones(1)
        for least, most in zip(self.passes, self.fails, strict=True):
            undecided = np.convolve(undecided, of_batch)
            passed += float(undecided[least:].sum())
            undecided[least:] = 0
            undecided[: most + 1] = 0
        return passed


@lru_cache
def rate_test(wanted: float, batch: int) -> RateTest:
    """Return the test of the success rate `wanted` with batches of `batch` trials.

    It is Wald's sequential probability ratio test of p0 against p1 with both errors at 5 %, looked
    at after each batch and truncated after the fourth, of n trials in all. p0 is 3 points below
    the wanted rate, or 60 / sqrt(n) points with less than 400 trials; p1 is above it by two thirds
    of that, or by half of what is missing to 1. Beside that:

    - Trials with fewer successes than the wanted rate never pass.
    - At the fourth look, the wanted rate itself is enough, or as many successes more as it takes
      to let p0 pass the whole test with a probability below 5 %. If even n successes would not do
      that, which happens with few trials, all of them must succeed.
    - It ends as soon as the trials that are left cannot change the decision.

    Sources: Wald 1945, Sequential Tests of Statistical Hypotheses; truncated and with an exact
    boundary at the end, as in Jennison and Turnbull 2000, Group Sequential Methods, chapter 12.
    """
    trials = MOST_BATCHES * batch
    margin = max(_TOO_LOW, 0.6 / sqrt(trials))
    low = max(wanted - margin, wanted / 2)
    high = min(wanted + 2 / 3 * margin, (1 + wanted) / 2, 1 - _ROUNDING_OF_RATES)
    last = _least_successes(wanted, trials)
    test = _truncated(wanted, batch, low, high, last)
    if batch < _LARGE_BATCH:
        while last < trials and test.pass_probability(low) >= _PASSES_RARELY:
            last += 1
            test = _truncated(wanted, batch, low, high, last)
    return test


def _truncated(wanted: float, batch: int, low: float, high: float, last: int) -> RateTest:
    """Return the probability ratio test with `last` as the smallest number that passes in the end.

    After s successes in n trials, the logarithm of the ratio is s win + (n - s) loss. It passes
    from log(0.95 / 0.05) on, and fails down to log(0.05 / 0.95).
    """
    win = log(high / low)
    loss = log1p(-high) - log1p(-low)
    bound = log((1 - _PASSES_RARELY) / _PASSES_RARELY)
    passes = []
    fails = []
    trials = MOST_BATCHES * batch
    for n in range(batch, trials, batch):
        least = max(ceil((bound - n * loss) / (win - loss)), _least_successes(wanted, n))
        most = floor((-bound - n * loss) / (win - loss))
        passes.append(min(least, last, n + 1))
        fails.append(max(most, last - 1 - (trials - n), -1))
    return RateTest(batch, (*passes, last), (*fails, last - 1))


def _least_successes(rate: float, trials: int) -> int:
    return ceil(rate * trials - _ROUNDING_OF_RATES)


def _binomial(trials: int, rate: float) -> "Floats":
    """Return the probability of each number of successes, [trials + 1]."""
    if rate in (0, 1):
        certain: Floats = np.zeros(trials + 1)
        certain[round(rate) * trials] = 1
        return certain
    k = np.arange(trials + 1)
    factorials = np.array([lgamma(n + 1) for n in range(trials + 1)])
    ways = factorials[-1] - factorials - factorials[::-1]
    chances: Floats = np.exp(ways + k * log(rate) + (trials - k) * log1p(-rate))
    return chances


MOST_PATTERNS = 2**20
"""Largest number of regroupings that is enumerated: 20 paired seeds, 11 and 11 unpaired."""
DRAWN_PATTERNS = 100_000
"""Number of regroupings beyond that: the observed one, and others drawn with a fixed seed."""
_ROUNDING = 1e-9  # times the largest absolute score: smaller differences are ties
_COUNT_ROUNDING = 1e-6  # absorbs the rounding of products such as 0.05 / 2 x 2^n

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TypicalValues:
    """The typical values of all regroupings but the observed one.

    Attributes:
        values: float64 [patterns - 1], ascending.
        is_exact: whether all regroupings are included; if not, they were drawn.
    """

    values: Floats
    is_exact: bool

    @property
    def patterns(self) -> int:
        """Number of regroupings, including the observed one."""
        return len(self.values) + 1

    def p_value(self) -> float:
        """Return the two-sided p-value of no difference, twice the smaller tail."""
        at_most = 1 + np.count_nonzero(self.values <= 0)
        at_least = 1 + np.count_nonzero(self.values >= 0)
        return min(1.0, 2 * float(min(at_most, at_least)) / self.patterns)

    def smallest_p_value(self) -> float:
        """Return the smallest p-value that is possible with this number of seeds."""
        return min(1.0, 2 / self.patterns)

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """Return the two-sided interval, or None if there are too few seeds for the level.

        It excludes 0 if and only if the p-value is at most 1 - level.
        """
        rank = self._rank((1 - level) / 2)
        if rank < 1:
            return None
        return float(self.values[rank - 1]), float(self.values[-rank])

    def lower_end(self, level: float = 0.95) -> float | None:
        """Return the lower end of the one-sided interval, or None if there are too few seeds."""
        rank = self._rank(1 - level)
        return float(self.values[rank - 1]) if rank >= 1 else None

    def _rank(self, tail: float) -> int:
        return floor(tail * self.patterns + _COUNT_ROUNDING)


def paired_values(differences: Sequence[float]) -> TypicalValues:
    """Return the typical values of paired differences, one for each seed.

    Given plain scores, the values describe the scores' centre.
    """
    found = np.asarray(differences, dtype=np.float64)
    if 2 ** len(found) <= MOST_PATTERNS:
        sums, counts = _subset_sums(found)
        return _sorted(sums[1:] / counts[1:], found, is_exact=True)
    rng = np.random.default_rng(0)
    chosen = rng.random((DRAWN_PATTERNS - 1, len(found))) < 0.5
    counts = chosen.sum(axis=1)
    kept = counts > 0
    return _sorted((chosen @ found)[kept] / counts[kept], found, is_exact=False)


def unpaired_values(scores: Sequence[float], others: Sequence[float]) -> TypicalValues:
    """Return the typical values of `scores` minus `others`, whose seeds are independent."""
    one, two = (np.asarray(each, dtype=np.float64) for each in (scores, others))
    pool = np.concatenate((one, two))
    if comb(len(pool), len(one)) > MOST_PATTERNS:
        return _sorted(_drawn_exchanges(one, two), pool, is_exact=False)
    sums, counts = _subset_sums(one)
    other_sums, other_counts = _subset_sums(two)
    parts = [
        np.subtract.outer(sums[counts == k], other_sums[other_counts == k]).ravel() / k
        for k in range(1, min(len(one), len(two)) + 1)
    ]
    return _sorted(np.concatenate(parts), pool, is_exact=True)


def _subset_sums(values: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return the sum and the size of each subset, [2^n] each; the empty subset comes first."""
    sums = np.zeros(1)
    counts = np.zeros(1, dtype=np.int64)
    for value in values:
        sums = np.concatenate((sums, sums + value))
        counts = np.concatenate((counts, counts + 1))
    return sums, counts


def _drawn_exchanges(one: Floats, two: Floats) -> Floats:
    pool = np.concatenate((one, two))
    places = np.tile(np.arange(len(pool)), (DRAWN_PATTERNS - 1, 1))
    places = np.random.default_rng(0).permuted(places, axis=1)
    leaves = np.sort(places[:, len(one) :], axis=1)  # positions in the pool, for the second arm
    from_one = leaves < len(one)
    counts = from_one.sum(axis=1)
    kept = counts > 0
    gone = np.where(from_one, pool[leaves], 0).sum(axis=1)
    stayed = np.where(from_one, 0, pool[leaves]).sum(axis=1)
    came = two.sum() - stayed
    values: Floats = (gone - came)[kept] / counts[kept]
    return values


def _sorted(values: Floats, scores: Floats, *, is_exact: bool) -> TypicalValues:
    """Sort the values, after setting those to 0 that differ from it only by rounding."""
    tie = _ROUNDING * float(np.abs(scores).max(initial=0))
    return TypicalValues(np.sort(np.where(np.abs(values) <= tie, 0.0, values)), is_exact)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values so that the probability of any false rejection is that of a single test.

    In ascending order, counted from 0, the i-th of m adjusted values is the largest (m - j) p_j
    over all j <= i, and at most 1. Source: Holm 1979, A Simple Sequentially Rejective Multiple Test
    Procedure.

    Returns:
        The adjusted values in the order of `p_values`.
    """
    count = len(p_values)
    largest = 0.0
    adjusted = [0.0] * count
    for rank, place in enumerate(sorted(range(count), key=lambda place: p_values[place])):
        largest = max(largest, min(1.0, (count - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def probability_of_superiority(scores: Sequence[float], others: Sequence[float]) -> float:
    """Return the share of pairs (one of `scores`, one of `others`) in which the first is higher.

    Ties count half. The share is Mann-Whitney's U / (n m). Source: Mann and Whitney 1947; as the
    "probability of improvement" of one task in Agarwal et al. 2021, Deep RL at the Edge of the
    Statistical Precipice.
    """
    signs = np.sign(np.subtract.outer(np.asarray(scores), np.asarray(others)))
    return float((1 + signs.mean()) / 2)
