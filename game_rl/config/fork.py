"""How a run begins from a checkpoint of another one."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from game_rl.config.strict_model import StrictModel
from game_rl.config.values import Name, expanded_path


def run_at(text: str) -> tuple[Path, int | None]:
    """The folder and the timestep that `RUN@T` names; None where there is no `@T`."""
    run, at, timesteps = text.rpartition("@")
    digits = timesteps.replace("_", "").replace(",", "")
    if at and run and digits.isascii() and digits.isdecimal():
        return expanded_path(run), int(digits)
    return expanded_path(text), None


def _absolute(text: str) -> str:
    """As it is for who starts the run, and not who resumes it."""
    run, timesteps = run_at(text)
    return str(run.absolute()) if timesteps is None else f"{run.absolute()}@{timesteps}"


RunAt = Annotated[Name, AfterValidator(_absolute)]
"""A run directory, with `@T` for its checkpoint of timestep T; see `run_at`."""


class ForkConfig(StrictModel):
    """A run that begins from another run's checkpoint; that run is left as it is."""

    run: Annotated[RunAt, Field(examples=["runs/duel_ppo@200000"])]
    """The run, and @T for its checkpoint of timestep T; without it the newest."""
    optimiser: Literal["keep", "new"] = "keep"
    """keep: its moments go on. new: they begin at zero, as another algorithm needs."""
    counters: Literal["keep", "new"] = "keep"
    """keep: timesteps, schedules and curves go on from T, and total_timesteps counts from the
    parent's beginning. new: the run begins at timestep 0, with the parent's weights."""
