"""The section `lake`: where a run's timesteps are kept on disk, and the limits of the space."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from game_rl.config.strict_model import StrictModel
from game_rl.config.values import Positive, Timesteps, named_folder


def _folder(path: Path) -> Path:
    if path.name.lower() in {"yes", "no", "on", "off", "true", "false"}:
        raise ValueError(
            f"{path} is no folder; write lake: {{}} for the folder lake in run_dir, or a path such "
            "as runs/lake"
        )
    return named_folder(path).absolute()  # a resume may have another current folder


class LakeConfig(StrictModel):
    """A Lake (replay on disk) that gets every timestep of the training."""

    path: Annotated[Path, AfterValidator(_folder)] | None = None
    """Folder of the Lake, which several runs may write to; null: the folder lake in run_dir."""
    capacity_transitions: Annotated[Timesteps, Field(ge=1_000)] | None = None
    """Largest number of timesteps in the Lake. Above it, each env keeps its newest ones, as many as
    every other env; null: no limit."""
    capacity_gb: Annotated[Positive, Field(ge=0.01, le=1_000_000)] | None = None
    """Largest size of the Lake on disk, in 10^9 bytes. Above it, the oldest files are deleted;
    null: no limit."""
    on_full: Literal["pause", "evict"] = "pause"
    """Reaction to little space on the disk. pause: the Lake stops growing. evict: it deletes its
    oldest files."""
    seal_every_timesteps: Annotated[Timesteps, Field(ge=1_000)] | None = None
    """Number of timesteps after which new ones are sealed, so that other processes can read them.
    null: they are sealed only at checkpoints and when a file is full."""
