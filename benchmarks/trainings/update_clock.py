"""The time that a training takes, update by update."""

import json
import time

from stable_baselines3.common.callbacks import BaseCallback


class UpdateClock(BaseCallback):
    """A clock of each rollout and the update after it, without gaps, in seconds of wall time.

    It is an SB3 callback, so peers need no code of ours in their loops. It only acts at the start
    and end of rollouts.
    """

    def __init__(self) -> None:
        super().__init__()
        self._starts: list[float] = []
        self._ends: list[float] = []

    def _on_rollout_start(self) -> None:
        self._starts.append(time.perf_counter())

    def _on_rollout_end(self) -> None:
        self._ends.append(time.perf_counter())

    def _on_training_end(self) -> None:
        self._starts.append(time.perf_counter())

    def _on_step(self) -> bool:
        return True

    def forget(self) -> None:
        """Discard the times so far."""
        self._starts.clear()
        self._ends.clear()

    def to_json(self) -> str:
        """Return {"collect_s": [...], "update_s": [...]}, with one number for each update."""
        collect = [end - start for start, end in zip(self._starts, self._ends, strict=False)]
        update = [start - end for start, end in zip(self._starts[1:], self._ends, strict=True)]
        return json.dumps({"collect_s": collect, "update_s": update})
