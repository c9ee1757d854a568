"""Curve of the bytes that wait to be uploaded."""

from collections.abc import Sequence

from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.storage.background import BackgroundUpload

_MB = 10**6


class UploadCallback(BoundaryCallback):
    """Writes `upload/waiting_mb`."""

    def __init__(self, upload: BackgroundUpload, every_timesteps: Sequence[int] = ()) -> None:
        super().__init__(every_timesteps=every_timesteps)
        self._upload = upload

    def on_boundary(self, *, is_last: bool) -> None:  # noqa: ARG002 - the end is no special case
        self.logger.record("upload/waiting_mb", self._upload.waiting_bytes / _MB)
