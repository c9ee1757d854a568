"""Where a population goes after each generation, so that it outlives the machine."""

from typing import Annotated

from pydantic import AfterValidator, Field

from game_rl.config.strict_model import StrictModel
from game_rl.config.upload import checked_address
from game_rl.config.values import Positive


class PopulationUploadConfig(StrictModel):
    """The whole population is copied to storage or another disk, generation by generation."""

    to: Annotated[
        str, Field(examples=["s3://bucket/folder"], repr=False), AfterValidator(checked_address)
    ]
    """Address of a folder: s3://bucket/folder, gs://…, az://…, file:///…; without credentials."""
    limit_mb_s: Positive | None = None
    """Send no more than so many 10^6 bytes a second; null: no limit."""
    wait_s: Annotated[float, Field(ge=0, le=86_400)] = 60.0
    """At its end it waits so long for what is not there yet; `remote push` sends the rest."""
