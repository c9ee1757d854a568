"""How often runs act differently on the same observations; this module does not import torch."""

from collections.abc import Collection, Iterator
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Annotated

from pydantic import Field, ValidationError

from game_rl.errors import ExperimentError
from game_rl.saved import Saved

_Count = Annotated[int, Field(ge=0)]
_Share = Annotated[float, Field(ge=0, le=1)]


class ActionDifferences(Saved):
    """A comparison of the best actions of some runs on the same observations."""

    seed: _Count
    """Seed from which the observations were drawn."""
    observations: _Count
    """Number of observations, or 0 if there were none to draw from."""
    runs: tuple[str, ...]
    """Names of the runs' folders in `members`."""
    shares: tuple[tuple[_Share, ...], ...]
    """[runs][runs]: the share of observations on which two runs act differently. Symmetric, with
    zeros on the diagonal; empty without observations."""

    def among(self, runs: Collection[str]) -> float | None:
        """Return the mean share over pairs of these runs; None if there is no such pair."""
        return _mean(share for a, b, share in self.pairs() if a in runs and b in runs)

    def between(self, run: str, others: Collection[str]) -> float | None:
        """Return the mean share over pairs of `run` and one of `others`; None if there is none."""
        return _mean(
            share
            for a, b, share in self.pairs()
            if (a == run and b in others) or (b == run and a in others)
        )

    def pairs(self) -> Iterator[tuple[str, str, float]]:
        """Yield each pair of runs once, with its share."""
        for row, column in combinations(range(len(self.shares)), 2):
            yield self.runs[row], self.runs[column], self.shares[row][column]


def _mean(shares: Iterator[float]) -> float | None:
    found = list(shares)
    return fmean(found) if found else None


def read_differences(path: Path) -> ActionDifferences:
    """Read a comparison that `compare_actions` wrote.

    Raises:
        ExperimentError: the file is not such a comparison.
    """
    try:
        return ActionDifferences.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ExperimentError(
            f"{path} is not a comparison of actions: {first['msg']}; delete it to have it made "
            "again"
        ) from None
