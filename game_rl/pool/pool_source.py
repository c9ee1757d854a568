"""Where a new pool's states come from: an exploration, a recorded episode, or another run."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from game_rl.config.pool_config import PoolConfig
from game_rl.config.schema import EnvConfig
from game_rl.config.values import run_at
from game_rl.emulator.emulator import Press
from game_rl.emulator.saved_state import unpack_state
from game_rl.envs.custom_wrappers import GameEnv
from game_rl.envs.make_env import innermost, make_game_env
from game_rl.errors import EmulatorError, GameFileError, UsageError
from game_rl.explore.archive import KnownRoute, known_cells, known_routes, states_of
from game_rl.explore.explore_dir import ExploreDir
from game_rl.files.pretrained import brought_episodes, is_packed_agent, run_name
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import parse_saved
from game_rl.game_check.recorded_episode import (
    RecordedEpisode,
    episode_config,
    read_recorded_episode,
    recorded_timesteps,
)
from game_rl.games.definition import Game, unknown_name
from game_rl.pool.pool import POOL_FILE, NewState, RoutePlace, SavedPool, spread

_KEY = "env.pool.from"
_PLAYED_FOR_ONE = 4  # moments of a recorded episode of which one is chosen


class RoutePoint(NamedTuple):
    """A moment of a route: the emulator's state, and the reward until then."""

    state: bytes
    reward: float


class PlayedRoute(NamedTuple):
    """What came of a route.

    Attributes:
        points: the moments that were asked for; fewer if the episode ends before.
        succeeds: whether it ends the episode with a success.
    """

    points: Sequence[RoutePoint]
    succeeds: bool


@dataclass(frozen=True)
class RoutePlay:
    """A route to play.

    Attributes:
        env, seed, options: the env, and the reset with which it begins.
        actions: index of the action of each timestep.
        presses: the buttons of each timestep, if those of a person were recorded; else empty.
        at: numbers of timesteps after which its moments are wanted.
    """

    env: EnvConfig
    seed: int
    options: Mapping[str, str | int]
    actions: Sequence[int]
    at: Sequence[int]
    presses: Sequence[Sequence[Press]] = ()


PlayRoute = Callable[[RoutePlay], PlayedRoute]


def played_route(env: GameEnv, route: RoutePlay) -> PlayedRoute:
    """Play a route in the process of `env`, which is left as it is."""
    wanted = set(route.at)
    points: dict[int, RoutePoint] = {}
    succeeds = False
    with closing(make_game_env(route.env, innermost(env).game)) as player:
        player.draws = False
        player.reset(seed=route.seed, options=dict(route.options))
        for timestep, action in enumerate(route.actions):
            if timestep in wanted:
                state = player.emulator.save_state(picture=False)
                points[timestep] = RoutePoint(state, sum(player.reward_terms.values()))
            if route.presses:
                player.player.instead = route.presses[timestep]
            _, _, terminated, truncated, info = player.step(action)
            if terminated or truncated:
                succeeds = bool(info.get("is_success", False))
                break
    return PlayedRoute([points[at] for at in route.at if at in points], succeeds)


def check_pool(settings: PoolConfig, game: Game) -> None:
    """Check what a config says of the pool, as far as no state must be read.

    Raises:
        UsageError: `from` names nothing, or states of another ROM, there is no route to go back
            along, or the game lacks the variable.
    """
    if settings.from_ is not None:
        place = _checked_source(settings, game)
        if settings.choose == "backward" and isinstance(place, ExploreDir):
            _chosen_routes(place, settings, game)
    if settings.save_on is not None and settings.save_on.new_maximum not in game.number_names:
        name = settings.save_on.new_maximum
        fault = f"{name} is an array, and a number is needed; count its bits, for instance"
        if name not in game.definition.variables:
            fault = unknown_name(name, "variable", game.number_names, of=game.name)
        raise UsageError(f"env.pool.save_on.new_maximum: {fault}")


def new_states(settings: PoolConfig, game: Game, play: PlayRoute) -> list[NewState]:
    """Return states from the place that `env.pool.from` names, as many as the pool may have.

    Raises:
        UsageError: there are none, or they are of another ROM.
    """
    place = _checked_source(settings, game)
    if isinstance(place, list):
        found = _recorded_states(place, settings, game, play)
    elif not isinstance(place, ExploreDir):
        found = _states_of_run(place, settings)
    elif settings.choose == "backward":
        found = _states_on_routes(place, settings, game, play)
    else:
        found = _explored_states(place, settings.size)
    if not found:
        raise UsageError(f"{_KEY}: {settings.from_} has no states yet; wait until it has some")
    for each in found:
        try:
            unpack_state(each.state, rom_sha256=game.rom.sha256, is_colour=game.is_colour)
        except EmulatorError as error:
            message = f"{_KEY}: a state of {settings.from_} cannot be used: {error}"
            raise UsageError(message) from None
        if each.start_state not in game.definition.start_states:
            raise UsageError(
                f"{_KEY}: {settings.from_} has states from the start state {each.start_state}, "
                f"which {game.name} does not have; give the game file a start state of this name"
            )
    return found


def recorded_files(path: Path) -> list[Path]:
    """Return the files that a path or a pattern such as mine/*.json names, or an agent brings.

    There are none for another folder.
    """
    if is_packed_agent(path):
        return brought_episodes(path)
    if path.is_file():
        return [path]
    if "*" not in path.name or path.exists():
        return []
    return sorted(each for each in path.parent.glob(path.name) if each.is_file())


def _checked_source(settings: PoolConfig, game: Game) -> ExploreDir | list[RecordedEpisode] | Path:
    """Return what `env.pool.from` names, a run as its checkpoint; no state is read."""
    assert settings.from_ is not None
    root, timesteps = run_at(settings.from_)
    if files := recorded_files(root):
        try:
            return [read_recorded_episode(file, game) for file in files]
        except GameFileError as error:
            raise UsageError(f"{_KEY}: {error}") from None
    explored = ExploreDir(root)
    if explored.exists():
        try:
            explored.read_of(game)
        except UsageError as error:
            raise UsageError(f"{_KEY}: {error}") from None
        return explored
    run_dir = RunDir(root)
    newest = run_dir.checkpoints_newest_first()
    if not newest:
        if not root.exists():
            raise UsageError(
                f"{_KEY}: {root} does not exist; make it with game-rl explore GAME --output "
                f"{quote(str(root))}, or name the folder of a run with env.pool"
            )
        raise UsageError(
            f"{_KEY}: {root} has neither explore.json nor checkpoints; name the folder that was "
            "given to game-rl explore as --output, or that of a run with env.pool"
        )
    if is_packed_agent(root):
        raise UsageError(
            f"{_KEY}: {run_name(root)} is an agent that was packed without recorded episodes; name "
            "the folder of an exploration (game-rl explore), or that of a run with env.pool"
        )
    checkpoint = newest[0] if timesteps is None else run_dir.checkpoint(timesteps)
    if not (checkpoint / POOL_FILE.name).is_file():
        raise UsageError(
            f"{_KEY}: {checkpoint} has no pool; name a run that has env.pool, or the folder of an "
            "exploration"
        )
    return checkpoint


def _explored_states(folder: ExploreDir, size: int) -> list[NewState]:
    chosen = spread(
        known_cells(folder.archive),
        size,
        progress=lambda each: (each.score.reward, each.score.timesteps),
    )
    chosen.sort(key=lambda each: (each.line, each.find))
    return [
        NewState(
            state=state.emulator,
            start_state=state.start_state,
            reward=cell.score.reward,
            timesteps=cell.score.timesteps,
        )
        for cell, state in zip(chosen, states_of(folder.archive, chosen), strict=True)
    ]


def _chosen_routes(folder: ExploreDir, settings: PoolConfig, game: Game) -> list[KnownRoute]:
    """Return as many routes as the pool has room for, at most those asked for."""
    backward = settings.backward
    most = 1 if backward.routes == "best" else backward.routes
    to_success = settings.goal == "success" and game.definition.success is not None
    routes = known_routes(folder.archive, most, to_success=to_success)
    if not routes and to_success:
        raise UsageError(
            f"{_KEY}: no route in {folder.root} ends in a success, so there is none to go back "
            "along; explore longer (game-rl explore --resume), or set env.pool.goal=reward"
        )
    needed = list(accumulate(len(_beginnings(route.actions, backward.step)) for route in routes))
    n_fitting = sum(size <= settings.size for size in needed)
    if routes and not n_fitting:
        whole = len(routes[0].actions)
        raise UsageError(
            f"env.pool.size: the best route of {folder.root} has {whole:,} timesteps and so "
            f"{needed[0]:,} states to start from, but the pool has room for {settings.size:,}; set "
            f"env.pool.size={needed[0]}, or env.pool.backward.step={-(-whole // settings.size)}"
        )
    return routes[:n_fitting]


def _beginnings(actions: Sequence[object], step: int) -> range:
    """Return the timesteps of a route at which episodes may begin, the last one first."""
    return range(max(len(actions) - step, 0), -1, -step)


def _states_on_routes(
    folder: ExploreDir, settings: PoolConfig, game: Game, play: PlayRoute
) -> list[NewState]:
    about = folder.read().settings
    found: list[NewState] = []
    for number, route in enumerate(_chosen_routes(folder, settings, game)):
        at = _beginnings(route.actions, settings.backward.step)
        options = {"start_state": about.start_state}
        points = play(RoutePlay(about.env, about.seed, options, route.actions, at)).points
        if len(points) < len(at):
            raise UsageError(
                f"{_KEY}: a route of {folder.root} can no longer be played: its episode ends "
                "before the route does, so the game file has changed; explore again"
            )
        for timestep, point in zip(at, points, strict=True):
            place = RoutePlace(route=number, left=len(route.actions) - timestep)
            found.append(NewState(point.state, about.start_state, point.reward, timestep, place))
    return found


def _recorded_states(
    episodes: Sequence[RecordedEpisode], settings: PoolConfig, game: Game, play: PlayRoute
) -> list[NewState]:
    """Return states along episodes: as those on routes, or chosen by `spread`."""
    step = settings.backward.step
    is_backward = settings.choose == "backward"
    to_success = settings.goal == "success" and game.definition.success is not None
    lengths = [len(recorded_timesteps(episode, game)) for episode in episodes]
    needed = sum(len(_beginnings(range(n), step)) for n in lengths)
    if is_backward and needed > settings.size:
        whole = sum(lengths)
        raise UsageError(
            f"env.pool.size: {settings.from_} has {whole:,} timesteps and so {needed:,} states to "
            f"start from, but the pool has room for {settings.size:,}; set env.pool.size={needed}, "
            f"or env.pool.backward.step={-(-whole // settings.size)}"
        )
    found: list[NewState] = []
    route = 0
    for episode, n in zip(episodes, lengths, strict=True):
        at: Sequence[int] = _beginnings(range(n), step)
        if not is_backward:
            n_played = min(n, -(-_PLAYED_FOR_ONE * settings.size // len(episodes)))
            at = [index * n // n_played for index in range(n_played)]
        played = play(_recorded_play(episode, game, at))
        if len(played.points) < len(at):
            raise UsageError(
                f"{_KEY}: an episode of {settings.from_} ends before its actions do, so it belongs "
                "to another game file; record it again"
            )
        if is_backward and to_success and not played.succeeds:
            continue
        for timestep, point in zip(at, played.points, strict=True):
            place = RoutePlace(route=route, left=n - timestep) if is_backward else None
            state = NewState(point.state, episode.start_state, point.reward, timestep, place)
            found.append(state)
        route += 1
    if not found:
        raise UsageError(
            f"{_KEY}: no episode of {settings.from_} ends in a success, so there is none to go "
            "back along; name another one, or set env.pool.goal=reward"
        )
    return found if is_backward else spread(found, settings.size, progress=_progress)


def _recorded_play(episode: RecordedEpisode, game: Game, at: Sequence[int]) -> RoutePlay:
    timesteps = recorded_timesteps(episode, game)
    indices = {name: index for index, name in enumerate(game.action_names)}
    return RoutePlay(
        episode_config(game, episode),
        episode.seed,
        episode.options,
        [indices[timestep.action] for timestep in timesteps],
        at,
        [timestep.presses for timestep in timesteps if timestep.presses is not None],
    )


def _progress(state: NewState) -> tuple[float, int]:
    return state.progress


def _states_of_run(checkpoint: Path, settings: PoolConfig) -> list[NewState]:
    file = checkpoint / POOL_FILE.name
    saved = parse_saved(SavedPool, file.read_bytes(), file, error=UsageError)
    states = [
        NewState(each.state, each.start_state, each.reward, each.timesteps, each.place)
        for each in saved.states
    ]
    if settings.choose != "backward":
        return spread(states, settings.size, progress=_progress)
    on_routes = [each for each in states if each.place is not None]
    if not on_routes or len(on_routes) > settings.size:
        raise UsageError(
            f"{_KEY}: the pool of {checkpoint} has {len(on_routes):,} states on routes, but "
            f"choose: backward needs at least one and at most env.pool.size ({settings.size:,}); "
            "name the folder of an exploration, or another size"
        )
    return on_routes
