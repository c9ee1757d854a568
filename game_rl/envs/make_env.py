"""Build an environment from the `env` section of a run config."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

import gymnasium

from game_rl.config.custom_part import PartError
from game_rl.config.schema import EnvConfig
from game_rl.config.strict_model import Problem
from game_rl.emulator.emulator import Emulator
from game_rl.envs.action_player import ActionPlayer, check_frame_skip
from game_rl.envs.custom_wrappers import GameEnv, WrappedEnv
from game_rl.envs.episode_ends import EpisodeConditions, EpisodeLimit, check_episode_limit
from game_rl.envs.episode_progress import MilestoneWatch, RepetitionGuard
from game_rl.envs.episode_reward import EpisodeReward
from game_rl.envs.episode_starts import EpisodeStarts, chosen_start_states
from game_rl.envs.episode_tracker import EnvParts, EpisodeTracker, TrackerMaker
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.observation import FrameFormat, ObservationFormat
from game_rl.envs.observer import Observer
from game_rl.errors import ConfigError, UsageError
from game_rl.games.custom_reward import ACTION, MEMORY, SCREEN_ARGUMENT, GameMemory
from game_rl.games.definition import Game, unknown_name
from game_rl.games.parts.part_format import PartFormat
from game_rl.games.potential import PotentialTerm
from game_rl.games.reward_term import RewardTerm
from game_rl.games.screen_area import CropSpec

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
    trackers: Sequence[TrackerMaker] = (),
) -> GameEnv:
    """Return an environment in custom wrappers, which owns its emulator and closes it.

    Args:
        folder: folder in which modules of wrappers are looked for; None: the current one.
        draws: whether frames are drawn though no observation has the screen, for clips.
        trackers: what else follows the episodes.

    Raises:
        ConfigError: the game's crop cannot be halved, a part is unknown, or a wrapper cannot be
            used.
        UsageError: the game has no such start state, its actions do not fit into `frame_skip`
            frames, or its episodes would never end.
    """
    env = make_game_env(config, game, emulator, draws=draws, trackers=trackers)
    if not config.wrappers:
        return env
    try:
        return WrappedEnv(env, config.custom_wrappers, folder or Path.cwd())
    except BaseException:
        env.close()
        raise


def env_maker(
    config: EnvConfig, game: Game, trackers: Sequence[TrackerMaker] = ()
) -> Callable[[], GameEnv]:
    """Return a function that makes the env in another process, whatever its current folder."""
    make = functools.partial(make_env, config, game, trackers=trackers)
    return functools.partial(make, folder=Path.cwd()) if config.wrappers else make


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
    trackers: Sequence[TrackerMaker] = (),
) -> GameBoyEnv:
    """As `make_env`, without custom wrappers."""
    make_observation_format(config, game)
    crop = game.definition.observation.crop
    frame_format = _frame_format(config, crop, four_shades=not game.is_colour)
    parts = EnvParts(config, game, make_emulator(game) if emulator is None else emulator)
    return game_env(parts, frame_format, draws=draws, trackers=trackers)


def game_env(
    parts: EnvParts,
    frame_format: FrameFormat | None,
    *,
    draws: bool = False,
    trackers: Sequence[TrackerMaker] = (),
) -> GameBoyEnv:
    """Return an env with the trackers that each has, in the order in which they follow an episode.

    Args:
        parts: the emulator was just switched on, and has the game's cartridge; the env owns it.
        frame_format: format of the screen in observations; None if they have parts only.
    """
    config = parts.config
    game = parts.game
    emulator = parts.emulator
    definition = game.definition
    starts = EpisodeStarts(emulator, game, config)
    limit = EpisodeLimit(config.max_episode_timesteps, game, emulator)
    player = ActionPlayer(emulator, game, config.frame_skip, config.sticky_actions)
    terms = game.rewards_of(config)
    potentials = dict(_potential_terms(parts, terms))
    reward = _reward_of(parts, player, terms, potentials)
    conditions = EpisodeConditions(
        definition.endings,
        definition.success,
        definition.place or (),
        reward.endings if reward.has_endings else None,
    )
    observer = Observer(emulator, game, frame_format, config.observation.parts, reward.parts)
    more = (make(parts) for make in trackers)
    every: list[EpisodeTracker] = [
        reward,
        conditions,
        limit,
        observer,
        RepetitionGuard(definition, loopless=potentials),
        MilestoneWatch(definition.milestones, definition.place or ()),
        *(tracker for tracker in more if tracker is not None),
    ]
    draws = draws or frame_format is not None or reward.needs_screen
    return GameBoyEnv(game, starts, player, observer.format, every, draws=draws)


def _reward_of(
    parts: EnvParts,
    player: ActionPlayer,
    terms: Mapping[str, RewardTerm],
    potentials: Mapping[str, PotentialTerm],
) -> EpisodeReward:
    """Return the game's rewards; the methods of its own reward class may take what is named."""
    emulator = parts.emulator
    definition = parts.game.definition
    memory = GameMemory(emulator)
    names = parts.game.action_names
    custom = parts.game.custom_reward(
        {
            SCREEN_ARGUMENT: lambda: emulator.screen().copy(),
            MEMORY: lambda: memory,
            ACTION: lambda: names[player.played],
        }
    )
    makes = definition.custom_part_names(parts.config.observation.parts)
    known = definition.variables
    return EpisodeReward(terms, custom, makes, known=known, potentials=potentials)


def _potential_terms(
    parts: EnvParts, terms: Mapping[str, RewardTerm]
) -> Iterator[tuple[str, PotentialTerm]]:
    for name, term in terms.items():
        if term.potential is None:
            continue
        potential = parts.game.potentials.get(name)
        if potential is None:
            raise UsageError(
                f"reward term {name} needs the distances that {term.potential} has found, which "
                "are not loaded here; make the env with game_rl.make_env or game_rl.make_vec_env"
            )
        yield name, PotentialTerm(term, potential, parts.config.frame_skip)


def check_env_config(config: EnvConfig, game: Game) -> None:
    """Check the config against the game without an emulator.

    Raises:
        ConfigError: the game's crop cannot be halved, or it has no such part of an observation, or
            it has a reward term that the config adds.
        UsageError: the game has no such start state or variable, its actions do not fit into
            `frame_skip` frames, or its episodes would never end.
    """
    make_observation_format(config, game)
    chosen_start_states(config.start_states, game)
    for name in config.rewards:
        if name in game.definition.rewards:
            raise ConfigError(
                f"env.rewards.{name}: {game.name} has a reward term of that name; choose another"
            )
    check_frame_skip(config.frame_skip, game)
    check_episode_limit(config.max_episode_timesteps, game)


def make_observation_format(config: EnvConfig, game: Game) -> ObservationFormat:
    """Return the format of the observations; needs no emulator.

    Raises:
        ConfigError: the game's crop cannot be halved, or it has no such part.
    """
    seen = config.observation
    crop = game.definition.observation.crop
    if seen.screen and seen.size == "half" and (crop.height % 2 or crop.width % 2):
        raise ConfigError(
            f"env.observation.size is half, but the crop of {game.name} is {crop.width} x "
            f"{crop.height}; make both even in its game.yaml or set env.observation.size=full"
        )
    parts = game.definition.part_formats()
    four_shades = not game.is_colour
    return observation_format(config, crop=crop, four_shades=four_shades, parts=parts, of=game.name)


def observation_format(
    config: EnvConfig,
    *,
    crop: CropSpec,
    four_shades: bool,
    parts: Mapping[str, PartFormat] = _NO_PARTS,
    of: str = "the game",
) -> ObservationFormat:
    """Return the format of the observations `of` a game that has this crop, colours and parts.

    Raises:
        ConfigError: the game has no such part.
    """
    names = sorted(config.observation.parts)
    for name in config.observation.parts:
        if name not in parts:
            raise ConfigError(
                f"env.observation.parts: {unknown_name(name, 'part', parts, of=of)}; parts are "
                "under `parts` in game.yaml"
            )
    frame = _frame_format(config, crop, four_shades=four_shades)
    packing = None if frame is None else frame.packing
    chosen = tuple((name, parts[name]) for name in names)
    return ObservationFormat(packing, config.frame_stack, chosen)


def _frame_format(config: EnvConfig, crop: CropSpec, *, four_shades: bool) -> FrameFormat | None:
    seen = config.observation
    if not seen.screen:
        return None
    return FrameFormat(size=seen.size, colour=seen.colour, four_shades=four_shades, crop=crop)
