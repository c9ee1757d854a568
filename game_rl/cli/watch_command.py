"""`game-rl watch`."""

import argparse
import os
import secrets
import shlex
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from game_rl.checkpoints.named import find_run
from game_rl.cli.arguments import add_command, not_negative
from game_rl.errors import UsageError
from game_rl.viewer.access import is_loopback
from game_rl.viewer.watched_place import WatchedPlace

if TYPE_CHECKING:
    import socket

    from game_rl.cli.arguments import Commands

_PORT = 8765
_MOST_PORT = 65_535


def add_watch(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands,
        "watch",
        _watch,
        summary=summary,
        example="game-rl watch runs/duel_ppo --open",
    )
    parser.add_argument(
        "run",
        type=Path,
        metavar="RUN",
        help="run directory, the directory of an experiment, or a folder with several runs, such "
        "as a study's",
    )
    parser.add_argument(
        "--port",
        type=not_negative,
        default=_PORT,
        metavar="N",
        help=f"port of the page, 0 for any free one (default: {_PORT})",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on (default: 127.0.0.1, which only this machine reaches). The "
        "traffic is not encrypted, so reach another machine with ssh -L instead",
    )
    parser.add_argument(
        "--open", action="store_true", help="open the page in the browser of this machine"
    )


def _watch(arguments: argparse.Namespace) -> int:
    from game_rl.viewer.watch_server import address, listen

    place, host = WatchedPlace(arguments.run), arguments.host
    if place.kind is None:
        find_run(arguments.run)  # which says what the folder is instead
        raise UsageError(f"{arguments.run} has no run to show")
    if arguments.port > _MOST_PORT:
        raise UsageError(f"--port {arguments.port}: the highest port is {_MOST_PORT:,}")
    listening, token = listen(host, arguments.port), secrets.token_urlsafe(32)
    port = int(listening.getsockname()[1])
    url = address(host, port, token)
    if not is_loopback(host):
        _warn_of_others(port)
    print(f"{place.root} is shown at\n\n  {url}\n", flush=True)
    if not arguments.quiet:
        print("Whoever has this address can see the page. Ctrl-C ends it.", flush=True)
    if arguments.open:
        webbrowser.open(url)
    return _serve(place, listening, host=host, token=token)


def _warn_of_others(port: int) -> None:
    here = shlex.quote(f"{port}:127.0.0.1:{port}")
    print(
        "warning: other machines can reach this page, and whoever reads the traffic reads the "
        "token, since it is not encrypted. Without --host, and with\n"
        f"  ssh -L {here} USER@THIS_MACHINE\n"
        "on your own machine, the page is at the same address there, and nobody else reads it.",
        file=sys.stderr,
        flush=True,
    )


def _serve(place: WatchedPlace, listening: "socket.socket", *, host: str, token: str) -> int:
    """Serve in a program of its own, which needs half of the memory of this one."""
    from game_rl.viewer.__main__ import TOKEN_VARIABLE
    from game_rl.viewer.watch_server import serve

    if os.name == "posix":
        listening.set_inheritable(True)
        os.environ |= {
            TOKEN_VARIABLE: token,
            "GAME_RL_WITHOUT_GYMNASIUM": "1",
            "MALLOC_ARENA_MAX": "1",  # glibc's default keeps memory for each thread apart
        }
        words = [str(place.root.absolute()), host, str(listening.fileno())]
        os.execv(sys.executable, [sys.executable, "-m", "game_rl.viewer", *words])  # noqa: S606 - no shell is meant
    serve(place, listening, host=host, token=token)
    return 0
