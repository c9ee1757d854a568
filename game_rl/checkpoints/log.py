"""The training curves at a checkpoint: what is written, and what waits to be."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat

from game_rl.config.saved import Saved


class LogState(Saved):
    """The logger between two dumps, and the files as they were."""

    values: dict[str, float]
    counts: dict[str, int]
    excluded: dict[str, tuple[str, ...]]
    file_bytes: dict[str, int]
    """Size of each TensorBoard file of the run."""


def save_log(logger: Logger, folder: Path) -> LogState:
    """Flushes TensorBoard's writer, so that its files are as long as the run is."""
    for output in logger.output_formats:
        if isinstance(output, TensorBoardOutputFormat):
            output.writer.flush()
    values = {
        name: float(value)
        for name, value in logger.name_to_value.items()
        if isinstance(value, int | float | np.number)
    }
    return LogState(
        values=values,
        counts={name: logger.name_to_count[name] for name in values.keys() & logger.name_to_count},
        excluded={name: tuple(logger.name_to_excluded[name]) for name in values},
        file_bytes={path.name: path.stat().st_size for path in _event_files(folder)},
    )


def restore_log(logger: Logger, state: LogState) -> None:
    logger.name_to_value.update(state.values)
    logger.name_to_count.update(state.counts)
    logger.name_to_excluded.update(state.excluded)


def cut_log(folder: Path, state: LogState | None) -> None:
    """Take back what was logged after `state`, or all, before a new writer is made.

    Without this a resumed run would draw the same stretch of its curves twice.
    """
    kept = {} if state is None else state.file_bytes
    for path in _event_files(folder):
        if path.name not in kept:
            path.unlink()
        elif path.stat().st_size > kept[path.name]:
            with path.open("r+b") as file:
                file.truncate(kept[path.name])


@contextmanager
def quiet_log_thread() -> Iterator[None]:
    """Inside, a disk that fails is told of once, by who writes to the log.

    TensorBoard writes in a thread. What it meets there is raised again by the next write; without
    this its traceback is printed, too.
    """
    told = threading.excepthook

    def tell(thread_error: threading.ExceptHookArgs) -> None:
        if not isinstance(thread_error.exc_value, OSError):
            told(thread_error)

    threading.excepthook = tell
    try:
        yield
    finally:
        threading.excepthook = told


@contextmanager
def closing_log(logger: Logger) -> Iterator[None]:
    """Close the logger afterwards, which raises once more what its thread has met."""
    try:
        yield
    finally:
        with suppress(OSError):
            logger.close()


def _event_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("events.out.tfevents.*"))
