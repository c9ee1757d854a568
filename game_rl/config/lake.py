"""Where a run's timesteps are kept on disk, and how much of it they may take."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from game_rl.config.strict_model import StrictModel
from game_rl.config.values import Positive, Timesteps, named_folder


def _folder(path: Path) -> Path:
    if path.name.lower() in {"yes", "no", "on", "off", "true", "false"}:
        raise ValueError(f"{path} is text; write true, or the path of a folder such as runs/lake")
    return named_folder(path).absolute()  # as it is for who starts the run, and not who resumes it


LakePlace = bool | Annotated[Path, AfterValidator(_folder)]
LakeTransitions = Annotated[Timesteps, Field(ge=1_000)]
LakeGigabytes = Annotated[Positive, Field(ge=0.01, le=1_000_000)]
OnFull = Literal["pause", "evict"]


class FeedConfig(StrictModel):
    """What else gets every timestep of the training: a Lake, which is replay on disk."""

    lake: LakePlace = True
    """Its folder, which several runs may write to; true: the folder lake in run_dir."""
    capacity_transitions: LakeTransitions | None = None
    """The oldest go when it has more, except those that a checkpoint needs; null: no limit."""
    capacity_gb: LakeGigabytes | None = None
    """The same by the space on disk, in 10^9 bytes; null: no limit."""
    on_full: OnFull = "pause"
    """When little space is left on the disk: stop growing (pause) or delete the oldest (evict)."""
