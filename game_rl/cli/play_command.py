"""`game-rl play`."""

import argparse
import secrets
import time
import webbrowser
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shlex import quote

from game_rl.cli.arguments import game_word, not_negative, positive
from game_rl.cli.outputs import ROUTE, add_output
from game_rl.cli.watch_command import add_page_options, checked_hosts, print_ways
from game_rl.config.loader import game_path
from game_rl.config.schema import MOST_FRAME_SKIP, EnvConfig, ObservationConfig
from game_rl.emulator.rom import read_rom
from game_rl.errors import Interrupted, UsageError
from game_rl.explore.potentials import with_potentials
from game_rl.game_check.recorded_episode import LONGEST_EPISODE_TIMESTEPS, usual_frame_skip
from game_rl.games.definition import Game, load_game, unknown_name
from game_rl.play.play_files import PlayFiles, free_recording
from game_rl.play.play_session import POWER_ON, PlaySession
from game_rl.play.play_table import PlayTable
from game_rl.system.output import visible

_PORT = 8766
_FOLDER = Path("played")
_ROM_SUFFIXES = (".gb", ".gbc")
_MOST_SEEDS = 2**31


def add_play(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_play)
    parser.add_argument(
        "game",
        type=game_word,
        metavar="GAME",
        help="the name of a bundled game, a game.yaml or its folder, or a ROM without one, which "
        "starts at power-on",
    )
    add_output(
        parser,
        "--record",
        ROUTE,
        text="JSON for the recorded episode, which must not exist; those that follow in one "
        "session get _2, _3 and so on (default: played/GAME_1.json, or the next free number)",
    )
    parser.add_argument(
        "--start-state",
        metavar="NAME",
        help="start state of the first episode (default: the first one of game.yaml)",
    )
    parser.add_argument(
        "--seed",
        type=not_negative,
        metavar="N",
        help="seed of the first episode, from which the value of game.yaml's `random_seed` is "
        "drawn (default: a different one each time)",
    )
    parser.add_argument(
        "--frame-skip",
        type=positive,
        metavar="N",
        help="frames in a timestep; rewards and endings are checked at its end, buttons count in "
        "every frame (default: 4, or more if an action needs them)",
    )
    parser.add_argument(
        "--window",
        action="store_true",
        help="play in a window of this machine instead of the page; needs a display",
    )
    add_page_options(parser, _PORT)


def _play(arguments: argparse.Namespace) -> int:
    if arguments.frame_skip is not None and arguments.frame_skip > MOST_FRAME_SKIP:
        raise UsageError(
            f"--frame-skip {arguments.frame_skip}: a timestep has at most {MOST_FRAME_SKIP} frames"
        )
    game = _game_of(arguments.game)
    start_state = _start_state(arguments, game)
    recording = arguments.record or free_recording(_FOLDER, _stem(arguments.game))
    own_file = game_path(arguments.game, relative_to=Path())
    files = PlayFiles(
        recording, game=game, game_file=None if game is None or own_file is None else own_file
    )
    seed = arguments.seed
    if seed is None:
        seed = time.time_ns() % _MOST_SEEDS
    title = _title(arguments.game, game)
    with _session(arguments, game) as session:
        session.begin(start_state, seed=seed)
        table = PlayTable(session, files, title=title, seed=seed)
        try:
            if arguments.window:
                from game_rl.play.game_window import KEYS_IN_WORDS, play_in_window

                table.tell = _tell
                greeting = f"{KEYS_IN_WORDS}\nrecorded to {files.recording}"
                play_in_window(table, greeting="" if arguments.quiet else greeting)
            else:
                _serve(arguments, table)
        except (KeyboardInterrupt, Interrupted):
            pass  # the usual end
        finally:
            table.save()
    _print_written(arguments, files)
    return 0


def _tell(text: str) -> None:
    print(visible(text), flush=True)


def _print_written(arguments: argparse.Namespace, files: PlayFiles) -> None:
    if not files.written:
        print("nothing was played, so nothing is written")
        return
    for path in files.written:
        print(visible(f"{path}"))
    if not arguments.quiet and (commands := files.next_commands(arguments.game)):
        print(f"\n{commands}")


def _is_rom(name: str) -> bool:
    return Path(name).suffix.lower() in _ROM_SUFFIXES


def _game_of(name: str) -> Game | None:
    """Return the game; None for a ROM without a game file."""
    if _is_rom(name):
        return None
    return with_potentials(load_game(name), EnvConfig())


def _start_state(arguments: argparse.Namespace, game: Game | None) -> str:
    if game is None:
        if arguments.start_state is not None:
            raise UsageError(
                f"--start-state {arguments.start_state}: a ROM has no start states and starts at "
                "power-on; make a game file with game-rl new-game "
                f"{quote(arguments.game)}, or leave the option out"
            )
        return POWER_ON
    known = game.definition.start_states
    name = arguments.start_state or next(iter(known))
    if name not in known:
        raise UsageError(unknown_name(name, "start state", known, of=game.name))
    return str(name)


def _stem(name: str) -> str:
    path = Path(name)
    return path.resolve().parent.name if path.suffix in (".yaml", ".yml") else path.stem


def _title(name: str, game: Game | None) -> str:
    return Path(name).stem if game is None else game.definition.title


@contextmanager
def _session(arguments: argparse.Namespace, game: Game | None) -> Iterator[PlaySession]:
    from game_rl.envs.make_env import make_game_env

    if game is None:
        from game_rl.emulator.pyboy_emulator import PyBoyEmulator

        rom = read_rom(Path(arguments.game), named_by="the path")
        with closing(PyBoyEmulator(rom, colour=rom.supports_colour)) as emulator:
            yield PlaySession(emulator, frame_skip=arguments.frame_skip or EnvConfig().frame_skip)
        return
    config = EnvConfig(
        max_episode_timesteps=LONGEST_EPISODE_TIMESTEPS,
        frame_skip=arguments.frame_skip or usual_frame_skip(game),
        observation=ObservationConfig(size="full"),
    )
    with closing(make_game_env(config, game, draws=True)) as env:
        yield PlaySession(env, frame_skip=config.frame_skip)


def _serve(arguments: argparse.Namespace, table: PlayTable) -> None:
    from game_rl.viewer.play_server import PlayServer
    from game_rl.viewer.watch_server import listen

    allowed = checked_hosts(arguments)
    listening = listen(arguments.host, arguments.port)
    token = secrets.token_urlsafe(32)
    port = int(listening.getsockname()[1])
    told = f"{table.title} is played at"
    keep = (
        "Whoever has this address can play. Ctrl-C ends the play and writes it to\n"
        f"  {table.files.recording}"
    )
    urls = print_ways(arguments, told, port, token, allowed, keep)
    if arguments.open:
        webbrowser.open(urls[0])
    server = PlayServer(table, host=arguments.host, port=port, token=token, allowed=allowed)
    with closing(listening):
        server.run(listening)
