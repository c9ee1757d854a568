"""Where a new pool's states come from: the archive of an exploration, or another run's pool."""

from pathlib import Path

from game_rl.config.values import run_at
from game_rl.emulator.saved_state import unpack_state
from game_rl.errors import EmulatorError, UsageError
from game_rl.explore.archive import known_cells, states_of
from game_rl.explore.explore_dir import ExploreDir
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import parse_saved
from game_rl.games.definition import Game
from game_rl.pool.pool import POOL_FILE, NewState, SavedPool, spread

_KEY = "env.pool.from"


def new_states(source: str, game: Game, size: int) -> list[NewState]:
    """Return states from the place that `env.pool.from` names, at most `size`.

    Raises:
        UsageError: there are none, or they are of another ROM.
    """
    place = check_source(source, game)
    if isinstance(place, ExploreDir):
        found = _explored_states(place, size)
    else:
        found = spread(_states_of_run(place), size, progress=lambda each: each.progress)
    for each in found:
        try:
            unpack_state(each.state, rom_sha256=game.rom.sha256, is_colour=game.is_colour)
        except EmulatorError as error:
            raise UsageError(f"{_KEY}: a state of {source} cannot be used: {error}") from None
        if each.start_state not in game.definition.start_states:
            raise UsageError(
                f"{_KEY}: {source} has states from the start state {each.start_state}, which "
                f"{game.name} does not have; give the game file a start state of this name"
            )
    return found


def check_source(source: str, game: Game) -> ExploreDir | Path:
    """Return the exploration or the checkpoint that `env.pool.from` names; no state is read.

    Raises:
        UsageError: there is none, or it is of another ROM.
    """
    root, timesteps = run_at(source)
    explored = ExploreDir(root)
    if explored.exists():
        about = explored.read()
        if about.rom_sha256 != game.rom.sha256:
            raise UsageError(
                f"{_KEY}: {root} explores another ROM (sha256 {about.rom_sha256[:12]}…, that of "
                f"{game.name} is {game.rom.sha256[:12]}…); explore this game in another folder"
            )
        return explored
    run_dir = RunDir(root)
    newest = run_dir.checkpoints_newest_first()
    if not newest:
        there = "has neither explore.json nor checkpoints" if root.exists() else "does not exist"
        raise UsageError(
            f"{_KEY}: {root} {there}; name the folder that was given to game-rl explore as "
            "--output, or that of a run with env.pool"
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


def _states_of_run(checkpoint: Path) -> list[NewState]:
    file = checkpoint / POOL_FILE.name
    saved = parse_saved(SavedPool, file.read_bytes(), file, error=UsageError)
    return [
        NewState(each.state, each.start_state, each.reward, each.timesteps) for each in saved.states
    ]
