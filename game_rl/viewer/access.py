"""Who may read the page: checks of host, origin, method and token before anything is answered.

The page is for the person who has started the server. A page of another site must not reach it,
even under a host name that it makes point here (DNS rebinding), and neither may another user of the
machine.
"""

import ipaddress
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse, Response

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_CONTENT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", _CONTENT.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
"""Headers of every answer."""
_ASK = "open the address that game-rl {command} has printed; it ends in ?token=..."
_AGAIN = "again"
_OPENING = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0;url=./{query}">
<link rel="icon" href="./page/icon.svg" type="image/svg+xml">
<title>game_rl</title>
<p>The page opens. If it does not, <a href="./{query}">open it here</a>.</p>
</html>
"""
"""A page that goes on to the real one.

A browser keeps cookies that are `SameSite=Strict` to itself on a way that began on another site,
such as a link in a chat or a browser terminal, and on all redirects of it. From here on, the way is
our own.
"""


def is_loopback(host: str) -> bool:
    """Whether an address, or the name localhost, can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Access:
    """Wraps an application; see the module's docstring.

    Args:
        token: what a client must know.
        port: distinguishes the cookies of several servers on one host.
        host: address that the server listens on. If it is not a loopback address, the names of
            this machine and all numbers are allowed as the name of the host.
        allowed: more names of the host, such as that of a proxy.
        command: the command that serves the application, for messages and the cookie's name.
    """

    def __init__(
        self,
        app: App,
        *,
        token: str,
        port: int,
        host: str,
        allowed: Iterable[str] = (),
        command: str = "watch",
    ) -> None:
        self._app = app
        self._token = token.encode()
        self._command = command
        self._ask = _ASK.format(command=command)
        self.cookie = f"game_rl_{command}_{port}"
        self._allowed = {name.lower() for name in allowed}
        self._names = {"localhost"} | self._allowed
        self._is_local = is_loopback(host)
        if not self._is_local:
            self._names |= {host.lower(), socket.gethostname().lower(), socket.getfqdn().lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if scope["type"] == "websocket":
            await self._open_socket(scope, headers, receive, send)
            return
        if scope["type"] != "http":
            return
        refused = self._refusal(scope, headers)
        answer: App = self._app
        if refused is not None:
            status, text = refused
            answer = PlainTextResponse(text, status)
        elif scope["path"] == "/" and b"token=" in scope["query_string"]:
            answer = self._exchange(scope)
        elif not self._has_cookie(headers):
            answer = PlainTextResponse(f"a token is missing: {self._ask}\n", 401)
            is_page = scope["path"] == "/" and scope["query_string"] != _AGAIN.encode()
            if is_page and headers.get("sec-fetch-site") in _ELSEWHERE:
                # another site has led here, so a cookie may be there that was not sent
                answer = HTMLResponse(_OPENING.format(query=f"?{_AGAIN}"))
        await answer(scope, receive, _with_headers(send))

    async def _open_socket(
        self, scope: Scope, headers: Headers, receive: Receive, send: Send
    ) -> None:
        """Pass on a WebSocket of this page; a browser sends the origin of every one."""
        is_own = self._refusal(scope, headers) is None and bool(headers.get("origin"))
        if is_own and self._has_cookie(headers):
            await self._app(scope, receive, send)
            return
        await receive()  # websocket.connect
        await send({"type": "websocket.close", "code": 1008})  # which answers 403

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """Return status and text for what is refused whatever the token is."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.knows(hosts[0]):
            name = _name_in(hosts[0]) if len(hosts) == 1 else ""
            if not is_host_name(name):
                return 403, "the request does not name the host that it is for\n"
            return 403, (
                f"this page does not answer under the name {name}, so that no other site can read "
                f"it under a name of its own. If {name} is your own name for this machine, or a "
                f"proxy in front of it, start game-rl {self._command} with --allow-host {name}\n"
            )
        origin = headers.get("origin")
        if origin and not self._is_own(origin, hosts[0]):
            return 403, "a page of another site may not read this one\n"
        if headers.get("sec-fetch-site") in _ELSEWHERE and scope["path"] != "/":
            return 403, "a page of another site may not read this one\n"
        if scope["type"] == "http" and scope["method"] != "GET":
            return 405, "only GET is allowed: nothing can be changed here\n"
        return None

    def knows(self, host: str) -> bool:
        """Whether a header `Host` names this server."""
        name = _name_in(host)
        try:
            is_reachable = ipaddress.ip_address(name).is_loopback or not self._is_local
        except ValueError:
            is_reachable = False
        return is_reachable or name in self._names

    def _is_own(self, origin: str, host: str) -> bool:
        """Whether a header `Origin` is of this page; a proxy may have changed `Host`."""
        try:
            netloc = urlsplit(origin).netloc.lower()
        except ValueError:
            return False
        return netloc == host.lower() or _name_in(netloc) in self._allowed

    def _exchange(self, scope: Scope) -> Response:
        """Take the token out of the address and into a cookie that scripts cannot read.

        The cookie has no path, so it is for the folder of this address, as the browser has it: a
        proxy may have taken the first part of it away.
        """
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if not self._is_token(given):
            return PlainTextResponse(f"the token is wrong: {self._ask}\n", 401)
        cookie = f"{self.cookie}={given}; HttpOnly; SameSite=Strict"
        return HTMLResponse(_OPENING.format(query=""), headers={"set-cookie": cookie})

    def _has_cookie(self, headers: Headers) -> bool:
        for text in headers.getlist("cookie"):
            try:
                found = SimpleCookie(text).get(self.cookie)
            except CookieError:
                continue
            if found is not None and self._is_token(found.value):
                return True
        return False

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode("utf-8", "replace"), self._token)


_HOST_NAME = re.compile(r"[0-9a-z_]([0-9a-z_.-]{0,251}[0-9a-z_.])?|[0-9a-f:.]{2,45}")
_ELSEWHERE = ("cross-site", "same-site")


def _name_in(host: str) -> str:
    """Return the name in `name:port`; empty if there is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_host_name(text: str) -> bool:
    """Whether it is a number or a name of a host, without a port."""
    return _HOST_NAME.fullmatch(text.lower()) is not None


def _with_headers(send: Send) -> Send:
    names = {name for name, _ in HEADERS}

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [pair for pair in message.get("headers", ()) if pair[0].lower() not in names]
            message = {**message, "headers": [*own, *HEADERS]}
        await send(message)

    return sending
