"""Curves and events of a training's progress."""

import time
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from game_rl.callbacks.boundary import BoundaryCallback, Interval, any_due
from game_rl.envs.action_player import WAITED_FRAMES
from game_rl.envs.episode_ends import OWN_ENDINGS
from game_rl.events import ExplorationRestarted, Progress, RolloutEnded, WorkerRestarted
from game_rl.events.event_log import EventLog, read_events
from game_rl.files.run_dir import RunDir
from game_rl.game_check.env_checks import check_reward, start_warnings, try_reward
from game_rl.schedules import Restart, RestartingRamp
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from game_rl.vec_env.workers import WorkerDeath


class WaitedFramesCallback(BaseCallback):
    """Counts the frames that the envs play on by the game's `step`, for the curve `time/frames`.

    Events and checkpoints have their number, too, so it comes before all callbacks that report or
    save.

    Args:
        frame_skip: frames of each timestep that are not counted here.
        before: their number at the checkpoint from which the run goes on.

    Attributes:
        at_boundary: their number at the last boundary between an update and a rollout.
    """

    def __init__(self, events: EventLog, *, frame_skip: int, before: int = 0) -> None:
        super().__init__()
        self._events = events
        self._frame_skip = frame_skip
        self._waited = self.at_boundary = before
        self._boundary = 0

    def _on_training_start(self) -> None:
        self._note_boundary()

    def _on_rollout_start(self) -> None:
        self._note_boundary()

    def _on_step(self) -> bool:
        self._waited += sum(info.get(WAITED_FRAMES, 0) for info in self.locals["infos"])
        self._publish()
        return True

    def _on_rollout_end(self) -> None:
        self._note_boundary()
        self.logger.record("time/frames", self.num_timesteps * self._frame_skip + self._waited)

    def _note_boundary(self) -> None:
        self._boundary = self.num_timesteps
        self.at_boundary = self._waited
        self._publish()

    def _publish(self) -> None:
        self._events.waited_frames = {
            self._boundary: self.at_boundary,
            self.num_timesteps: self._waited,
        }


class GameMetricsCallback(BaseCallback):
    """Logs means over the episodes that ended since the last log, as `game/…` in TensorBoard.

    `game/reward/TERM` is the term's sum over an episode, `game/VARIABLE` its value at the end, and
    `game/ending/NAME` the share of the episodes that ended so. `rollout/truncated` is the share
    that was truncated, `game/stuck/episodes` the share in which states repeated for long, and
    `game/stuck/timesteps` for how long, on average over all episodes. `game/looped/TERM` is the
    share of what a term earned that came in a state in which it was earned before.

    Args:
        endings: names of the game file's endings; those of a reward class are in `info`.
    """

    def __init__(self, endings: Iterable[str] = ()) -> None:
        super().__init__()
        self._endings = tuple(endings)

    def _on_step(self) -> bool:
        for is_done, info in zip(self.locals["dones"], self.locals["infos"], strict=True):
            if is_done:
                self._record_end(info)
        return True

    def _record_end(self, info: Mapping[str, Any]) -> None:
        """Record what the `info` of an episode's last timestep says."""
        record = self.logger.record_mean
        record("rollout/truncated", float(info.get("TimeLimit.truncated", False)))
        if "reward_terms" in info:
            for term, value in info["reward_terms"].items():
                record(f"game/reward/{term}", value)
            for name in (*self._endings, *info.get(OWN_ENDINGS, ())):
                record(f"game/ending/{name}", float(info.get("ending") == name))
        for name, value in info.get("game", {}).items():
            record(f"game/{name}", value)
        for name, value in repetition_curves(info).items():
            record(name, value)


def repetition_curves(info: Mapping[str, Any]) -> dict[str, float]:
    """Return what the `info` of an episode's end says of states that repeated, by curve."""
    found = {f"game/looped/{term}": share for term, share in info.get("looped_terms", {}).items()}
    if (stuck := info.get("stuck_timesteps")) is not None:
        found |= {"game/stuck/episodes": float(stuck > 0), "game/stuck/timesteps": stuck}
    return found


_PROGRESS_EVERY_S = 0.2


class ProgressCallback(BaseCallback):
    """Emits `Progress` a few times a second, and `RolloutEnded`.

    Args:
        every_timesteps: report only the first rollout after each multiple of one of these; if
            empty, report each rollout.
    """

    def __init__(self, events: EventLog, *, every_timesteps: Sequence[int] = ()) -> None:
        super().__init__()
        self._events = events
        self._rhythm = [Interval(timesteps) for timesteps in every_timesteps]
        self._told_s = self._started_s = 0.0
        self._started_at = 0

    def _on_training_start(self) -> None:
        self._told_s = self._started_s = time.monotonic()
        self._events.timesteps = self._started_at = self.num_timesteps

    def _on_step(self) -> bool:
        self._events.timesteps = self.num_timesteps
        now = time.monotonic()
        if now - self._told_s > _PROGRESS_EVERY_S:
            self._told_s = now
            self._emit(Progress, now)
        return True

    def _on_rollout_end(self) -> None:
        if any_due(self._rhythm, self.num_timesteps):
            self._emit(RolloutEnded, time.monotonic())

    def _emit(self, kind: type[Progress | RolloutEnded], now: float) -> None:
        """Emit the rate since this process began to train, and the means over recent episodes."""
        elapsed_s = max(now - self._started_s, 1e-9)
        episodes = self.model.ep_info_buffer
        successes = self.model.ep_success_buffer
        self._events.emit(
            kind(
                timesteps=self.num_timesteps,
                timesteps_per_s=round((self.num_timesteps - self._started_at) / elapsed_s, 1),
                mean_reward=round(fmean(float(e["r"]) for e in episodes), 4) if episodes else None,
                success_rate=round(fmean(map(float, successes)), 4) if successes else None,
            )
        )


class WorkerRestartsCallback(BoundaryCallback):
    """Writes `resources/worker_restarts`, their number in this process, and an event for each."""

    def __init__(self, events: EventLog) -> None:
        super().__init__()
        self._events = events
        self._told = 0

    def on_boundary(self, *, is_last: bool) -> None:  # noqa: ARG002
        vec_env = self.training_env.unwrapped
        deaths: Sequence[WorkerDeath] = ()
        if isinstance(vec_env, SharedMemoryVecEnv | HalvedVecEnv):
            deaths = vec_env.worker_deaths
        for number, death in enumerate(deaths[self._told :], start=self._told + 1):
            text = f"{death.text}; it was restarted and its episodes were cut short"
            self._events.emit(
                WorkerRestarted(timesteps=self.boundary_timesteps, text=text, restarts=number)
            )
        self._told = len(deaths)
        self.logger.record("resources/worker_restarts", len(deaths))


class ExplorationRestartsCallback(BaseCallback):
    """Emits an event at the first rollout that a restart affects, once for each restart.

    A restart that is already in the run's event log is not reported again. The log may have it from
    before a resume, or from the parent of a fork.
    """

    def __init__(self, epsilon: RestartingRamp, events: EventLog, run_dir: RunDir) -> None:
        super().__init__()
        self._epsilon = epsilon
        self._events = events
        self._run_dir = run_dir
        self._pending: list[Restart] = []

    def _on_training_start(self) -> None:
        events = read_events(self._run_dir)
        told = {event.at for event in events if isinstance(event, ExplorationRestarted)}
        self._pending = [each for each in self._epsilon.restarts if each.at not in told]

    def _on_rollout_start(self) -> None:
        now = self.num_timesteps
        while self._pending and self._pending[0].at <= now:
            restart = self._pending.pop(0)
            if now < restart.at + restart.over:
                self._events.emit(
                    ExplorationRestarted(
                        timesteps=now,
                        at=restart.at,
                        start=restart.start,
                        over=restart.over,
                        share=self._epsilon.at(now),
                    )
                )

    def _on_step(self) -> bool:
        return True


class GameCheckCallback(BaseCallback):
    """Warns of starts that do not vary, and of rewards that are absurd or cannot be saved.

    When a run begins, the starts are checked (`start_warnings`), and a reward class is tried in a
    few timesteps (`try_reward`). The rewards of all envs are checked before the first update, and
    again each time that the timesteps have doubled (`check_reward`): it may take a reward class
    hours until it cannot be saved. Envs that are not game_rl's are not checked.

    Args:
        evaluation_env: envs that are reset before they are used again.
    """

    def __init__(self, evaluation_env: VecEnv, events: EventLog) -> None:
        super().__init__()
        self._evaluation_env = evaluation_env
        self._events = events
        self._due = 0
        self._has_warned = False

    def _on_training_start(self) -> None:
        env = self._evaluation_env
        if self.num_timesteps == 0 and env.has_attr("call"):
            for text in env.env_method("call", start_warnings, indices=0)[0]:
                self._events.warn(text)
            env.env_method("call", try_reward, indices=0)

    def _on_rollout_end(self) -> None:
        if self.num_timesteps < self._due or not self.training_env.has_attr("call"):
            return
        self._due = 2 * self.num_timesteps
        warnings = [text for text in self.training_env.env_method("call", check_reward) if text]
        if warnings and not self._has_warned:
            self._events.warn(warnings[0])
            self._has_warned = True

    def _on_step(self) -> bool:
        return True
