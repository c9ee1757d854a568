"""Measure how many bytes of disk a timestep takes in a Lake, by writing one of random play."""

import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np

from game_rl.config.schema import RunConfig
from game_rl.envs.make_env import make_env, make_frame_format
from game_rl.games.definition import Game
from game_rl.lake.lake import Lake
from game_rl.lake.lake_schema import lake_schema
from game_rl.lake.origin import origin_of, write_origin
from game_rl.lake.writer import LakeWriter
from game_rl.preflight.facts import MeasuredLake
from game_rl.seeds import seed_for

_MOST_FRAMES = 24_000  # of the emulator; takes as many seconds as `probe_episodes`
_LEAST_TIMESTEPS, _MOST_TIMESTEPS = 200, 4_000
_STREAM = "probe"


def probe_lake(config: RunConfig, game: Game, *, most_frames: int = _MOST_FRAMES) -> MeasuredLake:
    """Play in this process and write a Lake into a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        view = write_random_play(config, game, Path(folder), most_frames=most_frames).view()
    timesteps = sum(segment.n_transitions for segment in view.segments)
    return MeasuredLake(timesteps, sum(each.n_bytes for each in view.segments) / timesteps)


def write_random_play(
    config: RunConfig, game: Game, folder: Path, *, most_frames: int = _MOST_FRAMES
) -> Lake:
    """Write a Lake of one emulator's random play, which follows from the run's seed."""
    timesteps = max(_LEAST_TIMESTEPS, min(_MOST_TIMESTEPS, most_frames // config.env.frame_skip))
    n_actions = len(game.action_names)
    packing = make_frame_format(config.env.observation, game).packing
    schema = lake_schema(packing, frame_stack=config.env.frame_stack, n_actions=n_actions)
    seed = seed_for(config.seed, "lake_probe")
    actions = np.random.default_rng(seed).integers(n_actions, size=timesteps)
    lake = Lake.create(folder, schema)
    write_origin(folder, _STREAM, origin_of(config, game))
    with (
        closing(make_env(config.env, game)) as env,
        LakeWriter(lake, _STREAM, n_envs=1) as writer,
    ):
        writer.begin(env.reset(seed=seed)[0][None])
        for action in actions.tolist():
            frame, reward, terminated, truncated, _ = env.step(action)
            writer.append(
                actions=np.array([action]),
                rewards=np.array([reward]),
                terminated=np.array([terminated]),
                truncated=np.array([truncated]),
                next_frames=frame[None],
            )
            if terminated or truncated:
                writer.begin(env.reset()[0][None])
    return lake
