"""How often runs act differently on the same observations; needs no torch to read."""

from collections.abc import Collection, Iterator
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Annotated

from pydantic import Field, ValidationError

from game_rl.config.saved import Saved
from game_rl.errors import ExperimentError

_Count = Annotated[int, Field(ge=0)]
_Share = Annotated[float, Field(ge=0, le=1)]


class ActionDifferences(Saved):
    """What each of some runs would do on the same observations, taking its best action."""

    seed: _Count
    """That the observations were drawn from."""
    observations: _Count
    """How many; 0: there were none to draw from."""
    runs: tuple[str, ...]
    """Folders in `members`."""
    shares: tuple[tuple[_Share, ...], ...]
    """[runs][runs]: of the observations, those on which the two act differently. Symmetric, with
    zeros on the diagonal; empty without observations."""

    def among(self, runs: Collection[str]) -> float | None:
        """The mean over pairs of these runs; None: there is no such pair."""
        return _mean(share for a, b, share in self.pairs() if a in runs and b in runs)

    def between(self, run: str, others: Collection[str]) -> float | None:
        """The mean over pairs of this run and another one; None: there is no such pair."""
        return _mean(
            share
            for a, b, share in self.pairs()
            if (a == run and b in others) or (b == run and a in others)
        )

    def pairs(self) -> Iterator[tuple[str, str, float]]:
        """Each pair of runs once, with its share."""
        for row, column in combinations(range(len(self.shares)), 2):
            yield self.runs[row], self.runs[column], self.shares[row][column]


def _mean(shares: Iterator[float]) -> float | None:
    found = list(shares)
    return fmean(found) if found else None


def read_differences(path: Path) -> ActionDifferences:
    """What was left there.

    Raises:
        ExperimentError: it is none of ours.
    """
    try:
        return ActionDifferences.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ExperimentError(
            f"{path} does not say how actions differ: {first['msg']}; delete it, and it is made "
            "again"
        ) from None
