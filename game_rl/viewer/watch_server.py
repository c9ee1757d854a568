"""The server of a page; that of `game-rl watch` reads run directories and answers browsers.

It imports neither torch nor Gymnasium, so that it takes less than 60 MB beside the training.
"""

import asyncio
import socket
from collections.abc import Sequence
from typing import Protocol

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from game_rl.errors import UsageError
from game_rl.viewer.access import Access, Receive, Scope, Send
from game_rl.viewer.watch_app import WatchApp
from game_rl.viewer.watched_place import WatchedPlace

MOST_CONNECTIONS = 64
REQUEST_WITHIN_S = 10.0
READ_WITHIN_S = 30.0
MOST_HEADER_BYTES = 16_384


class BoundedProtocol(H11Protocol):
    """Drops connections beyond a number, and clients that neither ask nor read."""

    request_within_s = REQUEST_WITHIN_S
    read_within_s = READ_WITHIN_S
    _until_request: asyncio.TimerHandle | None = None
    _until_read: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        is_one_too_many = len(self.connections) >= MOST_CONNECTIONS
        super().connection_made(transport)
        if is_one_too_many:
            transport.abort()
            return
        self._until_request = self.loop.call_later(self.request_within_s, self._drop_if_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._stop_timers()  # another protocol has the connection from here on
        super().handle_websocket_upgrade(event)

    def _stop_timers(self) -> None:
        for timer in (self._until_request, self._until_read):
            if timer is not None:
                timer.cancel()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._until_read = self.loop.call_later(self.read_within_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._until_read is not None:
            self._until_read.cancel()

    def _drop_if_silent(self) -> None:
        if self.cycle is None:  # no request has come whole
            self.transport.abort()


_BACKLOG = 64
_SEND_BUFFER_BYTES = 131_072
"""What waits in the kernel for a slow client; with more, it would see pictures of long ago."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; browsers wait in its queue until `serve` answers.

    Args:
        port: 0 for any free one.

    Raises:
        UsageError: nothing can listen there.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        listening = socket.create_server((host, port), family=found[0][0], backlog=_BACKLOG)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        return listening
    except socket.gaierror as error:
        raise UsageError(f"--host {host} is not an address of this machine: {error}") from None
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"port {port} of {host} cannot be used ({getattr(error, 'strerror', error)}), perhaps "
            "because another page of game-rl is there; choose another one with --port, such as "
            f"--port {port + 1}"
        ) from None


def addresses(
    host: str, port: int, token: str, *, allowed: Sequence[str] = (), reached: Sequence[str] = ()
) -> list[str]:
    """Return the addresses to open in a browser, the likeliest first.

    Args:
        allowed: names of this machine that the user has given.
        reached: the numbers of this machine's interfaces, for a host that stands for all of them.
    """
    names = [host]
    if host in _ALL:
        is_old = host == "0.0.0.0"  # noqa: S104 - compared, not bound
        kind = [name for name in reached if (":" not in name) == is_old]
        names = [*kind, "127.0.0.1" if is_old else "::1"]
    names = [*allowed, *(name for name in names if name not in allowed)]
    found = (f"[{name}]" if ":" in name else name for name in names)
    return [f"http://{name}:{port}/?token={token}" for name in found]


_ALL = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound


def serve(
    place: WatchedPlace,
    listening: socket.socket,
    *,
    host: str,
    token: str,
    allowed: Sequence[str] = (),
) -> None:
    """Answer until SIGINT or SIGTERM.

    Args:
        host: the address as the user has given it, whose name is allowed in requests.
        allowed: more names of the host that are allowed.
    """
    port = int(listening.getsockname()[1])
    server = make_server(place, host=host, port=port, token=token, allowed=allowed)
    server.run(sockets=[listening])


def make_server(
    place: WatchedPlace, *, host: str, port: int, token: str, allowed: Sequence[str] = ()
) -> uvicorn.Server:
    """Return the server, which does not listen yet."""
    watch = WatchApp(place)
    access = Access(watch, token=token, port=port, host=host, allowed=allowed)
    return make_page_server(watch, access)


class PageApp(Protocol):
    """An application with answers that go on until they are ended."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def end_streams(self) -> None:
        """End them, as the server ends."""


def make_page_server(
    app: PageApp, access: Access, *, most_message_bytes: int | None = None
) -> uvicorn.Server:
    """Return a server of an application behind `access`, which does not listen yet.

    Args:
        most_message_bytes: limit of a message on a WebSocket; None: there are none.
    """
    config = uvicorn.Config(
        access,
        http=BoundedProtocol,
        ws="none" if most_message_bytes is None else "websockets-sansio",
        ws_max_size=most_message_bytes or 1,
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=1,
    )
    return _Server(config, app)


class _Server(uvicorn.Server):
    """Ends its streams before it ends, so that nothing is left that must be torn down."""

    def __init__(self, config: uvicorn.Config, app: PageApp) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.end_streams()
        await super().shutdown(sockets)
