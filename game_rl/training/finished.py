"""The result file of a study's finished run; this module does not import torch."""

import platform
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from game_rl.errors import ExperimentError
from game_rl.run_dir import RunDir, check_claim, write_atomic
from game_rl.saved import Saved
from game_rl.system.versions import installed_versions
from game_rl.training.stretch_result import Played

_Count = Annotated[int, Field(ge=0)]


class Finished(Saved):
    """The result of a run.

    All fields but the last three are the same however often the run was interrupted.
    """

    timesteps: _Count = 0
    """Timestep that the run has reached, or 0 if it failed."""
    policy_timesteps: _Count = 0
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


def read_finished(path: Path) -> Finished | None:
    """Read the result; None if there is no file.

    Raises:
        ExperimentError: the file is not such a result.
    """
    if not path.exists():
        return None
    try:
        return Finished.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ExperimentError(
            f"{path} is not the result of a finished run: {first['msg']}; delete it to have it "
            "made again"
        ) from None


def write_finished(path: Path, end: Finished, *, root: Path, seconds: float) -> Finished:
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
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, made.model_dump_json(indent=2) + "\n")
    return made
