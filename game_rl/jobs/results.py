"""The result files that members' jobs leave."""

import platform
from collections.abc import Collection, Iterator
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from game_rl.durable_files import write_saved
from game_rl.errors import ExperimentError
from game_rl.run_dir import RunDir, check_claim
from game_rl.saved import Natural, Saved, parse_saved
from game_rl.system.versions import installed_versions

_Result = TypeVar("_Result", bound=Saved)


def _parsed(kind: type[_Result], path: Path, fault: str) -> _Result:
    way_out = "delete it to have it made again"
    content = path.read_bytes()
    return parse_saved(kind, content, path, error=ExperimentError, fault=fault, way_out=way_out)


class Played(Saved):
    """Results of the episodes that a policy played from one seed."""

    seed: Natural
    """Seed of the episodes."""
    deterministic: bool
    """Whether the policy took its best actions or drew them."""
    rewards: tuple[float, ...]
    """Total reward of each episode."""
    successes: tuple[bool, ...]
    """Whether each episode succeeded; empty if the game does not define success."""


def read_played(path: Path) -> Played:
    """Read the episodes that a job has played.

    Raises:
        ExperimentError: the file does not hold such results.
    """
    return _parsed(Played, path, "is not the result of played episodes")


class StretchResult(Saved):
    """The result of a stretch.

    All fields but the last four are the same however often the stretch was interrupted.
    """

    timesteps: Natural
    """Timestep that the run has reached."""
    checkpoint: str | None = None
    """Name of the checkpoint's folder, or None if the weights became non-finite."""
    weights_sha256: str | None = None
    """Hash of the checkpoint's policy, or None if the weights became non-finite."""
    played: Played | None = None
    """The evaluation at the end of the stretch, or None if the weights became non-finite."""
    failure: Literal["non_finite"] | None = None
    """Kind of failure, or None."""
    text: str = ""
    """Description of the failure."""
    host: str = ""
    """Name of the machine on which the stretch ended."""
    timesteps_per_s: float = 0.0
    """Speed of the training in the process that ended the stretch."""
    seconds: float = 0.0
    """Duration of that process, including the evaluation."""
    ram_peak_bytes: Natural = 0
    """Peak of the run's memory so far."""


def read_stretch_result(path: Path) -> StretchResult | None:
    """Read the result; None if there is no file.

    Raises:
        ExperimentError: the file is not such a result.
    """
    return _parsed(StretchResult, path, "is not the result of a stretch") if path.exists() else None


class FinishedRun(Saved):
    """The result of a run.

    All fields but the last three are the same however often the run was interrupted.
    """

    timesteps: Natural = 0
    """Timestep that the run has reached, or 0 if it failed."""
    policy_timesteps: Natural = 0
    """Timestep of the tested policy, or 0 if the run failed."""
    weights_sha256: str | None = None
    """Hash of the tested policy's weights, or None if the run failed."""
    played: Played | None = None
    """The test's episodes, or None if the run failed."""
    failure: Literal["non_finite", "given_up"] | None = None
    """Kind of failure, or None."""
    text: str = ""
    """Description of the failure."""
    host: str = ""
    """Name of the machine on which the run ended."""
    seconds: float = 0.0
    """Duration of the process that ended the run, including the test."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Versions of Python and packages in that process."""


def read_finished(path: Path) -> FinishedRun | None:
    """Read the result; None if there is no file.

    Raises:
        ExperimentError: the file is not such a result.
    """
    return (
        _parsed(FinishedRun, path, "is not the result of a finished run") if path.exists() else None
    )


def write_finished(path: Path, end: FinishedRun, *, root: Path, seconds: float) -> FinishedRun:
    """Write the result of the run or experiment at `root`, with host, duration and versions.

    Raises:
        ExperimentError: another process has taken over.
    """
    measured = {
        "host": platform.node(),
        "seconds": round(seconds, 3),
        "versions": installed_versions(),
    }
    made = end.model_copy(update=measured)
    check_claim(RunDir(root))
    write_saved(path, made)
    return made


_Share = Annotated[float, Field(ge=0, le=1)]


class ActionDifferences(Saved):
    """A comparison of the best actions of some runs on the same observations."""

    seed: Natural
    """Seed from which the observations were drawn."""
    observations: Natural
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
    return _parsed(ActionDifferences, path, "is not a comparison of actions")
