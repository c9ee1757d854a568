"""The first timestep at which the envs of a run reach something, as events and a curve."""

from typing import Literal

from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.envs.episode_progress import MILESTONES, is_new_maximum
from game_rl.envs.episode_tracker import POOL
from game_rl.events import MilestoneReached
from game_rl.events.event_log import EventLog, read_events
from game_rl.files.run_dir import RunDir

_Kind = Literal["reward_term", "start_state", "variable"]

MOST_MILESTONES = 2_000
"""Milestones of a run. A game with 2,560 event flags keeps room for what it reaches first."""


class MilestonesCallback(BaseCallback):
    """Emits `MilestoneReached` after the rollout in which it was, and writes `milestones/reached`.

    What is in the run's event log was reached already. The log is cut where a run resumes, so a
    resumed run reports what it reaches after its checkpoint, and nothing twice.

    Args:
        checkpoints: knows the hours of training.
    """

    def __init__(self, events: EventLog, run_dir: RunDir, checkpoints: CheckpointCallback) -> None:
        super().__init__()
        self._events = events
        self._run_dir = run_dir
        self._checkpoints = checkpoints
        self._maxima: dict[tuple[_Kind, str], int | float | None] = {}
        self._new: list[MilestoneReached] = []
        self._n_reached = 0

    def _on_training_start(self) -> None:
        self._new.clear()
        events = read_events(self._run_dir)
        reached = [event for event in events if isinstance(event, MilestoneReached)]
        self._maxima = {(event.kind, event.name): event.value for event in reached}
        self._n_reached = len(reached)

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            for kind, name, value, place in info.get(MILESTONES, ()):
                self._reach(kind, name, value, place)
            if info.get("is_success") and "start_state" in info:
                self._reach("start_state", info["start_state"], None, None)
        return True

    def _reach(
        self, kind: _Kind, name: str, value: int | float | None, place: tuple[int, ...] | None
    ) -> None:
        key = (kind, name)
        is_first = key not in self._maxima
        is_higher = value is not None and is_new_maximum(value, self._maxima.get(key))
        if not (is_first or is_higher) or self._n_reached >= MOST_MILESTONES:
            return
        self._maxima[key] = value
        self._n_reached += 1
        hours = self._checkpoints.training_time.seconds() / 3_600
        self._new.append(
            MilestoneReached(
                timesteps=self.num_timesteps,
                waited_frames=self._events.waited_frames.get(self.num_timesteps),
                kind=kind,
                name=name,
                value=value,
                place=place,
                text=_text(kind, name, value),
                hours=round(hours, 4),
            )
        )

    def _on_rollout_end(self) -> None:
        """Report what the rollout has reached: a stop before its end would have undone it."""
        for event in self._new:
            self._events.emit(event)
        self._new.clear()
        self.logger.record("milestones/reached", self._n_reached)


def _text(kind: _Kind, name: str, value: int | float | None) -> str:
    if kind == "reward_term":
        return f"reward term {name} earned for the first time"
    if kind == "start_state" and name == POOL:
        return "won from a state of the pool for the first time"
    if kind == "start_state":
        return f"start state {name} won for the first time"
    return f"{name} reached {value:g}" if isinstance(value, float) else f"{name} reached {value:,}"
