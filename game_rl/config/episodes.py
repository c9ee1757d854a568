"""The section `episodes` of a run config."""

from typing import Annotated

from pydantic import Field

from game_rl.config.strict_model import StrictModel


class EpisodesConfig(StrictModel):
    """The actions of every episode, from which game-rl record makes clips later."""

    limit_mb: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    """The most that they take on the disk, in 10^6 bytes. When there are more, the oldest are
    deleted. A timestep takes about half a byte."""
