"""What the uploading processes get when they start, and answer; none of it is secret."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from game_rl.config.output_config import UploadConfig
from game_rl.files.saved import Saved
from game_rl.storage.faults import FaultKind
from game_rl.storage.manifest import place_of, run_folder


class GameFiles(Saved):
    """The files of a user's own game, except for its ROM, and of the user's own parts of a run."""

    game_file: str | None = None
    """Path of its game.yaml in a fetched run; None for a bundled game."""
    paths: dict[str, Path] = Field(default={})
    """Path of each file on this machine, by its path in a fetched run."""


class UploadSettings(Saved):
    """Settings for uploading a run."""

    run_dir: Path
    run: str
    """Id of the run."""
    upload: UploadConfig
    lake: Path | None
    """Folder of the Lake that the run writes, or None if it writes none."""
    game: GameFiles
    begins_at: Annotated[int, Field(ge=0)]
    """Timesteps of the checkpoint that the training continues from. Later checkpoints in storage
    will be trained again."""
    take_over: bool = False
    """Whether to take the claim from another machine that writes to the run in storage."""

    @property
    def address(self) -> str:
        """Address of the run."""
        return f"{self.upload.to}/{run_folder(self.run)}"


class FirstAnswer(Saved):
    """What storage answered to the first request; no fault if it can be used."""

    fault: FaultKind | None = None
    text: str = ""


class RemoteKeeping(Saved):
    """Which generations of an experiment stay in storage.

    Attributes:
        last: number of newest generations to keep, or None to keep all.
        every: also keep each generation whose number is a multiple of this, unless None.
    """

    last: int | None = None
    every: int | None = None


class PushSettings(Saved):
    """Settings for uploading one generation of an experiment.

    Attributes:
        to: address as in `upload.to` of a config.
        experiment: id of the experiment.
        folder: a snapshot of the experiment's folder after the generation, which does not change.
        writer: random id of this copy of the experiment.
        kind: kind of the experiment, for listings.
        game: game of the experiment, for listings.
        take_over: whether to take the claim from another copy that writes there.
        is_last: whether to release the claim afterwards, so that the next writer need not take
            over.
        limit_mb_s: limit in 10^6 bytes per second, or None for no limit.
        wait_s: time that the upload may take once the experiment's process has ended.
    """

    to: str
    experiment: str
    folder: Path
    generation: int
    writer: str
    kind: str = "population"
    game: str | None = None
    keep: RemoteKeeping = RemoteKeeping()
    take_over: bool = False
    is_last: bool = False
    limit_mb_s: float | None = None
    wait_s: float = 60.0

    @property
    def place(self) -> str:
        """Folder of the experiment, below `to`."""
        return place_of(self.experiment)
