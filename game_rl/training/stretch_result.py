"""What a member of an experiment leaves when it has trained its stretch; needs no torch to read."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from game_rl.config.saved import Saved
from game_rl.errors import ExperimentError

_Count = Annotated[int, Field(ge=0)]


class Played(Saved):
    """Episodes that one policy has played from one seed."""

    seed: _Count
    deterministic: bool
    rewards: tuple[float, ...]
    successes: tuple[bool, ...]
    """Empty where the game does not say what success is."""


class StretchResult(Saved):
    """The end of a stretch.

    All but the last four is the same however often the stretch was broken off.
    """

    timesteps: _Count
    """That the run has come to."""
    checkpoint: str | None = None
    """The name of its folder; None where the weights became non-finite, as for the next two."""
    weights_sha256: str | None = None
    """Of its policy."""
    played: Played | None = None
    failure: Literal["non_finite"] | None = None
    text: str = ""
    """Of the failure."""
    host: str = ""
    timesteps_per_s: float = 0.0
    """In the process that ended the stretch."""
    seconds: float = 0.0
    """Of that process, its episodes included."""
    ram_peak_bytes: _Count = 0


def read_result(path: Path) -> StretchResult | None:
    """None where there is no file.

    Raises:
        ExperimentError: it is none of ours.
    """
    if not path.exists():
        return None
    try:
        return StretchResult.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ExperimentError(
            f"{path} is no result of a stretch: {first['msg']}; delete it, and it is made again"
        ) from None
