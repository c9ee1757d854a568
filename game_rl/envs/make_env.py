"""Build an environment from the `env` section of a run config."""

from game_rl.config.schema import EnvConfig, ObservationConfig
from game_rl.emulator.emulator import Emulator
from game_rl.emulator.pyboy_emulator import PyBoyEmulator
from game_rl.envs.episode_starts import chosen_start_states
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.observation import FrameFormat, ObservationFormat
from game_rl.errors import ConfigError
from game_rl.games.definition import CropSpec, Game


def make_emulator(game: Game) -> Emulator:
    return PyBoyEmulator(game.rom, colour=game.is_colour)


def make_env(config: EnvConfig, game: Game, emulator: Emulator | None = None) -> GameBoyEnv:
    """Return an environment, which owns its emulator and closes it.

    Raises:
        ConfigError: the game's crop cannot be halved.
        UsageError: the game has no such start state, or its episodes would never end.
    """
    return GameBoyEnv(
        make_emulator(game) if emulator is None else emulator,
        game,
        frame_skip=config.frame_skip,
        frame_format=_make_frame_format(config.observation, game),
        max_episode_timesteps=config.max_episode_timesteps,
        start_states=config.start_states,
        max_idle_frames=config.max_idle_frames,
    )


def check_env_config(config: EnvConfig, game: Game) -> None:
    """Check the config against the game without an emulator.

    Raises:
        ConfigError: the game's crop cannot be halved.
        UsageError: the game has no such start state.
    """
    make_observation_format(config, game)
    chosen_start_states(config.start_states, game)


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
