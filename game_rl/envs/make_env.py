"""Build an environment from the `env` section of a run config."""

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

import gymnasium

from game_rl.config.custom_part import PartError
from game_rl.config.schema import EnvConfig, ObservationConfig
from game_rl.config.strict_model import Problem
from game_rl.emulator.emulator import Emulator
from game_rl.envs.action_player import check_frame_skip
from game_rl.envs.custom_wrappers import GameEnv, WrappedEnv
from game_rl.envs.episode_limit import check_episode_limit
from game_rl.envs.episode_starts import chosen_start_states
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.observation import FrameFormat, ObservationFormat
from game_rl.errors import ConfigError
from game_rl.games.definition import CropSpec, Game, unknown_name
from game_rl.games.parts.episode_parts import part_formats
from game_rl.games.parts.part_format import PartFormat

_NO_PARTS: Mapping[str, PartFormat] = MappingProxyType({})


def make_emulator(game: Game) -> Emulator:
    from game_rl.emulator.pyboy_emulator import PyBoyEmulator  # mistakes are found without PyBoy

    return PyBoyEmulator(game.rom, colour=game.is_colour)


def make_env(
    config: EnvConfig,
    game: Game,
    emulator: Emulator | None = None,
    *,
    folder: Path | None = None,
    draws: bool = False,
    counts_places: bool = False,
    logs: bool = False,
) -> GameEnv:
    """Return an environment in custom wrappers, which owns its emulator and closes it.

    Args:
        folder: folder in which modules of wrappers are looked for; None: the current one.
        draws: whether frames are drawn though no observation has the screen, for clips.
        counts_places: whether `GameBoyEnv.count_places` is called.
        logs: whether the env notes each episode; see `button_log`.

    Raises:
        ConfigError: the game's crop cannot be halved, a part is unknown, or a wrapper cannot be
            used.
        UsageError: the game has no such start state, its actions do not fit into `frame_skip`
            frames, or its episodes would never end.
    """
    env = make_game_env(config, game, emulator, draws=draws, counts_places=counts_places, logs=logs)
    if not config.wrappers:
        return env
    try:
        return WrappedEnv(env, config.custom_wrappers, folder or Path.cwd())
    except BaseException:
        env.close()
        raise


def env_maker(
    config: EnvConfig,
    game: Game,
    *,
    counts_places: bool = False,
    logs: bool = False,
    tells_variables: bool = False,
) -> Callable[[], GameEnv]:
    """Return a function that makes the env in another process, whatever its current folder."""
    make = functools.partial(make_env, config, game, counts_places=counts_places, logs=logs)
    if config.wrappers:
        make = functools.partial(make, folder=Path.cwd())
    return functools.partial(_telling, make) if tells_variables else make


def _telling(make: Callable[[], GameEnv]) -> GameEnv:
    env = make()
    innermost(env).tell_variables()
    return env


def innermost(env: gymnasium.Env[Any, Any]) -> GameBoyEnv:
    """Return the game's own env in any number of wrappers."""
    found = env.unwrapped
    assert isinstance(found, GameBoyEnv)
    return found


def wrapper_problems(config: EnvConfig, game: Game) -> Iterator[Problem]:
    """Make an env, if it has wrappers, to find out whether they can be used; runs their code."""
    if not config.wrappers:
        return
    try:
        with closing(make_env(config, game)):
            pass
    except PartError as error:
        yield Problem(error.key, error.message)


def make_game_env(
    config: EnvConfig,
    game: Game,
    emulator: Emulator | None = None,
    *,
    draws: bool = False,
    counts_places: bool = False,
    logs: bool = False,
) -> GameBoyEnv:
    """As `make_env`, without custom wrappers."""
    seen = config.observation
    _chosen(seen, part_formats(game.definition), of=game.name)
    env = GameBoyEnv(
        make_emulator(game) if emulator is None else emulator,
        game,
        frame_skip=config.frame_skip,
        frame_format=_make_frame_format(seen, game) if seen.screen else None,
        parts=seen.parts,
        max_episode_timesteps=config.max_episode_timesteps,
        start_states=config.start_states,
        max_idle_frames=config.max_idle_frames,
        sticky_actions=config.sticky_actions,
    )
    if counts_places:
        env.count_places()
    if logs:
        env.log_episodes()
    env.draws = env.draws or draws
    return env


def check_env_config(config: EnvConfig, game: Game) -> None:
    """Check the config against the game without an emulator.

    Raises:
        ConfigError: the game's crop cannot be halved, or it has no such part of an observation.
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
        ConfigError: the game's crop cannot be halved, or it has no such part.
    """
    seen = config.observation
    frame = _make_frame_format(seen, game) if seen.screen else None
    return _stacked(config, frame, _chosen(seen, part_formats(game.definition), of=game.name))


def observation_format(
    config: EnvConfig,
    *,
    crop: CropSpec,
    four_shades: bool,
    parts: Mapping[str, PartFormat] = _NO_PARTS,
) -> ObservationFormat:
    """Return the format of the observations of a game that has this crop, colours and parts.

    Raises:
        ConfigError: the game has no such part.
    """
    seen = config.observation
    frame = _frame_format(seen, crop, four_shades=four_shades) if seen.screen else None
    return _stacked(config, frame, _chosen(seen, parts, of="the game"))


def _stacked(
    config: EnvConfig, frame: FrameFormat | None, parts: Mapping[str, PartFormat]
) -> ObservationFormat:
    packing = None if frame is None else frame.packing
    return ObservationFormat(packing, config.frame_stack, tuple(parts.items()))


def _chosen(
    config: ObservationConfig, parts: Mapping[str, PartFormat], *, of: str
) -> Mapping[str, PartFormat]:
    """Return the parts that observations have, sorted by name."""
    for name in config.parts:
        if name not in parts:
            raise ConfigError(
                f"env.observation.parts: {unknown_name(name, 'part', parts, of=of)}; parts are "
                "under `parts` in game.yaml"
            )
    return {name: parts[name] for name in sorted(config.parts)}


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
