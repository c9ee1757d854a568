"""What the uploader's process gets when it starts; there is no secret in it."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from game_rl.config.saved import Saved
from game_rl.config.upload import UploadConfig
from game_rl.storage.manifest import run_folder


class GameFiles(Saved):
    """The files of a game of the user's own, but for its ROM; a bundled game has none."""

    game_file: str | None = None
    """Its game.yaml in a fetched run."""
    paths: dict[str, Path] = Field(default={})
    """Where each file is here, by its path in a fetched run."""


class UploadSettings(Saved):
    """A run and where it goes."""

    run_dir: Path
    run: str
    """Its id."""
    upload: UploadConfig
    lake: Path | None
    """The Lake that the run writes."""
    game: GameFiles
    begins_at: Annotated[int, Field(ge=0)]
    """Timesteps of the checkpoint that the training goes on from; what is stored of later ones is
    trained again."""
    take_over: bool = False
    """From another machine that writes to the run there."""

    @property
    def address(self) -> str:
        """Of the run."""
        return f"{self.upload.to}/{run_folder(self.run)}"


class RemoteKeeping(Saved):
    """Generations of an experiment that stay in storage.

    Attributes:
        last: the newest of those that are there; None: all.
        every: besides, each whose number is a multiple of this; None: none.
    """

    last: int | None = None
    every: int | None = None


class PushSettings(Saved):
    """A folder to send; there is no secret in it.

    Attributes:
        folder: as it was after the generation, and does not change.
        kind, game: of the experiment, for who looks at the storage.
        writer: drawn once for this copy of the experiment.
        is_last: whoever goes on with it need not take over.
        wait_s: that it may take when nobody trains any more.
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
        """Below `to`."""
        return f"experiments/{self.experiment}"
