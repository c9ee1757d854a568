"""Recording clips of episodes as GIF or MP4."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, cast

from stable_baselines3.common.policies import BasePolicy

from game_rl.checkpoints.model_state import drawing_from
from game_rl.config.strict_model import with_changed
from game_rl.emulator.emulator import (
    FRAMES_PER_SECOND,
    Emulator,
    RecordingEmulator,
    picture_frames,
)
from game_rl.envs.custom_wrappers import GameEnv
from game_rl.envs.make_env import make_emulator, make_env, make_observation_format
from game_rl.playback.clip import Picture, clip_writer
from game_rl.playback.trained_run import TrainedRun
from game_rl.seeds import seed_for
from game_rl.vec_env.frame_stacks import frame_stack_of, new_stacks

_LAST_PICTURE_S = 1.0  # for which the end of an episode stays visible


def record_run(
    run: TrainedRun,
    *,
    episodes: int,
    output: Path,
    max_s: float | None = None,
    seed: int | None = None,
    start_states: Sequence[str] | None = None,
) -> Path:
    """Write a clip of `episodes` episodes, but of at most `max_s` seconds, and return its path.

    Args:
        seed: chooses the episodes; None: those of the run's own clip.
        start_states: in which episodes begin, drawn evenly; None: those of the config.

    Raises:
        UsageError: the suffix of `output` is neither .gif nor .mp4, or the game has no such start
            state.
    """
    write = clip_writer(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    frames = picture_frames(run.config.env.frame_skip)
    temporary = output.with_name(f".{output.name}.tmp")
    try:
        watched = RecordingEmulator(make_emulator(run.game), picture_frames=frames)
        if seed is None:
            seed = seed_for(run.config.seed, "recording")
        env_config = run.config.env
        if start_states is not None:
            env_config = with_changed(env_config, {("start_states",): tuple(start_states)})
        game, emulator = run.game, cast("Emulator", watched)
        with drawing_from(seed), closing(make_env(env_config, game, emulator, draws=True)) as env:
            played = _play(run, env, watched, episodes, seed=seed)
            pictures = islice(played, _most_pictures(max_s, frames))
            write(pictures, frames / FRAMES_PER_SECOND, temporary)
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)
    return output


def _most_pictures(max_s: float | None, picture_frames: int) -> int | None:
    return None if max_s is None else max(1, int(max_s * FRAMES_PER_SECOND / picture_frames))


def _play(
    run: TrainedRun,
    env: GameEnv,
    watched: RecordingEmulator,
    episodes: int,
    *,
    seed: int,
) -> Iterator[Picture]:
    """Yield all pictures of the episodes; the last of each is repeated to make it visible."""
    observation_format = make_observation_format(run.config.env, run.game)
    stacks = new_stacks(env.observation_space, frame_stack_of(observation_format))
    policy = run.policy(observation_format.space, env.action_space)
    hold = round(_LAST_PICTURE_S * FRAMES_PER_SECOND / picture_frames(run.config.env.frame_skip))
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed if episode == 0 else None)
        stacks.put(0, observation)
        stacks.begin_episode(0)
        watched.take_pictures()  # discards those of the idle frames
        over = False
        while not over:
            action = _act(policy, stacks.all(), deterministic=run.deterministic)
            observation, _, terminated, truncated, _ = env.step(action)
            stacks.turn()
            stacks.put(0, observation)
            over = terminated or truncated
            yield from watched.take_pictures()
        yield from [env.render()] * hold


def _act(policy: BasePolicy, observations: Any, *, deterministic: bool) -> int:  # noqa: ANN401
    actions, _ = policy.predict(observations, deterministic=deterministic)
    return int(actions[0])
