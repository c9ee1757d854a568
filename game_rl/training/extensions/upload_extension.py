"""The upload of a run while it trains."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.errors import Interrupted
from game_rl.events.event_log import EventLog
from game_rl.storage.background import BackgroundUpload
from game_rl.storage.upload_settings import UploadSettings
from game_rl.system.stop_request import StopRequest
from game_rl.training.extension import Extension, RunParts


@contextmanager
def uploading_run(
    settings: UploadSettings | None, events: EventLog, stop: StopRequest
) -> Iterator[BackgroundUpload | None]:
    """Upload checkpoints inside the block, and afterwards the rest, for as long as the config says.

    A run that was stopped waits no longer than its deadline. Another signal ends the waiting.
    """
    if settings is None:
        yield None
        return
    upload = BackgroundUpload(settings, events)
    events.add_listener(upload.on_event)
    wait_s = settings.upload.wait_s
    try:
        yield upload
    except (Interrupted, KeyboardInterrupt):
        wait_s = min(wait_s, stop.deadline_s)
        raise
    finally:
        was_asked = stop.is_asked
        upload.finish(wait_s, is_given_up=lambda: stop.is_asked and not was_asked)


class UploadExtension(Extension):
    """Checkpoints that are being uploaded are not deleted, and a curve shows what waits."""

    def __init__(self, upload: BackgroundUpload) -> None:
        self._upload = upload

    def callbacks(
        self,
        parts: RunParts,
        checkpoints: CheckpointCallback,  # noqa: ARG002
    ) -> Sequence[BaseCallback]:
        return [UploadCallback(self._upload, parts.rhythm)]

    def held(self) -> set[int]:
        return self._upload.held()


_MB = 10**6


class UploadCallback(BoundaryCallback):
    """Writes `upload/waiting_mb`."""

    def __init__(self, upload: BackgroundUpload, every_timesteps: Sequence[int] = ()) -> None:
        super().__init__(every_timesteps=every_timesteps)
        self._upload = upload

    def on_boundary(self, *, is_last: bool) -> None:  # noqa: ARG002 - the end is no special case
        self.logger.record("upload/waiting_mb", self._upload.waiting_bytes / _MB)
