"""Record as an event why a training ended early."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from game_rl.errors import GameRLError, Interrupted
from game_rl.event_log import EventLog
from game_rl.events import Ended


@contextmanager
def told_how_it_ends(events: EventLog) -> Iterator[None]:
    """Emit `Ended` for an exception that is raised inside the block, and raise it again."""
    try:
        yield
    except (Interrupted, KeyboardInterrupt) as error:
        code = error.exit_code if isinstance(error, Interrupted) else Interrupted("").exit_code
        _emit(events, Ended(reason="stopped", exit_code=code, text=str(error)))
        raise
    except Exception as error:
        code = error.exit_code if isinstance(error, GameRLError) else GameRLError.exit_code
        _emit(events, Ended(reason="failed", exit_code=code, text=str(error)))
        raise


def _emit(events: EventLog, ended: Ended) -> None:
    with suppress(OSError):  # a failing disk may have ended the training
        events.emit(ended.model_copy(update={"timesteps": events.timesteps}))
