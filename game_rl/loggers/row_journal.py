"""`wandb.jsonl`: the journal of curves, which another process sends to Weights & Biases."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.logger import KVWriter, filter_excluded_keys


class RowJournal(KVWriter):
    """Appends each dump of the logger as a line `{"timesteps": T, "values": {…}}`."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def write(
        self,
        key_values: dict[str, Any],
        key_excluded: dict[str, tuple[str, ...]],
        step: int = 0,
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
