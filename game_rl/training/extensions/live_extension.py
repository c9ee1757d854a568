"""The live file of a run: made for a session, written while somebody watches, removed."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from game_rl.algorithms.algorithm import LeanAlgorithm
from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.live.live_file import LiveLayout
from game_rl.live.live_writer import LiveFile, make_live_layout
from game_rl.training.extension import Extension, RunParts
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from game_rl.vec_env.worker_protocol import LiveSlots

_SPARED = 100  # times as long as the values took is left between them


class LiveParts:
    """The vec env of `make_training_env`, whose envs can show a timestep in the live file."""

    def __init__(self, vec_env: VecEnv) -> None:
        monitors = vec_env.halves if isinstance(vec_env, HalvedVecEnv) else (vec_env,)
        self._parts: list[SharedMemoryVecEnv] = []
        for monitor in monitors:
            assert isinstance(monitor, VecMonitor)
            assert isinstance(monitor.venv, SharedMemoryVecEnv)
            self._parts.append(monitor.venv)

    def show_in(self, path: Path, layout: LiveLayout) -> None:
        """Let the workers write shown timesteps to the live file."""
        first = 0
        for part in self._parts:
            part.show_in(LiveSlots(path, layout, first))
            first += part.num_envs

    @property
    def vec_steps(self) -> int:
        """The vec steps so far of the part that has taken the fewest."""
        return min(part.vec_steps for part in self._parts)

    def show_next_step(self) -> int:
        """Let all envs show the next vec step that has not begun; return its number, from 1 on.

        To be called between two vec steps.
        """
        (number,) = {part.show_next_step() for part in self._parts}
        return number


class LiveCallback(BaseCallback):
    """Lets the envs show a vec step a few times a second, while somebody watches.

    Once the vec step is over, the policy is asked again about the observations for which its
    actions were chosen. This takes at most a hundredth of a CPU: a slow network's values are not
    written for every shown step.

    Args:
        live: the live file; its owner closes it.
        parts: the training's envs, which write to it.
        learns_from: timesteps from which each update learns; 0 for one that draws from a replay
            buffer.
        clock, cpu_clock: the time, and the CPU time of this thread, in seconds.
    """

    model: LeanAlgorithm

    def __init__(
        self,
        live: LiveFile,
        parts: LiveParts,
        *,
        learns_from: int = 0,
        clock: Callable[[], float] = time.monotonic,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        super().__init__()
        self._live = live
        self._parts = parts
        self._learns_from = learns_from
        self._said = 0
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._look_at_s = self._values_at_s = 0.0
        self._shown: int | None = None

    def _on_rollout_start(self) -> None:
        self._say_learns_from(0)

    def _on_rollout_end(self) -> None:
        self._say_learns_from(self._learns_from)

    def _say_learns_from(self, timesteps: int) -> None:
        if timesteps != self._said and (not timesteps or self._live.is_watched()):
            self._said = timesteps
            self._live.write_learns_from(timesteps)

    def _on_step(self) -> bool:
        now = self._clock()
        if self._shown is not None and self._parts.vec_steps >= self._shown:
            if now >= self._values_at_s:
                self._write_values(self._shown, now)
            self._shown = None  # for one vec step, the screens stay beside their values
        elif now >= self._look_at_s and self._shown is None:
            self._look_at_s = now + 1 / self._live.layout.fps
            if self._live.is_watched():
                self._shown = self._parts.show_next_step()
        return True

    def _write_values(self, timestep: int, now: float) -> None:
        began_s = self._cpu_clock()
        self._live.write_values(timestep, self.model.shown_values())
        self._values_at_s = now + _SPARED * (self._cpu_clock() - began_s)


class LiveExtension(Extension):
    """Shows what the training's agents do; see `live.live_file`."""

    def __init__(self, live: LiveFile, envs: LiveParts, learns_from: int) -> None:
        self._live = live
        self._envs = envs
        self._learns_from = learns_from

    @classmethod
    def of(cls, parts: RunParts) -> Self | None:
        """Make the live file; None if nobody can watch, or if the folder refuses the file."""
        path = parts.run_dir.live_frames
        config = parts.config
        try:
            path.unlink(missing_ok=True)  # of a session that was killed
            if not config.live.fps or parts.is_offline:
                return None
            identity = parts.run_dir.identity_file
            layout = make_live_layout(
                parts.game,
                parts.observation_format,
                run_id=parts.run_dir.identity().id if identity.exists() else "",
                n_envs=config.env.n_envs,
                fps=config.live.fps,
                has_probabilities=config.algorithm.draws_actions,
            )
            live = LiveFile(path, layout)
        except OSError as error:
            parts.events.warn(f"the training cannot be watched: {path}: {error.strerror}")
            return None
        assert parts.model.env is not None
        learns_from = config.rollout_timesteps if config.algorithm.replay is None else 0
        return cls(live, LiveParts(parts.model.env), learns_from)

    def callbacks(
        self,
        parts: RunParts,  # noqa: ARG002
        checkpoints: CheckpointCallback,  # noqa: ARG002
    ) -> Sequence[BaseCallback]:
        return (LiveCallback(self._live, self._envs, learns_from=self._learns_from),)

    def begin(self) -> None:
        self._envs.show_in(self._live.path, self._live.layout)

    def close(self) -> None:
        self._live.close()
