"""Uploading what is missing of a run, in the foreground."""

from collections.abc import Callable

from game_rl.errors import UsageError
from game_rl.events import Event
from game_rl.run_dir import RunDir
from game_rl.storage.journal import Journal
from game_rl.storage.settings import UploadSettings
from game_rl.storage.uploader import Uploader
from game_rl.storage.uploading import RETRIED, Bell, Uploading, alone

_LOCK_WAIT_S = 5.0


def push(
    settings: UploadSettings,
    emit: Callable[[Event], None],
    *,
    advice: str = RETRIED,
    most_failures: int | None = None,
) -> None:
    """Upload everything that the run has, and return when it is stored.

    Args:
        advice, most_failures: see `Uploading`.

    Raises:
        UsageError: the run's training is uploading it.
        StorageError: storage fails, and `most_failures` does not allow another attempt, or another
            machine or copy writes to the run there.
    """
    with alone(settings.run_dir, wait_s=_LOCK_WAIT_S) as is_alone:
        if not is_alone:
            raise UsageError(
                f"{settings.run_dir} is being uploaded by its own training; wait until that ends"
            )
        bell = Bell()
        bell.ring(is_ending=True)
        with Journal(RunDir(settings.run_dir).upload_journal) as journal:
            uploader = Uploader(settings, journal, emit)
            Uploading(uploader, settings, emit, advice=advice, most_failures=most_failures).run(
                bell
            )
