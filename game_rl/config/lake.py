"""Where a run's timesteps are kept on disk, and how much of it they may take."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from game_rl.config.strict_model import StrictModel
from game_rl.config.values import Positive, Timesteps, named_folder


def _folder(path: Path) -> Path:
    if path.name.lower() in {"yes", "no", "on", "off", "true", "false"}:
        raise ValueError(
            f"{path} is no folder; write lake: {{}} for the folder lake in run_dir, or the path of "
            "one such as runs/lake"
        )
    return named_folder(path).absolute()  # as it is for who starts the run, and not who resumes it


class LakeConfig(StrictModel):
    """A Lake, replay on disk, that gets every timestep of the training."""

    path: Annotated[Path, AfterValidator(_folder)] | None = None
    """Its folder, which several runs may write to; null: the folder lake in run_dir."""
    capacity_transitions: Annotated[Timesteps, Field(ge=1_000)] | None = None
    """When it has more, each env keeps its newest, as many as any other; null: no limit."""
    capacity_gb: Annotated[Positive, Field(ge=0.01, le=1_000_000)] | None = None
    """The oldest files go when it takes more disk, in 10^9 bytes; null: no limit."""
    on_full: Literal["pause", "evict"] = "pause"
    """When little space is left on the disk: stop growing (pause) or delete the oldest (evict)."""
    seal_every_timesteps: Annotated[Timesteps, Field(ge=1_000)] | None = None
    """Also seal after so many timesteps, so that other processes can read them; null: no."""
