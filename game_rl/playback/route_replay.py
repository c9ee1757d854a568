"""Clips of the routes of an exploration: they are played again, and must end as they were found."""

from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

from game_rl.emulator.emulator import FRAMES_PER_SECOND, Emulator, RecordingEmulator, picture_frames
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.make_env import make_emulator, make_game_env
from game_rl.errors import ReplayError
from game_rl.explore.explore_dir import ExploreSettings
from game_rl.explore.route import Route, action_names
from game_rl.games.definition import Game
from game_rl.playback.clip import clip_writer, save_clip
from game_rl.playback.shown_episode import (
    OverlayItem,
    ShownEpisode,
    ShownTimestep,
    hold_pictures,
    in_a_row,
)
from game_rl.system.units import counted


def record_route(
    route: Route,
    game: Game,
    settings: ExploreSettings,
    output: Path,
    *,
    overlay: Collection[OverlayItem] = (),
) -> Path:
    """Write a clip of a route, which is played again, and return its path.

    Args:
        overlay: what is written below the screen; nobody says the value.

    Raises:
        UsageError: the suffix is neither .gif nor .mp4.
        ReplayError: the route does not lead where it led. Nothing is written.
    """
    clip_writer(output)
    frames = picture_frames(settings.env.frame_skip)
    episode = ShownEpisode(route.name, _timesteps(route, game, settings, frames))
    return save_clip(in_a_row([episode], overlay), frames / FRAMES_PER_SECOND, output)


def _timesteps(
    route: Route, game: Game, settings: ExploreSettings, frames: int
) -> Iterator[ShownTimestep]:
    watched = RecordingEmulator(make_emulator(game), picture_frames=frames)
    with closing(make_game_env(settings.env, game, cast("Emulator", watched), draws=True)) as env:
        env.reset(seed=settings.seed, options={"start_state": settings.start_state})
        watched.take_pictures()  # discards those of the idle frames
        total = 0.0
        name = ""
        for number, action in enumerate(route.actions):
            if not env.episode.running:
                raise _differs(route, f"the episode ends after {counted(number, 'timestep')}")
            _, reward, *_ = env.step(action)
            total += reward
            (name,) = action_names([action], game)
            yield ShownTimestep(watched.take_pictures(), name, total)
        _check(route, env, settings)
        yield ShownTimestep([env.render()] * hold_pictures(settings.env.frame_skip), name, total)


def _check(route: Route, env: GameBoyEnv, settings: ExploreSettings) -> None:
    """Raise ReplayError if the route has not led to its reward, or has not earned its term."""
    terms = env.reward_terms
    if route.term is not None and terms.get(route.term, 0.0) <= 0:
        raise _differs(route, f"it does not earn {route.term}")
    if route.cell is None or not settings.cell:
        return
    found = sum(terms.values())
    expected = route.cell.score.reward
    if found != expected:
        raise _differs(route, f"it earns {found:g}, and earned {expected:g}")


def _differs(route: Route, how: str) -> ReplayError:
    return ReplayError(
        f"route {route.name} does not replay as it was explored: {how}; nothing was written. The "
        "game file, game_rl or PyBoy has changed since then: explore again"
    )
