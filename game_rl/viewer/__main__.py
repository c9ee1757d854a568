"""Serves a page: `python -m game_rl.viewer ROOT HOST DESCRIPTOR [ALLOWED ...]`, see `cli`.

`game-rl watch` replaces itself by this program, which lacks most of what a command imports.
"""

import os
import socket
import sys
from pathlib import Path

from game_rl.viewer.watch_server import serve
from game_rl.viewer.watched_place import WatchedPlace

TOKEN_VARIABLE = "GAME_RL_WATCH_TOKEN"  # noqa: S105 - a name


def main() -> int:
    root, host, descriptor, *allowed = sys.argv[1:]
    token = os.environ.pop(TOKEN_VARIABLE)
    listening = socket.socket(fileno=int(descriptor))
    try:
        serve(WatchedPlace(Path(root)), listening, host=host, token=token, allowed=allowed)
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
