"""Recording clips of episodes as GIF or MP4: of a policy at play."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from game_rl.algorithms.policies import ExpectedReturns
from game_rl.checkpoints.model_state import drawing_from
from game_rl.emulator.emulator import FRAMES_PER_SECOND, Emulator, RecordingEmulator, picture_frames
from game_rl.envs.custom_wrappers import GameEnv
from game_rl.envs.make_env import make_emulator, make_env, make_observation_format
from game_rl.envs.observation import Observation
from game_rl.playback.clip import clip_writer, save_clip
from game_rl.playback.shown_episode import (
    OverlayItem,
    ShownEpisode,
    ShownTimestep,
    hold_pictures,
    in_a_row,
    side_by_side,
)
from game_rl.playback.trained_run import TrainedRun
from game_rl.seeds import seed_for
from game_rl.vec_env.frame_stacks import frame_stack_of, new_stacks


class PolicyWatcher:
    """Stacks the frames of an episode, and says what a run's policy expects; a `Watcher`."""

    def __init__(self, run: TrainedRun) -> None:
        observation_format = make_observation_format(run.config.env, run.game)
        self._stacks = new_stacks(
            observation_format.frame_space, frame_stack_of(observation_format)
        )
        actions = spaces.Discrete(len(run.game.action_names))
        self._returns = ExpectedReturns(run.policy(observation_format.space, actions))

    def begin(self, observation: Observation) -> None:
        self._stacks.put(0, observation)
        self._stacks.begin_episode(0)
        self._returns.begin()

    def value(self) -> float:
        observations: Any = self._stacks.all()
        return self._returns.after(observations)

    def see(self, observation: Observation) -> None:
        self._stacks.turn()
        self._stacks.put(0, observation)


def record_run(
    run: TrainedRun,
    *,
    episodes: int,
    output: Path,
    max_s: float | None = None,
    seed: int | None = None,
    start_states: Sequence[str] | None = None,
    overlay: Collection[OverlayItem] = (),
    grid: bool = False,
) -> Path:
    """Write a clip of `episodes` episodes, but of at most `max_s` seconds, and return its path.

    Args:
        seed: chooses the episodes; None: those of the run's own clip.
        start_states: in which episodes begin, sampled uniformly; None: those of the config.
        overlay: what is written below the screen.
        grid: whether the episodes are side by side.

    Raises:
        UsageError: the suffix of `output` is neither .gif nor .mp4, or the game has no such start
            state.
    """
    clip_writer(output)
    frames = picture_frames(run.config.env.frame_skip)
    watched = RecordingEmulator(make_emulator(run.game), picture_frames=frames)
    if seed is None:
        seed = seed_for(run.config.seed, "recording")
    env_config = run.config.env.starting_in(start_states)
    game = run.game
    emulator = cast("Emulator", watched)
    with drawing_from(seed), closing(make_env(env_config, game, emulator, draws=True)) as env:
        play = _Play(run, env, watched, has_value="value" in overlay)
        played = play.episodes(episodes, seed=seed)
        shown = (side_by_side if grid else in_a_row)(played, overlay)
        most = None if max_s is None else max(1, int(max_s * FRAMES_PER_SECOND / frames))
        pictures = islice(shown, most)
        return save_clip(pictures, frames / FRAMES_PER_SECOND, output)


class _Play:
    """A policy that plays episodes in an env with a watched emulator."""

    def __init__(
        self, run: TrainedRun, env: GameEnv, watched: RecordingEmulator, *, has_value: bool
    ) -> None:
        observation_format = make_observation_format(run.config.env, run.game)
        self._env = env
        self._watched = watched
        self._run = run
        self._stacks = new_stacks(env.observation_space, frame_stack_of(observation_format))
        self._policy = run.policy(observation_format.space, env.action_space)
        self._returns = ExpectedReturns(self._policy) if has_value else None
        self._hold = hold_pictures(run.config.env.frame_skip)
        self._names = tuple(run.game.action_names)

    def episodes(self, n: int, *, seed: int) -> Iterator[ShownEpisode]:
        """Yield episodes, each of which must be gone through before the next."""
        for number in range(n):
            observation, info = self._env.reset(seed=seed if number == 0 else None)
            self._stacks.put(0, observation)
            self._stacks.begin_episode(0)
            self._watched.take_pictures()  # discards those of the idle frames
            yield ShownEpisode(info["start_state"], self._timesteps())

    def _timesteps(self) -> Iterator[ShownTimestep]:
        """Yield one episode; its last picture is repeated to make it visible."""
        total = np.float32(0)
        over = False
        action = 0
        value = None
        state: tuple[NDArray[Any], ...] | None = None  # of a policy with a memory
        if self._returns is not None:
            self._returns.begin()
        while not over:
            observations: Any = self._stacks.all()
            if self._returns is not None:
                value = self._returns.after(observations)
            deterministic = self._run.deterministic
            actions, state = self._policy.predict(
                observations, state=state, deterministic=deterministic
            )
            action = int(actions[0])
            observation, reward, terminated, truncated, _ = self._env.step(action)
            self._stacks.turn()
            self._stacks.put(0, observation)
            over = terminated or truncated
            total = total + np.float32(reward)
            pictures = self._watched.take_pictures()
            yield ShownTimestep(pictures, self._names[action], float(total), value)
        end = [self._env.render()] * self._hold
        yield ShownTimestep(end, self._names[action], float(total), value)
