"""The server of `game-rl play`: the game runs in its process, in time with a clock."""

import asyncio
import gc
import socket
from collections.abc import Sequence

import uvicorn

from game_rl.play.play_table import PlayTable
from game_rl.viewer.access import Access
from game_rl.viewer.play_app import MOST_MESSAGE_BYTES, PlayApp
from game_rl.viewer.watch_server import make_page_server


class PlayServer:
    """Lets a person play, until SIGINT or SIGTERM, which is raised again then, or `end`.

    Args:
        port: the port on which it will listen.
        host: the address as the user has given it, whose name is allowed in requests.
        allowed: more names of the host that are allowed.
    """

    def __init__(
        self, table: PlayTable, *, host: str, port: int, token: str, allowed: Sequence[str] = ()
    ) -> None:
        self._app = PlayApp(table)
        access = Access(
            self._app, token=token, port=port, host=host, allowed=allowed, command="play"
        )
        self._server: uvicorn.Server = make_page_server(
            self._app, access, most_message_bytes=MOST_MESSAGE_BYTES
        )

    @property
    def has_started(self) -> bool:
        return bool(self._server.started)

    def end(self) -> None:
        """Let `run` return; may be called from another thread."""
        self._server.should_exit = True

    def run(self, listening: socket.socket) -> None:
        """Answer, and play in time.

        Raises:
            OSError: the episode cannot be written.
        """
        gc.freeze()  # a collection of all that was imported takes longer than a frame
        asyncio.run(self._run(listening))

    async def _run(self, listening: socket.socket) -> None:
        clock = asyncio.create_task(self._app.run())
        clock.add_done_callback(lambda _: self.end())
        try:
            await self._server.serve(sockets=[listening])
            if clock.done():
                clock.result()
        finally:
            clock.cancel()
