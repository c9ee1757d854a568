"""A run's uploads, from its start until some time after its end."""

from collections.abc import Iterator
from contextlib import contextmanager

from game_rl.errors import Interrupted
from game_rl.event_log import EventLog
from game_rl.storage.background import BackgroundUpload
from game_rl.storage.settings import UploadSettings
from game_rl.system.stop_request import StopRequest


@contextmanager
def uploading(
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
