"""A proxy in front of an S3 server that injects the faults of networks and servers."""

import http.client
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import urlsplit

Fault = Literal["500", "503", "403", "cut body", "stall", "lost answer", "slow link"]
FAULTS: tuple[Fault, ...] = (
    "500",
    "503",
    "403",
    "cut body",
    "stall",
    "lost answer",
    "slow link",
)
Plan = Callable[[str, str], Fault | None]
"""Function that returns the fault for a request (method, path), or None to let it pass."""
_SLOW_BYTES_S = 4_000_000
_CHUNK = 64 << 10
_ERROR = (
    '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code>'
    "<Message>planted: {code}</Message></Error>"
)
_CODES = {"500": "InternalError", "503": "SlowDown", "403": "AccessDenied"}


@dataclass
class FaultProxy:
    """A proxy on a port of this machine; a context manager.

    Args:
        upstream: address of the server.
        plan: function that chooses the fault of each request.
        stall_s: seconds for which a stalled request is held.

    Attributes:
        struck: number of times that each fault was injected.
    """

    upstream: str
    plan: Plan = lambda _method, _path: None
    stall_s: float = 120.0
    struck: dict[str, int] = field(default_factory=dict)

    def __enter__(self) -> "FaultProxy":
        self._lock = threading.Lock()
        self._closing = threading.Event()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except (ConnectionError, TimeoutError):
                    self.close_connection = True

            def _act(self) -> None:
                proxy._serve(self)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _act  # noqa: N815 - its names

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        fault = self.plan(handler.command, handler.path)
        if fault is not None:
            with self._lock:
                self.struck[fault] = self.struck.get(fault, 0) + 1
        length = int(handler.headers.get("Content-Length") or 0)
        if fault == "stall":
            self._closing.wait(self.stall_s)
        if fault in ("stall", "cut body"):
            handler.rfile.read(length // 2)
            _hang_up(handler)
            return
        body = self._body(handler, length, is_slow=fault == "slow link")
        if fault in _CODES:
            _answer(handler, int(fault), _ERROR.format(code=_CODES[fault]).encode(), {})
            return
        status, headers, content = self._pass_on(handler, body)
        if fault == "lost answer":
            _hang_up(handler)
        else:
            _answer(handler, status, content, headers)

    def _body(self, handler: BaseHTTPRequestHandler, length: int, *, is_slow: bool) -> bytes:
        found = bytearray()
        while len(found) < length:
            chunk = handler.rfile.read(min(_CHUNK, length - len(found)))
            if not chunk:
                break
            found += chunk
            if is_slow:
                time.sleep(len(chunk) / _SLOW_BYTES_S)
        return bytes(found)

    def _pass_on(
        self, handler: BaseHTTPRequestHandler, body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        place = urlsplit(self.upstream)
        assert place.hostname is not None
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
        headers = {k: v for k, v in handler.headers.items() if k.lower() != "connection"}
        connection.request(handler.command, handler.path, body=body or None, headers=headers)
        answer = connection.getresponse()
        content = answer.read()
        found = dict(answer.getheaders())
        connection.close()
        return answer.status, found, content


def _answer(
    handler: BaseHTTPRequestHandler, status: int, content: bytes, headers: dict[str, str]
) -> None:
    handler.send_response_only(status)
    is_head = handler.command == "HEAD"
    for name, value in headers.items():
        dropped = {"transfer-encoding", "connection"} | (set() if is_head else {"content-length"})
        if name.lower() not in dropped:
            handler.send_header(name, value)
    if not is_head or "content-length" not in {name.lower() for name in headers}:
        handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    if not is_head:
        handler.wfile.write(content)


def _hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    try:
        handler.connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
