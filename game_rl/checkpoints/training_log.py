"""The training's logs at a checkpoint: saved, restored, cut, closed quietly."""

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat

from game_rl.checkpoints.checkpoint_state import CurveSums, LogState
from game_rl.events import CURVE_POINTS, CurvesRecorded
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir
from game_rl.loggers.log_files import (
    appended_files,
    cut_file,
    cut_table,
    synced_sizes,
    table_size,
)
from game_rl.loggers.make_logger import ProgressTable

_OTHER_STEPS = ("eval/", "offline/")  # events of their own have them


class CurveLog(KVWriter):
    """Emits `CurvesRecorded`, as one of the outputs of SB3's logger.

    Args:
        total_timesteps: of the run; an event is due after each thousandth of them.
    """

    def __init__(self, events: EventLog, *, total_timesteps: int) -> None:
        self._events = events
        self._every = math.ceil(total_timesteps / CURVE_POINTS)
        self.continue_from(CurveSums())

    def continue_from(self, state: CurveSums) -> None:
        self._recorded_at = state.recorded_at
        self._sums = dict(state.sums)
        self._counts = dict(state.counts)

    def state(self) -> CurveSums:
        return CurveSums(recorded_at=self._recorded_at, sums=self._sums, counts=self._counts)

    def write(
        self,
        key_values: dict[str, object],
        key_excluded: dict[str, tuple[str, ...]],
        step: int = 0,
    ) -> None:
        for name, value in key_values.items():
            if name.startswith(_OTHER_STEPS) or "tensorboard" in (key_excluded[name] or ()):
                continue
            if isinstance(value, int | float | np.number) and math.isfinite(value):
                self._sums[name] = self._sums.get(name, 0.0) + float(value)
                self._counts[name] = self._counts.get(name, 0) + 1
        if self._sums and step // self._every > self._recorded_at // self._every:
            means = {name: total / self._counts[name] for name, total in self._sums.items()}
            values = {name: _rounded(mean) for name, mean in sorted(means.items())}
            self._events.emit(CurvesRecorded(timesteps=step, values=values))
            self._recorded_at = step
            self._sums.clear()
            self._counts.clear()

    def close(self) -> None:
        """There is nothing to close: the file is the run's `events.jsonl`."""


def _rounded(value: float) -> float:
    """Round to the seven digits that a float32 has; whole numbers stay whole."""
    return value if value.is_integer() else float(f"{value:.7g}")


def save_log(logger: Logger, run_dir: RunDir) -> LogState:
    """Return the logger's state and the sizes of the run's logs, which are then on the disk."""
    for output in logger.output_formats:
        if isinstance(output, TensorBoardOutputFormat):
            output.writer.flush()
    values = {
        name: int(value) if isinstance(value, int | np.integer) else float(value)
        for name, value in logger.name_to_value.items()
        if isinstance(value, int | float | np.number)
    }
    written = [each for each in logger.output_formats if isinstance(each, ProgressTable)]
    return LogState(
        values=values,
        counts={name: logger.name_to_count[name] for name in values.keys() & logger.name_to_count},
        excluded={name: tuple(logger.name_to_excluded[name]) for name in values},
        file_bytes={path.name: path.stat().st_size for path in _event_files(run_dir)},
        appended_bytes=synced_sizes(run_dir),
        table=written[0].size if written else table_size(run_dir.progress),
        curves=next((log.state() for log in _curve_logs(logger)), CurveSums()),
    )


def restore_log(logger: Logger, state: LogState) -> None:
    logger.name_to_value.update(state.values)
    logger.name_to_count.update(state.counts)
    logger.name_to_excluded.update(state.excluded)
    for log in _curve_logs(logger):
        log.continue_from(state.curves)


def _curve_logs(logger: Logger) -> list[CurveLog]:
    return [output for output in logger.output_formats if isinstance(output, CurveLog)]


def cut_log(run_dir: RunDir, state: LogState | None) -> None:
    """Remove all that was logged after `state`, or everything if it is None.

    It must be called before a new writer is created. Without it a resumed run would draw the same
    stretch of its curves twice.
    """
    kept = {} if state is None else state.file_bytes
    for path in _event_files(run_dir):
        cut_file(path, kept.get(path.name))
    appended = {} if state is None else state.appended_bytes
    for path in appended_files(run_dir):
        cut_file(path, appended.get(path.name))
    cut_table(run_dir.progress, None if state is None else state.table)


@contextmanager
def quiet_log_thread() -> Iterator[None]:
    """Suppress the traceback of an OSError in TensorBoard's writer thread.

    The next write to the log raises the error again, so that it is still reported, once.
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
    """Close the logger at the end, without raising an OSError of its thread once more."""
    try:
        yield
    finally:
        with suppress(OSError):
            logger.close()


def _event_files(run_dir: RunDir) -> list[Path]:
    return sorted(run_dir.tensorboard.glob("events.out.tfevents.*"))
