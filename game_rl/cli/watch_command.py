"""`game-rl watch`."""

import argparse
import os
import secrets
import shlex
import sys
import webbrowser
from collections.abc import Sequence
from typing import TYPE_CHECKING

from game_rl.checkpoints.named import find_run
from game_rl.cli.arguments import not_negative
from game_rl.config.values import expanded_path
from game_rl.errors import UsageError
from game_rl.files.pretrained import run_name
from game_rl.system.output import visible
from game_rl.system.processes import python_variables
from game_rl.viewer.watched_place import WatchedPlace

if TYPE_CHECKING:
    import socket


_PORT = 8765
_MOST_PORT = 65_535


def add_watch(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_watch)
    parser.add_argument(
        "run",
        type=expanded_path,
        metavar="RUN",
        help="run directory, the directory of an experiment or an exploration, or a folder with "
        "several runs, such as a study's; pretrained:NAME is an agent that comes with game_rl",
    )
    add_page_options(parser, _PORT)


def add_page_options(parser: argparse.ArgumentParser, port: int) -> None:
    """Add the options of a command that serves a page, by default at this port."""
    parser.add_argument(
        "--port",
        type=not_negative,
        default=port,
        metavar="N",
        help=f"port of the page, 0 for any free one (default: {port})",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on (default: 127.0.0.1, which only this machine reaches). The "
        "traffic is not encrypted, so reach another machine with ssh -L instead",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="answer under this name too, such as that of a proxy or this machine's name in DNS; "
        "may be given several times (default: localhost, numbers of this machine and, with --host, "
        "its own names)",
    )
    parser.add_argument(
        "--open", action="store_true", help="open the page in the browser of this machine"
    )


def _watch(arguments: argparse.Namespace) -> int:
    place = WatchedPlace(arguments.run)
    host = arguments.host
    if place.kind is None:
        find_run(arguments.run)  # which says what the folder is instead
        raise UsageError(f"{arguments.run} has no run to show")
    from game_rl.viewer.watch_server import listen

    allowed = checked_hosts(arguments)
    listening = listen(host, arguments.port)
    token = secrets.token_urlsafe(32)
    port = int(listening.getsockname()[1])
    told = f"{visible(run_name(place.root))} is shown at"
    urls = print_ways(arguments, told, port, token, allowed, _KEEP_IT)
    if arguments.open:
        webbrowser.open(urls[0])
    return _serve(place, listening, host=host, token=token, allowed=allowed)


def checked_hosts(arguments: argparse.Namespace) -> list[str]:
    """Return the names of the host that are allowed, in lower case.

    Raises:
        UsageError: one is no name of a host, or the port is too high.
    """
    from game_rl.viewer.access import is_host_name

    if arguments.port > _MOST_PORT:
        raise UsageError(f"--port {arguments.port}: the highest port is {_MOST_PORT:,}")
    for text in arguments.allow_host:
        if not is_host_name(text):
            raise UsageError(
                f"--allow-host {text}: this is not a name of a host; give it without http://, port "
                "and path, such as --allow-host hub.example.org"
            )
    return [text.lower() for text in arguments.allow_host]


def print_ways(
    arguments: argparse.Namespace,
    told: str,
    port: int,
    token: str,
    allowed: Sequence[str],
    keep_it: str,
) -> list[str]:
    """Print the addresses of a page and what to know of them; return the addresses."""
    urls, notes = _ways(arguments.host, port, token, allowed)
    where = "\n  ".join(urls)
    print(f"{told}\n\n  {where}\n", flush=True)
    if not arguments.quiet:
        print("\n".join([*notes, keep_it]), flush=True)
    return urls


_KEEP_IT = "Whoever has this address can see the page. Ctrl-C ends it."


def _ways(host: str, port: int, token: str, allowed: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the addresses of the page, and what to know of them."""
    from game_rl.viewer.access import is_loopback
    from game_rl.viewer.watch_server import addresses

    if not is_loopback(host):
        from game_rl.system.machine import interface_addresses  # which takes a tenth of a second

        here = shlex.quote(f"{port}:127.0.0.1:{port}")
        print(
            "warning: other machines can reach this page, and whoever reads the traffic reads the "
            "token, since it is not encrypted. Without --host, and with\n"
            f"  ssh -L {here} USER@THIS_MACHINE\n"
            "on your own machine, the page is at the same address there, and nobody else reads it.",
            file=sys.stderr,
            flush=True,
        )
        reached = interface_addresses()
        return addresses(host, port, token, allowed=allowed, reached=reached), [
            "If this is a container, use the address and port under which it is published. If "
            "you reach this machine under another name, add --allow-host NAME."
        ]
    proxies = [
        f"Behind the proxy {name}, add ?token={token} to the address that leads to port {port}."
        for name in allowed
    ]
    return addresses(host, port, token), proxies


def _serve(
    place: WatchedPlace,
    listening: "socket.socket",
    *,
    host: str,
    token: str,
    allowed: Sequence[str],
) -> int:
    """Serve in a program of its own, which needs half of the memory of this one."""
    from game_rl.viewer.__main__ import TOKEN_VARIABLE
    from game_rl.viewer.watch_server import serve

    if os.name == "posix":
        listening.set_inheritable(True)
        os.environ |= python_variables() | {
            TOKEN_VARIABLE: token,
            "GAME_RL_WITHOUT_GYMNASIUM": "1",
            "MALLOC_ARENA_MAX": "1",  # glibc's default keeps memory for each thread apart
        }
        words = [str(place.root.absolute()), host, str(listening.fileno()), *allowed]
        os.execv(sys.executable, [sys.executable, "-m", "game_rl.viewer", *words])  # noqa: S606 - no shell is meant
    serve(place, listening, host=host, token=token, allowed=allowed)
    return 0
