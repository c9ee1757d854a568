"""Random play, without torch: the lengths of episodes and the bytes of a timestep in a Lake."""

import tempfile
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from game_rl.config.schema import RunConfig
from game_rl.envs.action_player import WAITED_FRAMES
from game_rl.envs.custom_wrappers import GameEnv
from game_rl.envs.make_env import make_env, make_observation_format
from game_rl.envs.observation import Observation
from game_rl.errors import LakeError
from game_rl.explore.potentials import with_potentials
from game_rl.files.run_dir import RunDir
from game_rl.game_check.env_checks import check_reward
from game_rl.games.definition import Game
from game_rl.lake.block import BlockEncoder, decode
from game_rl.lake.lake import Lake
from game_rl.lake.lake_feed import lake_path
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.origin import origin_of, write_origin
from game_rl.lake.segment import SEALED, scan
from game_rl.lake.writer import LakeWriter
from game_rl.preflight.facts import EpisodeLengths, LevelCost, MeasuredLake
from game_rl.seeds import seed_for
from game_rl.vec_env.frame_stacks import each_part

_MOST_FRAMES = 20_000  # takes seconds, even with a ROM that never halts; 5 1/2 minutes of the game


def probe_episodes(
    config: RunConfig, game: Game, *, episodes: int = 10, most_frames: int = _MOST_FRAMES
) -> EpisodeLengths:
    """Play up to `episodes` episodes in this process; the run's seed makes them repeatable.

    All episodes together take at most `most_frames` emulator frames. An episode that this limit
    cuts short counts only if it is the first one.
    """
    seed = seed_for(config.seed, "probe")
    rng = np.random.default_rng(seed)
    left = max(most_frames // config.env.frame_skip, 1)
    played: list[int] = []
    with closing(make_env(config.env, with_potentials(game, config.env))) as env:
        env.reset(seed=seed)
        while left > 0 and len(played) < episodes:
            timesteps, used, is_over = _play(
                env, game, rng, most_timesteps=left, frame_skip=config.env.frame_skip
            )
            left -= used
            if is_over or not played:
                played.append(timesteps)
            env.reset()
    return EpisodeLengths(tuple(played))


def _play(
    env: GameEnv,
    game: Game,
    rng: np.random.Generator,
    *,
    most_timesteps: int,
    frame_skip: int,
) -> tuple[int, int, bool]:
    """Play with random buttons in an env that was reset.

    Args:
        most_timesteps: limit, for which frames that the game's `step` adds count as timesteps.

    Returns:
        Timesteps, the same with those frames, and whether the episode ended.
    """
    timesteps = used = waited = 0
    while used < most_timesteps:
        action = int(rng.integers(len(game.action_names)))
        _, _, terminated, truncated, info = env.step(action)
        timesteps = timesteps + 1
        waited = waited + info.get(WAITED_FRAMES, 0)
        used = timesteps + waited // frame_skip
        if terminated or truncated:
            return timesteps, used, True
        if timesteps.bit_count() == 1:  # early, and again as its state grows
            check_reward(env)
    return timesteps, used, False


_MOST_LAKE_FRAMES = 24_000  # of the emulator; takes as many seconds as `probe_episodes`
_FEW_LAKE_FRAMES = 8_000  # before each training
_MOST_BLOCKS = 16  # for each level: 19 takes a second for them
LEVELS = (1, 3, 6, 9, 12, 15, 19)
"""Compression levels to compare."""
_LEAST_TIMESTEPS = 200
_MOST_TIMESTEPS = 4_000
_STREAM = "probe"


def probe_lake(
    config: RunConfig,
    game: Game,
    *,
    most_frames: int = _MOST_LAKE_FRAMES,
    levels: Sequence[int] = (),
) -> MeasuredLake:
    """Play in this process and write a Lake into a temporary folder.

    Args:
        levels: compression levels to measure as well.
    """
    with tempfile.TemporaryDirectory() as folder:
        lake = write_random_play(config, game, Path(folder), most_frames=most_frames)
        return replace(_measured(lake), levels=_costs(lake, levels))


def _costs(lake: Lake, levels: Sequence[int]) -> tuple[LevelCost, ...]:
    """Compress the Lake's first blocks again at each level, and measure bytes and seconds."""
    if not levels:
        return ()
    found = (data for file in lake.files(SEALED) for data in scan(file))
    blocks = [decode(data, lake.schema) for data in islice(found, _MOST_BLOCKS)]
    timesteps = sum(len(block.columns.rows) for block in blocks)
    costs = []
    for level in levels:
        encoder = BlockEncoder(replace(lake.schema, level=level))
        begun = time.thread_time()
        n_bytes = sum(len(encoder.encode(block)) for block in blocks)
        seconds = time.thread_time() - begun
        costs.append(LevelCost(level, n_bytes / timesteps, 10**6 * seconds / timesteps))
    return tuple(costs)


def measured_lake(config: RunConfig, game: Game) -> MeasuredLake | None:
    """Measure the size of a timestep in the run's Lake, within seconds; None if it writes none.

    It is that of the timesteps that the Lake has, or else that of random play.
    """
    if config.lake is None:
        return None
    with suppress(LakeError):
        found = _measured(Lake.open(lake_path(config.lake, RunDir(config.run_dir))))
        if found.timesteps >= _LEAST_TIMESTEPS:
            return found
    return probe_lake(config, game, most_frames=_FEW_LAKE_FRAMES)


def _measured(lake: Lake) -> MeasuredLake:
    segments = lake.view().segments
    timesteps = sum(segment.n_transitions for segment in segments)
    return MeasuredLake(timesteps, sum(each.n_bytes for each in segments) / max(1, timesteps))


def write_random_play(
    config: RunConfig, game: Game, folder: Path, *, most_frames: int = _MOST_LAKE_FRAMES
) -> Lake:
    """Write a Lake of one emulator's random play, which follows from the run's seed."""
    timesteps = max(_LEAST_TIMESTEPS, min(_MOST_TIMESTEPS, most_frames // config.env.frame_skip))
    n_actions = len(game.action_names)
    schema = LakeSchema.of(
        make_observation_format(config.env, game),
        n_actions=n_actions,
        level=9 if config.lake is None else config.lake.compression_level,
    )
    seed = seed_for(config.seed, "lake_probe")
    actions = np.random.default_rng(seed).integers(n_actions, size=timesteps)
    lake = Lake.create(folder, schema)
    write_origin(folder, _STREAM, origin_of(config, game))
    with (
        closing(make_env(config.env, with_potentials(game, config.env))) as env,
        LakeWriter(lake, _STREAM, n_envs=1) as writer,
    ):
        frame, _ = env.reset(seed=seed)
        waited = 0
        for played, action in enumerate(actions.tolist(), start=1):
            next_frame, reward, terminated, truncated, info = env.step(action)
            writer.append(
                frames=_batch_of_one(frame),
                actions=np.array([action]),
                rewards=np.array([reward]),
                next_frames=_batch_of_one(next_frame),
                terminated=np.array([terminated]),
                truncated=np.array([truncated]),
            )
            frame = env.reset()[0] if terminated or truncated else next_frame
            waited += info.get(WAITED_FRAMES, 0)
            if played >= _LEAST_TIMESTEPS and (
                played * config.env.frame_skip + waited >= most_frames
            ):
                break
    return lake


def _batch_of_one(frame: Observation) -> Any:  # noqa: ANN401
    return each_part(lambda array: array[None], frame)
