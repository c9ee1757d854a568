"""SB3's logger with the outputs that the config names, and two outputs that SB3 lacks."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.logger import (
    CSVOutputFormat,
    KVWriter,
    Logger,
    TensorBoardOutputFormat,
    filter_excluded_keys,
)

from game_rl.config.output_config import LoggingConfig
from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.loggers.log_files import TableSize, table_size


def make_logger(config: LoggingConfig, run_dir: RunDir) -> Logger:
    """Return a logger that continues the run's files, which must have been cut.

    Raises:
        OSError: the disk fails.
    """
    outputs: list[KVWriter] = []
    run_dir.root.mkdir(parents=True, exist_ok=True)
    if config.tensorboard:
        outputs.append(TensorBoardOutputFormat(str(run_dir.tensorboard)))
    if config.csv:
        outputs.append(ProgressTable(run_dir.progress))
    if config.wandb is not None:
        outputs.append(RowJournal(run_dir.wandb_rows))
    folder = run_dir.tensorboard if config.tensorboard else run_dir.root
    return Logger(folder=str(folder), output_formats=list(outputs))


class ProgressTable(CSVOutputFormat):
    """`progress.csv`: SB3's CSVOutputFormat, apart from four things.

    It continues a table that exists, columns stand in the order in which they were first logged, a
    header that grows replaces the file in one rename, so that a kill loses no rows, and NumPy's
    numbers are written as Python's.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        found = table_size(path)
        self._lines = 0
        self.keys = []
        if found is not None:
            self._lines = found.lines
            with path.open(encoding="utf-8", newline="\n") as file:
                self.keys = file.readline().rstrip("\n").split(",")
        self.separator = ","
        self.quotechar = '"'
        self.file = self._opened()

    @property
    def size(self) -> TableSize | None:
        """Size of the table, on the disk; None if it has no header yet."""
        if not self._lines:
            return None
        os.fsync(self.file.fileno())
        return TableSize(lines=self._lines, columns=self.separator.join(self.keys).count(",") + 1)

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        values = filter_excluded_keys(key_values, key_excluded, "csv")
        # as a checkpoint keeps them, so that a resumed run writes the same digits
        values = {k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()}
        if more := [key for key in values if key not in self.keys]:
            self._add_columns(more)
        super().write(values, {}, step)
        self._lines += 1 + sum(v.count("\n") for v in values.values() if isinstance(v, str))

    def _add_columns(self, more: list[str]) -> None:
        self.file.close()
        self.keys.extend(more)
        _, *rows = self._path.read_bytes().split(b"\n")
        filled = b"," * self.separator.join(("", *more)).count(",") + b"\n"
        header = self.separator.join(self.keys).encode() + b"\n"
        write_atomic(self._path, header + b"".join(row + filled for row in rows[:-1]))
        self._lines = max(1, self._lines)
        self.file = self._opened()

    def _opened(self) -> Any:  # noqa: ANN401 - as SB3 declares it
        return self._path.open("a+", encoding="utf-8", newline="\n")


class RowJournal(KVWriter):
    """`wandb.jsonl`: the journal of curves, which another process sends to Weights & Biases.

    Each dump of the logger is a line `{"timesteps": T, "values": {…}}`.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        kept = filter_excluded_keys(key_values, key_excluded, "tensorboard")
        values = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in kept.items()
            if isinstance(value, int | float | np.number)
        }
        data = json.dumps({"timesteps": step, "values": values}).encode() + b"\n"
        while data:
            data = data[self._file.write(data) :]

    def close(self) -> None:
        self._file.close()
