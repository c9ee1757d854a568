"""What a run of a study leaves at its end; needs no torch to read."""

import platform
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from game_rl.claims import check_claim
from game_rl.config.saved import Saved
from game_rl.errors import ExperimentError
from game_rl.run_dir import RunDir, write_atomic
from game_rl.system.versions import installed_versions
from game_rl.training.stretch_result import Played

_Count = Annotated[int, Field(ge=0)]


class Finished(Saved):
    """The end of a run. All but the last three is the same however often it was broken off."""

    timesteps: _Count = 0
    """That the run has come to; 0 where it failed, as for the next."""
    policy_timesteps: _Count = 0
    """At which the tested policy was learned."""
    weights_sha256: str | None = None
    """Of that policy."""
    played: Played | None = None
    failure: Literal["non_finite", "given_up"] | None = None
    text: str = ""
    """Of the failure."""
    host: str = ""
    seconds: float = 0.0
    """Of the process that ended it, the test included."""
    versions: dict[str, str] = Field(default_factory=dict)


def read_finished(path: Path) -> Finished | None:
    """None where there is no file.

    Raises:
        ExperimentError: it is none of ours.
    """
    if not path.exists():
        return None
    try:
        return Finished.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ExperimentError(
            f"{path} is no result of a finished run: {first['msg']}; delete it, and it is "
            "made again"
        ) from None


def write_finished(path: Path, end: Finished, *, root: Path, seconds: float) -> Finished:
    """Leave how the run or experiment at `root` has ended, with where and by what that was made.

    Raises:
        ExperimentError: another process has taken it over.
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
