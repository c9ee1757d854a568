"""`game-rl explore`."""

import argparse
import errno
import os
import re
from collections.abc import Collection
from contextlib import closing, suppress
from pathlib import Path
from shlex import quote

from game_rl.cli.arguments import game_word, not_negative, positive
from game_rl.cli.outputs import add_output_folder
from game_rl.cli.printing import PROGRESS, add_json, print_notes, print_result, print_words, working
from game_rl.config.bundled_configs import find_config
from game_rl.config.loader import game_path, load_config
from game_rl.config.schema import EnvConfig
from game_rl.emulator.rom import read_rom
from game_rl.errors import DoesNotFitError, TrainingError, UsageError, system_fault
from game_rl.explore.archive import Archive
from game_rl.explore.exploration import Exploration
from game_rl.explore.exploration_view import CellPlaces, CoarsePlace
from game_rl.explore.explore_dir import ExploreDir, ExploreSettings, SavedExploration
from game_rl.explore.explore_forecast import ExploreForecast, Taken, forecast_of
from game_rl.explore.exploring_processes import ExploringProcesses
from game_rl.explore.route import explored_game, find_route
from game_rl.explore.trip import Explorer
from game_rl.files.durable_files import write_atomic, write_saved
from game_rl.games.actions import least_frame_skip
from game_rl.games.cell import CoarseVariable
from game_rl.games.definition import Game, bundled_games, load_game, unknown_name
from game_rl.games.starter import write_starter
from game_rl.system.machine import disk_free_bytes, effective_cpus, effective_ram_bytes
from game_rl.system.process_memory import process_tree_memory
from game_rl.system.stop_request import StopRequest, stopping_on_signals
from game_rl.system.units import GIB, counted, format_bytes, format_duration, parse_bytes

_TRIPS = 16
_TRIP_TIMESTEPS = 100
_DRAWN_EVERY_FRAMES = 40  # on average, a button, which may be the same again
_FRAME_SKIP = 8  # where no config says: finer timesteps take longer to get as far
_USUAL_MINUTES = 10
_USUAL_STATES = 2 * GIB
_TELL_EVERY_S = 10.0
_LONGEST = 1_000_000  # timesteps of an episode, as in check-game
_DRAW_EVERY_S = 60.0
_STOP_WITHIN_S = 30.0
_MENU_S = 60  # to find the way into play of a ROM without a game file


def add_explore(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_explore)
    parser.add_argument(
        "game",
        nargs="?",
        type=game_word,
        metavar="GAME|CONFIG|ROM",
        help="name of a bundled game, a game.yaml or its folder, a config, whose env counts, "
        "or a ROM, where each new picture is a cell",
    )
    add_output_folder(
        parser,
        "--output",
        default=Path("explored"),
        text="folder for the archive (default: explored)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="continue the exploration in --output"
    )
    limits = parser.add_mutually_exclusive_group()
    limits.add_argument(
        "--minutes",
        type=positive,
        metavar="N",
        help=f"time to explore (default: {_USUAL_MINUTES}); Ctrl-C ends it after the round",
    )
    limits.add_argument(
        "--timesteps", type=positive, metavar="N", help="timesteps to play, instead of a time"
    )
    parser.add_argument(
        "--start-state",
        metavar="NAME",
        help="start state to explore from (default: the config's first one, or the game's)",
    )
    parser.add_argument(
        "--cell",
        nargs="+",
        metavar="NAME[/PER]",
        help="variables of a cell, instead of those in game.yaml, such as room player_x/16: with "
        "/16, the values 0 to 15 are the same, 16 to 31, and so on",
    )
    parser.add_argument(
        "--seed", type=not_negative, metavar="N", help="seed of the random buttons (default: 0)"
    )
    parser.add_argument(
        "--processes",
        type=positive,
        metavar="N",
        help="processes that play at once; the number has no effect on what is found (default: "
        "one for each CPU)",
    )
    parser.add_argument(
        "--states",
        type=parse_bytes,
        metavar="SIZE",
        help="memory for the states of cells, such as 500MiB; above it, states that led to "
        f"nothing are dropped (default: {format_bytes(_USUAL_STATES)})",
    )
    parser.add_argument(
        "--keep",
        type=not_negative,
        metavar="CELL",
        help="do not explore, but save the state of the cell with this number on the sheet as a "
        "start state of the game; needs --name",
    )
    parser.add_argument(
        "--name",
        metavar="NAME",
        help="name of the start state that --keep saves; the file is NAME.state",
    )
    add_json(parser)


def _explore(arguments: argparse.Namespace) -> int:
    folder = ExploreDir(arguments.output)
    if (arguments.keep is None) != (arguments.name is None):
        raise UsageError("--keep CELL and --name NAME go together: give both, or none")
    if arguments.keep is not None:
        return _keep(arguments, folder)
    others = [path for path in folder.root.glob("*") if path.name != "lock"]
    if others and not folder.exists():
        raise UsageError(
            f"--output {folder.root} is not empty and has no exploration; name a new folder"
        )
    game, settings, saved = _what_to_explore(arguments, folder)
    with folder.locked():
        if saved is not None:
            _refuse_explored(folder)
            write_saved(folder.saved, saved)
        exploration = Exploration(folder, game, settings)
        stop = StopRequest(
            _STOP_WITHIN_S,
            ending="the exploration ends after this round, which is saved, or in "
            f"{_STOP_WITHIN_S:g} s without it",
        )
        n_processes = arguments.processes or effective_cpus()
        try:
            with (
                stopping_on_signals(stop, lambda text: print_words(PROGRESS, text)),
                ExploringProcesses(game, settings, n_processes) as explorers,
            ):
                forecast = _forecast(arguments, exploration, explorers, n_processes)
                print_words(PROGRESS, forecast.in_words)
                _check_forecast(arguments, forecast, exploration)
                _explore_until(arguments, exploration, explorers, stop)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise TrainingError(
                f"{system_fault(error, folder.root)}; all rounds up to this one are saved. Free "
                f"some space, then continue with {_way_on(folder)}"
            ) from None
    _print_found(arguments, exploration, folder)
    if stop.reason is not None:
        raise stop.interrupted("stopped; all rounds are saved")
    return 0


_NOT_TO_KEEP = (
    "game",
    "minutes",
    "timesteps",
    "start_state",
    "cell",
    "seed",
    "processes",
    "states",
)


def _keep(arguments: argparse.Namespace, folder: ExploreDir) -> int:
    """Write a cell's state as a file for `start_states`, and say what to write into game.yaml."""
    for option in _NOT_TO_KEEP:
        if getattr(arguments, option) is not None:
            word = option.replace("_", "-")
            raise UsageError(f"--keep explores nothing, so {word} has no effect; leave it out")
    game, settings = explored_game(folder)
    name: str = arguments.name
    if re.fullmatch(r"\w[\w-]*", name) is None:
        raise UsageError(f"--name {name}: write letters, digits, _ and -, such as second_room")
    if name in game.definition.start_states:
        raise UsageError(f"--name {name}: the game has a start state of that name; choose another")
    archive = Archive.read(folder.archive, settings.most_bytes)
    record = find_route(archive, f"{arguments.keep}").cell
    assert record is not None
    with closing(Explorer(game, settings)) as explorer:
        state = explorer.emulator_state(record)
    is_bundled = game_path(folder.read().game, relative_to=Path()) is None
    place = folder.root if is_bundled else game.folder
    path = place / f"{name}.state"
    if path.exists():
        raise UsageError(f"{path} exists already; choose another --name, or move the file away")
    write_atomic(path, state)
    entry = f"{name}: {{file: {path.name}}}"
    where = "into its game.yaml" if not is_bundled else "into a game.yaml in the same folder"
    print_result(
        arguments,
        {"file": str(path), "cell": record.number, "start_state": entry},
        f"{path}: the state of cell {record.number:,}, after "
        f"{counted(record.score.timesteps, 'timestep')}",
        f"write {where}:\n  start_states:\n    {entry}",
    )
    return 0


def _way_on(folder: ExploreDir) -> str:
    return f"game-rl explore --resume --output {quote(str(folder.root))}"


def _forecast(
    arguments: argparse.Namespace,
    exploration: Exploration,
    explorers: ExploringProcesses,
    n_processes: int,
) -> ExploreForecast:
    """Have the processes play for a moment; return what the exploration takes at most."""
    pace = explorers.pace()
    timesteps = arguments.timesteps
    if timesteps is None:
        timesteps = round(60 * (arguments.minutes or _USUAL_MINUTES) * pace.per_s)
    memory, _ = process_tree_memory(os.getpid())
    _, available = effective_ram_bytes()
    root = exploration.folder.root
    return forecast_of(
        exploration.settings,
        exploration.archive,
        pace,
        now=Taken(memory, sum(path.stat().st_size for path in root.iterdir())),
        available=Taken(available, disk_free_bytes(root)),
        n_processes=n_processes,
        timesteps=timesteps,
        has_map=exploration.has_map,
    )


def _check_forecast(
    arguments: argparse.Namespace, forecast: ExploreForecast, exploration: Exploration
) -> None:
    """Refuse to begin, or warn, if the machine has too little memory or disk.

    Raises:
        DoesNotFitError: a new exploration does not fit.
    """
    limit = format_bytes(exploration.settings.most_bytes)
    if forecast.verdict == "fits":
        return
    if forecast.verdict == "tight" or arguments.resume:
        what = "the largest size" if forecast.verdict == "tight" else "that"
        print_notes(
            [
                f"{what} is more than is free, with {limit} for states; if the disk becomes full, "
                "the exploration stops with all its rounds saved"
            ]
        )
        return
    for path in exploration.folder.root.iterdir():
        if path.name != "lock":
            path.unlink()  # nothing is explored yet
    raise DoesNotFitError(
        f"the exploration takes {forecast.in_words}; lower --states (now {limit}), explore for "
        "fewer --minutes, free some space, or choose an --output on another disk"
    )


def _print_found(
    arguments: argparse.Namespace, exploration: Exploration, folder: ExploreDir
) -> None:
    archive = exploration.archive
    best = archive.best()
    saved = folder.read()
    facts: dict[str, object] = {
        "folder": str(folder.root),
        "rounds": archive.rounds,
        "timesteps": archive.timesteps,
        "seconds": round(exploration.seconds, 1),
        "cells": len(archive.cells),
        "sheet": str(folder.sheet),
    }
    text = (
        f"{folder.root}: {counted(len(archive.cells), 'cell')} in "
        f"{counted(archive.timesteps, 'timestep')}, {format_duration(exploration.seconds)}\n"
        f"{folder.sheet}: some of their screens"
    )
    root = quote(str(folder.root))
    hint = f"continue:  {_way_on(folder)}\nreport:    game-rl report {root} --output explored.html"
    if saved.settings.cell:
        facts["earned"] = archive.earned
        facts["best"] = {
            "reward": best.score.reward,
            "timesteps": best.score.timesteps,
            "success": best.is_success,
            "route": str(folder.best),
        }
        ending = "ends with a success" if best.is_success else "has no success"
        text += (
            f"\n{folder.best}: the best route earns {best.score.reward:g} in "
            f"{counted(best.score.timesteps, 'timestep')} and {ending}"
        )
        hint += f"\nrecord the best route:  game-rl record {root} --route best"
    else:
        hint += f"\ndefine the cells:  edit `cell` in {quote(saved.game)}, then explore that file"
    print_result(arguments, facts, text, hint)


def _explore_until(
    arguments: argparse.Namespace,
    exploration: Exploration,
    explorers: ExploringProcesses,
    stop: StopRequest,
) -> None:
    """Explore until the limit, and tell how far it is; draw it every minute, and in the end."""
    minutes = arguments.minutes or _USUAL_MINUTES
    ends_s = exploration.seconds + 60 * minutes
    most_timesteps = exploration.archive.timesteps + (arguments.timesteps or 0)
    told_s = exploration.seconds
    earlier = exploration.archive.timesteps
    began_s = exploration.seconds
    drawn_s = exploration.seconds
    places = CellPlaces(exploration.settings.cell, exploration.game.definition.place)
    found: set[CoarsePlace] = set()
    n_known = 0
    for archive in exploration.rounds(explorers):
        seconds = exploration.seconds
        for term in exploration.new_terms:
            print_words(
                PROGRESS,
                f"{archive.timesteps:>12,}   reward term {term} earned for the first time, after "
                f"{format_duration(seconds)}",
            )
        if seconds - told_s >= _TELL_EVERY_S:
            told_s = seconds
            best = archive.best()
            new = (places.of(record.cell) for record in archive.cells[n_known:])
            found.update(place for place in new if place is not None)
            n_known = len(archive.cells)
            speed = (archive.timesteps - earlier) / (seconds - began_s)
            print_words(
                PROGRESS,
                f"{archive.timesteps:>12,}   {len(archive.cells):,} cells{_places_words(found)}  "
                f"reward {best.score.reward:g}  {speed:,.0f} timesteps/s  "
                f"{format_duration(seconds)}",
            )
        if seconds - drawn_s >= _DRAW_EVERY_S:
            drawn_s = seconds
            exploration.draw(explorers)
        is_over = archive.timesteps >= most_timesteps if arguments.timesteps else seconds >= ends_s
        if is_over or stop.is_asked:
            break
    exploration.draw(explorers)


def _places_words(found: Collection[CoarsePlace]) -> str:
    if not found:
        return ""
    maps = len({place[:-2] for place in found})
    return f"  {len(found):,} places" + (f" on {maps:,} maps" if maps > 1 else "")


def _what_to_explore(
    arguments: argparse.Namespace, folder: ExploreDir
) -> tuple[Game, ExploreSettings, SavedExploration | None]:
    """Return game and settings, those of the folder or new ones, and what to save of new ones."""
    if arguments.resume:
        given = {"game": arguments.game, "--start-state": arguments.start_state}
        given |= {"--cell": arguments.cell and " ".join(arguments.cell)}
        given |= {"--seed": arguments.seed, "--states": arguments.states}
        for name, value in given.items():
            if value is not None:
                raise UsageError(
                    f"{name} {value} cannot be used with --resume, which continues what is in "
                    f"{folder.root}; leave it out, or explore in another folder"
                )
        return *explored_game(folder), None
    if arguments.game is None:
        raise UsageError(
            f"a game is missing: name a bundled game ({', '.join(bundled_games())}), a game.yaml "
            "or a config"
        )
    _refuse_explored(folder)
    is_rom = Path(arguments.game).suffix.lower() in (".gb", ".gbc")
    if is_rom:
        if arguments.cell:
            raise UsageError(
                f"--cell names variables, and {arguments.game} is a ROM without a game file; name "
                "a game.yaml, such as game-rl new-game writes, or leave --cell out"
            )
        arguments.game = str(_written_game(Path(arguments.game), folder, arguments.seed or 0))
    named, game, env = _game_and_env(arguments.game)
    known = game.definition.start_states
    start_state = arguments.start_state or next(iter(env.start_states or known))
    if start_state not in known:
        raise UsageError(unknown_name(start_state, "start state", known, of=game.name))
    cell = game.definition.cell_entries
    if arguments.cell:
        cell = tuple(_cell_entry(word, game) for word in arguments.cell)
    settings = ExploreSettings(
        start_state=start_state,
        seed=arguments.seed or 0,
        cell=() if is_rom else cell,
        prefer=() if is_rom else game.definition.preferred,
        env=env,
        trips=_TRIPS,
        trip_timesteps=_TRIP_TIMESTEPS,
        repeat=max(0.0, 1 - env.frame_skip / _DRAWN_EVERY_FRAMES),
        most_bytes=arguments.states or _USUAL_STATES,
    )
    saved = SavedExploration(game=named, rom_sha256=game.rom.sha256, settings=settings)
    return game, settings, saved


def _cell_entry(word: str, game: Game) -> CoarseVariable:
    """Return the entry of a cell that is written as NAME or NAME/PER.

    Raises:
        UsageError: the game has no such number, or PER is none from 1.
    """
    name, slash, per = word.partition("/")
    if name not in game.number_names:
        fault = unknown_name(name, "variable", game.number_names, of=game.name)
        if name in game.definition.variables:
            fault = f"{name} is an array, and a number is needed; count its bits, for instance"
        raise UsageError(f"--cell {word}: {fault}")
    if not slash:
        return CoarseVariable(variable=name)
    if re.fullmatch(r"[1-9][0-9]{0,8}", per) is None:
        raise UsageError(f"--cell {word}: {per!r} is not a whole number from 1, as in {name}/16")
    return CoarseVariable(variable=name, per=int(per))


def _written_game(rom_path: Path, folder: ExploreDir, seed: int) -> Path:
    """Write a game.yaml for a ROM, which begins in play if a way there is found."""
    from game_rl.emulator.pyboy_emulator import PyBoyEmulator
    from game_rl.game_check.menu_search import MenuSearch
    from game_rl.game_check.proposed_game import playable_start_section

    rom = read_rom(rom_path, named_by="the path")
    with (
        closing(PyBoyEmulator(rom, colour=rom.supports_colour)) as emulator,
        working("pressing START and A until the game starts"),
    ):
        search = MenuSearch(emulator, seed=seed, limit_s=_MENU_S, progress=lambda _, __: None)
        start = search.run().start
    sections = {}
    if start is None:
        print_notes(["no way past the menus was found, so the exploration starts before them"])
    else:
        sections["start_states"] = playable_start_section(start)
    return write_starter(rom_path, folder.root, found=sections)


def _refuse_explored(folder: ExploreDir) -> None:
    if folder.exists():
        raise UsageError(
            f"{folder.root} has an exploration already; continue it with --resume, or choose "
            "another --output"
        )


def _game_and_env(word: str) -> tuple[str, Game, EnvConfig]:
    """Return what a game, a game.yaml or a config means: the game's name or path, and the env."""
    config_file = find_config(Path(word))
    if word not in bundled_games() and _is_config(config_file):
        config = load_config(config_file)
        game = load_game(config.game)
        return config.game, game, _explored(config.env)
    path = game_path(word, relative_to=Path())
    game = load_game(word)
    frame_skip = max(_FRAME_SKIP, least_frame_skip(game.definition.actions))
    return word if path is None else str(path), game, _explored(EnvConfig(frame_skip=frame_skip))


def _is_config(file: Path) -> bool:
    """Whether a YAML file names a game, as configs do; a game.yaml is one."""
    with suppress(OSError, UnicodeDecodeError):
        return any(line.startswith("game:") for line in file.read_text("utf-8").splitlines())
    return False


def _explored(env: EnvConfig) -> EnvConfig:
    """Return an env in which only the game ends an episode, and buttons do what they say."""
    changes = {"max_episode_timesteps": _LONGEST, "sticky_actions": 0.0, "wrappers": ()}
    return env.model_copy(update=changes)
