"""The section `live`: what a running training shows to whoever watches."""

from typing import Annotated

from pydantic import Field

from game_rl.config.strict_model import StrictModel


class LiveConfig(StrictModel):
    """Screens of the training's emulators for `game-rl watch`, in the file live.frames of run_dir.

    They are written only while somebody watches, and do not change what is learned.
    """

    fps: Annotated[float, Field(ge=0, le=60)] = 4.0
    """Screens a second of each emulator, at most; 0: nobody can watch."""
