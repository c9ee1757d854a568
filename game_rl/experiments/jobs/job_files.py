"""The files of jobs: what a member's process is asked to do, and the result that it leaves beside.

A request names its paths relative to the folder of the experiment, so it can be carried out again
wherever the experiment is. Programs see whole paths.
"""

import os
import platform
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import Field, RootModel

from game_rl.errors import ExperimentError, GameRLError, UsageError
from game_rl.files.durable_files import write_saved
from game_rl.files.run_dir import RunDir, check_claim
from game_rl.files.saved import Natural, NaturalIfAny, Saved, read_saved
from game_rl.system.output import exit_code_of, write_every_character
from game_rl.system.packages import installed_versions
from game_rl.system.processes import end_with_parent

REQUEST_SUFFIX = ".request.json"
_Positive = Annotated[int, Field(ge=1)]


class _Request(Saved):
    root: Path
    """The experiment's folder; in the file, relative to the file's own folder. All other paths
    are below it."""


class StretchRequest(_Request):
    """Train a run up to a timestep, play episodes there, and write the `StretchResult`."""

    job: Literal["stretch"] = "stretch"
    run: Path
    until: _Positive
    """Timestep to train to."""
    seed: Natural
    """Seed of the episodes."""
    result: Path


class PlayRequest(_Request):
    """Play episodes with a kept checkpoint, and write them as `Played`."""

    job: Literal["play"] = "play"
    run: Path
    checkpoint: Natural
    """Timestep of the checkpoint."""
    episodes: _Positive
    seed: Natural
    """Seed of the episodes."""
    result: Path


class CopyRequest(_Request):
    """Fork a run's checkpoint into a new run directory."""

    job: Literal["copy"] = "copy"
    run: Path
    at: _Positive
    """Timestep of the checkpoint."""
    to: Path
    """Run directory to make."""
    values: Mapping[str, object] = {}
    """Values of the new run's config, by dotted key."""
    fork: Mapping[str, object] = {}
    """Keys of the config's section `fork`, apart from `run`."""
    run_id: str | None = None
    """Id of the new run, or None to draw one at random."""
    known_as: str | None = None
    """Path under which the fork names its parent, or None: that of `run`."""


class CompareActionsRequest(_Request):
    """Compare the actions of checkpoints on rows of a Lake; write the `ActionDifferences`."""

    job: Literal["compare_actions"] = "compare_actions"
    members: Path
    """Folder of the run directories."""
    checkpoints: Mapping[str, int]
    """Timestep of each run's checkpoint, by the name of its run directory."""
    lake: Path
    observations: _Positive
    """Number of observations to draw."""
    seed: Natural
    """Seed of the draws."""
    result: Path


class FinishRequest(_Request):
    """Bring a run or an experiment to its end, play a test, and write the `FinishedRun`."""

    job: Literal["finish"] = "finish"
    run: Path
    selection: Literal["best", "last"] = "best"
    """The policy of a run that plays; of an experiment, the champion does."""
    episodes: _Positive
    seed: Natural
    """Seed of the episodes."""
    result: Path


JobRequest = StretchRequest | PlayRequest | CopyRequest | CompareActionsRequest | FinishRequest


class _AnyRequest(RootModel[Annotated[JobRequest, Field(discriminator="job")]]):
    pass


def staging_folder(root: Path) -> Path:
    """Return the folder, in an experiment's, of the notes on jobs that nodes carry out."""
    return root / "errands"


def request_file(result: Path) -> Path:
    """Return the file of the request whose job leaves `result`."""
    return result.with_suffix(REQUEST_SUFFIX)


def write_request(path: Path, request: JobRequest) -> None:
    below = {name: value.relative_to(request.root) for name, value in _paths(request).items()}
    below["root"] = Path(os.path.relpath(request.root, path.parent))
    write_saved(path, request.model_copy(update=below))


def read_request(path: Path) -> JobRequest:
    """Read a request.

    Raises:
        UsageError: there is no such file, or it is not a request.
    """
    found = read_saved(
        _AnyRequest,
        path,
        error=UsageError,
        fault="is not the request of a job",
        way_out=f"name a file NAME{REQUEST_SUFFIX} of an experiment",
    )
    if found is None:
        raise UsageError(f"there is no {path}; name a file NAME{REQUEST_SUFFIX} of an experiment")
    root = path.parent
    for part in found.root.root.parts:
        goes_up = part == ".." and root.name not in ("", "..")
        root = root.parent if goes_up else root / part
    whole = {name: root / value for name, value in _paths(found.root).items()}
    return found.root.model_copy(update=whole | {"root": root})


def carry_out_named(carry_out: Callable[[JobRequest], None]) -> int:
    """Carry out the request that the command line names; return the exit code of `game-rl`."""

    def named() -> int:
        if len(sys.argv) != 2:
            raise UsageError(f"name one request, a file NAME{REQUEST_SUFFIX} of an experiment")
        carry_out(read_request(Path(sys.argv[1])))
        return 0

    end_with_parent()
    write_every_character()
    return exit_code_of(named, trains=True)


def _paths(request: JobRequest) -> dict[str, Path]:
    return {n: value for n, value in request if isinstance(value, Path) and n != "root"}


class JobResult(Saved):
    """What a job leaves in its result file."""

    fault: ClassVar[str]
    """What is wrong with a file that holds no such result."""


_Result = TypeVar("_Result", bound=JobResult)


def read_result(kind: type[_Result], path: Path) -> _Result | None:
    """Read the result that a job has left; None if there is no file.

    Raises:
        ExperimentError: the file does not hold such a result.
    """
    way_out = "delete it to have it made again"
    return read_saved(kind, path, error=ExperimentError, fault=kind.fault, way_out=way_out)


class Played(JobResult):
    """Results of the episodes that a policy played from one seed."""

    fault: ClassVar = "is not the result of played episodes"
    seed: Natural
    """Seed of the episodes."""
    deterministic: bool
    """Whether the policy took its best actions or sampled them."""
    rewards: tuple[float, ...]
    """Total reward of each episode."""
    successes: tuple[bool, ...]
    """Whether each episode succeeded; empty if the game does not define success."""


class StretchResult(JobResult):
    """The result of a stretch.

    All fields but the last four are the same however often the stretch was interrupted.
    """

    fault: ClassVar = "is not the result of a stretch"
    timesteps: Natural
    """Timestep that the run has reached."""
    waited_frames: NaturalIfAny = 0
    """Waited frames of the run's newest checkpoint."""
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


class FinishedRun(JobResult):
    """The result of a run.

    All fields but the last three are the same however often the run was interrupted.
    """

    fault: ClassVar = "is not the result of a finished run"
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


_Trained = TypeVar("_Trained", StretchResult, FinishedRun)


def made_once(
    kind: type[_Trained], request: StretchRequest | FinishRequest, make: Callable[[], _Trained]
) -> _Trained:
    """Return the result of a job that trains; make and write it unless there is one already.

    Raises:
        ExperimentError: another process has taken over.
    """
    found = read_result(kind, request.result)
    if found is not None:
        return found
    check_claim(RunDir(request.run))
    started = time.monotonic()
    made = make()
    seconds = round(time.monotonic() - started, 3)
    made = made.model_copy(update={"host": platform.node(), "seconds": seconds})
    check_claim(RunDir(request.run))
    write_saved(request.result, made)
    return made


def finished_once(
    request: FinishRequest, finish: Callable[[], FinishedRun], broken: type[GameRLError]
) -> FinishedRun:
    """Finish a run or an experiment unless there is a result already, and return the result.

    Args:
        finish: brings it to its end and tests it.
        broken: error of non-finite weights, which are a result, too.

    Raises:
        ExperimentError: another process has taken over.
    """

    def make() -> FinishedRun:
        try:
            end = finish()
        except broken as error:
            end = FinishedRun(failure="non_finite", text=str(error))
        return end.model_copy(update={"versions": installed_versions()})

    return made_once(FinishedRun, request, make)


_Share = Annotated[float, Field(ge=0, le=1)]


class ActionDifferences(JobResult):
    """A comparison of the best actions of some runs on the same observations."""

    fault: ClassVar = "is not a comparison of actions"
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
