"""Build an environment from the `env` section of a run config."""

import functools
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from game_rl.config.custom_part import PartError
from game_rl.config.schema import EnvConfig, ObservationConfig
from game_rl.config.strict_model import Problem
from game_rl.emulator.emulator import Emulator
from game_rl.emulator.pyboy_emulator import PyBoyEmulator
from game_rl.envs.action_player import check_frame_skip
from game_rl.envs.custom_wrappers import GameEnv, WrappedEnv
from game_rl.envs.episode_limit import check_episode_limit
from game_rl.envs.episode_starts import chosen_start_states
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.observation import FrameFormat, ObservationFormat
from game_rl.errors import ConfigError
from game_rl.games.definition import CropSpec, Game


def make_emulator(game: Game) -> Emulator:
    return PyBoyEmulator(game.rom, colour=game.is_colour)


def make_env(
    config: EnvConfig, game: Game, emulator: Emulator | None = None, *, folder: Path | None = None
) -> GameEnv:
    """Return an environment in the person's own wrappers, which owns its emulator and closes it.

    Args:
        folder: folder in which modules of wrappers are looked for; None: the current one.

    Raises:
        ConfigError: the game's crop cannot be halved, or a wrapper cannot be used.
        UsageError: the game has no such start state, its actions do not fit into `frame_skip`
            frames, or its episodes would never end.
    """
    env = make_game_env(config, game, emulator)
    if not config.wrappers:
        return env
    try:
        return WrappedEnv(env, config.custom_wrappers, folder or Path.cwd())
    except BaseException:
        env.close()
        raise


def env_maker(config: EnvConfig, game: Game) -> Callable[[], GameEnv]:
    """Return a function that makes the env in another process, whatever its current folder."""
    if not config.wrappers:
        return functools.partial(make_env, config, game)
    return functools.partial(make_env, config, game, folder=Path.cwd())


def wrapper_problems(config: EnvConfig, game: Game) -> Iterator[Problem]:
    """Make an env, if it has wrappers, to find out whether they can be used; runs their code."""
    if not config.wrappers:
        return
    try:
        with closing(make_env(config, game)):
            pass
    except PartError as error:
        yield Problem(error.key, error.message)


def make_game_env(config: EnvConfig, game: Game, emulator: Emulator | None = None) -> GameBoyEnv:
    """As `make_env`, without the person's own wrappers."""
    return GameBoyEnv(
        make_emulator(game) if emulator is None else emulator,
        game,
        frame_skip=config.frame_skip,
        frame_format=_make_frame_format(config.observation, game),
        max_episode_timesteps=config.max_episode_timesteps,
        start_states=config.start_states,
        max_idle_frames=config.max_idle_frames,
        sticky_actions=config.sticky_actions,
    )


def check_env_config(config: EnvConfig, game: Game) -> None:
    """Check the config against the game without an emulator.

    Raises:
        ConfigError: the game's crop cannot be halved.
        UsageError: the game has no such start state or variable, its actions do not fit into
            `frame_skip` frames, or its episodes would never end.
    """
    make_observation_format(config, game)
    chosen_start_states(config.start_states, game)
    check_frame_skip(config.frame_skip, game)
    check_episode_limit(config.max_episode_timesteps, game)


def make_observation_format(config: EnvConfig, game: Game) -> ObservationFormat:
    """Return the format of the observations; needs no emulator.

    Raises:
        ConfigError: the game's crop cannot be halved.
    """
    return _stacked(config, _make_frame_format(config.observation, game))


def observation_format(
    config: EnvConfig, *, crop: CropSpec, four_shades: bool
) -> ObservationFormat:
    """Return the format of the observations of a game that has this crop and these colours."""
    return _stacked(config, _frame_format(config.observation, crop, four_shades=four_shades))


def _stacked(config: EnvConfig, frame: FrameFormat) -> ObservationFormat:
    return ObservationFormat(frame.packing, config.frame_stack)


def _make_frame_format(config: ObservationConfig, game: Game) -> FrameFormat:
    crop = game.definition.observation.crop
    if config.size == "half" and (crop.height % 2 or crop.width % 2):
        raise ConfigError(
            f"env.observation.size is half, but the crop of {game.name} is {crop.width} x "
            f"{crop.height}; make both even in its game.yaml or set env.observation.size=full"
        )
    return _frame_format(config, crop, four_shades=not game.is_colour)


def _frame_format(config: ObservationConfig, crop: CropSpec, *, four_shades: bool) -> FrameFormat:
    return FrameFormat(size=config.size, colour=config.colour, four_shades=four_shades, crop=crop)
