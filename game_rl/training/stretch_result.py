"""The result file of a member's stretch in an experiment; this module does not import torch."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from game_rl.errors import ExperimentError
from game_rl.saved import Saved

_Count = Annotated[int, Field(ge=0)]


class Played(Saved):
    """Results of the episodes that a policy played from one seed."""

    seed: _Count
    """Seed of the episodes."""
    deterministic: bool
    """Whether the policy took its best actions or drew them."""
    rewards: tuple[float, ...]
    """Total reward of each episode."""
    successes: tuple[bool, ...]
    """Whether each episode succeeded; empty if the game does not define success."""


class StretchResult(Saved):
    """The result of a stretch.

    All fields but the last four are the same however often the stretch was interrupted.
    """

    timesteps: _Count
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
    ram_peak_bytes: _Count = 0
    """Peak of the run's memory so far."""


def read_result(path: Path) -> StretchResult | None:
    """Read the result; None if there is no file.

    Raises:
        ExperimentError: the file is not such a result.
    """
    if not path.exists():
        return None
    try:
        return StretchResult.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ExperimentError(
            f"{path} is not the result of a stretch: {first['msg']}; delete it to have it made "
            "again"
        ) from None
