"""Names of runs and of their checkpoints, `RUN` and `RUN@T`, in configs and command lines."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from game_rl.config.values import Name, expanded_path


def run_at(text: str) -> tuple[Path, int | None]:
    """Return the folder and the timestep that `RUN@T` names; the timestep is None without `@T`."""
    run, at, timesteps = text.rpartition("@")
    digits = timesteps.replace("_", "").replace(",", "")
    if at and run and digits.isascii() and digits.isdecimal():
        return expanded_path(run), int(digits)
    return expanded_path(text), None


def _absolute(text: str) -> str:
    """Make the path absolute, as a resume may have another current folder."""
    run, timesteps = run_at(text)
    return str(run.absolute()) if timesteps is None else f"{run.absolute()}@{timesteps}"


RunAt = Annotated[Name, AfterValidator(_absolute)]
"""A run directory, with `@T` for its checkpoint of timestep T; see `run_at`."""
