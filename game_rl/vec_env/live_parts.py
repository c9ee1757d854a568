"""Shown timesteps of a training's vec env, whether or not it has two halves."""

from pathlib import Path

from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from game_rl.live.live_layout import LiveLayout
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from game_rl.vec_env.worker_protocol import LiveSlots


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
