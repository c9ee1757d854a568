"""How long a training takes, update by update."""

import json
import time

from stable_baselines3.common.callbacks import BaseCallback


class UpdateClock(BaseCallback):
    """Wall time of each rollout and of the update after it, gapless, in seconds.

    It is one of SB3's callbacks, so that a peer needs no code of ours in its loop; it does
    something at the ends of rollouts only.
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
        """What was timed so far."""
        self._starts.clear()
        self._ends.clear()

    def to_json(self) -> str:
        """{"collect_s": [...], "update_s": [...]}, one number an update."""
        collect = [end - start for start, end in zip(self._starts, self._ends, strict=False)]
        update = [start - end for start, end in zip(self._starts[1:], self._ends, strict=True)]
        return json.dumps({"collect_s": collect, "update_s": update})
