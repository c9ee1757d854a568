"""uvicorn's HTTP protocol with bounds, so that no client can use up the server.

uvicorn answers as many connections as come, waits for a request for ever, and waits for ever for a
client that no longer reads.
"""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

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
        for timer in (self._until_request, self._until_read):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

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
