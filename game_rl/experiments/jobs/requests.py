"""The request files of jobs: what a member's process is asked to do, beside the result it leaves.

A request names its paths relative to the folder of the experiment, so it can be carried out again
wherever the experiment is. Programs see whole paths.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, RootModel

from game_rl.errors import UsageError
from game_rl.files.durable_files import write_saved
from game_rl.files.saved import Natural, Saved, read_saved
from game_rl.system.output import exit_code_of, write_every_character
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
