"""The application behind the page of `game-rl play`: files, and one WebSocket for all else.

| path | answer |
|---|---|
| `/`, `/page/NAME` | the page: HTML, modules, style |
| `/api/play` | the WebSocket |

The server sends text and binary messages. A text is JSON with one key: `game` (what does not
change, first of all), `state`, `said` (a line for the person) or `role`. A binary message is a
picture: the number of its frame, the number of the last input that it has taken in (uint32 each,
little-endian), and its packed pixels (`FramePacking`), as their exclusive or with those of the
picture that was sent before; the first one is compared with zeros.

The page sends JSON texts, see `PlayApp.take`: `{"held": ["a"], "input": 7}`, `{"seen": 31}` for a
picture that has arrived, and `{"do": "pause", "name": ""}` and others.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from starlette.responses import PlainTextResponse, Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from game_rl.emulator.emulator import BUTTONS, SCREEN_HEIGHT, SCREEN_WIDTH
from game_rl.envs.packing import FramePacking
from game_rl.play.play_table import PlayTable
from game_rl.viewer.access import Receive, Scope, Send
from game_rl.viewer.watch_app import MOST_CLIENTS, json_text, page_files

MOST_MESSAGE_BYTES = 1_024
_MOST_UNSEEN = 12  # pictures on their way to a page: a fifth of a second
_MESSAGES_A_FRAME = 16  # that are taken from a page
_STATE_EVERY_FRAMES = 6
_BUSY = 1013  # WebSocket: try again later


class _Page:
    """One open page.

    Attributes:
        texts: what is to be sent to it besides pictures.
        seen: number of its pictures that have arrived.
    """

    def __init__(self, packing: FramePacking) -> None:
        self.texts: list[str] = []
        self.news = asyncio.Event()
        self.sent = self.seen = 0
        self._last_frame = -1
        self._state = self._role = ""
        self._pixels = np.zeros(packing.nbytes, np.uint8)

    def tell(self, **content: object) -> None:
        self.texts.append(json_text(content))
        self.news.set()

    def tell_role(self, role: str) -> None:
        """Say whether it has the controls, if that has changed."""
        if role != self._role:
            self._role = role
            self.tell(role=role)

    def tell_state(self, state: Mapping[str, Any]) -> None:
        """Send it if it is another one than before."""
        text = json_text({"state": state})
        if text != self._state:
            self._state = text
            self.texts.append(text)
            self.news.set()

    def picture(self, number: int, taken: int, pixels: "np.ndarray[Any, Any]") -> bytes | None:
        """Return the message with a picture, if it is new and there is room for it on the way."""
        if number == self._last_frame or self.sent - self.seen >= _MOST_UNSEEN:
            return None
        self._last_frame = number
        self.sent += 1
        change = pixels ^ self._pixels
        self._pixels = pixels
        head = number.to_bytes(4, "little") + taken.to_bytes(4, "little")
        return head + change.tobytes()


class PlayApp:
    """Lets a person play at a page, and others look on.

    The first page has the controls. Any other may take them over, since all have the token.
    """

    def __init__(self, table: PlayTable) -> None:
        self._table = table
        colour = table.session.emulator.is_colour
        shape = (3 if colour else 1, SCREEN_HEIGHT, SCREEN_WIDTH)
        self._packing = FramePacking(shape=shape, bits=8 if colour else 2)
        self._files = page_files("play.html")
        self._pages: list[_Page] = []
        self._player: _Page | None = None
        self._ended = False
        self._number = 0
        self._input = 0  # number of the newest one, and of the one that the newest picture knows
        self._taken = 0
        self._pixels = self._packed()
        self._framed = asyncio.Event()
        table.tell = self._tell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._socket(WebSocket(scope, receive, send))
            return
        answer: Response | None = self._files.get(scope["path"])
        answer = answer or PlainTextResponse("there is nothing at this address\n", 404)
        await answer(scope, receive, send)

    def end_streams(self) -> None:
        self._ended = True
        for page in self._pages:
            page.news.set()

    async def run(self) -> None:
        """Play in time, until cancelled."""
        async for is_new in self._table.ticks():
            if is_new:
                self._number += 1
                self._taken = self._input
                self._pixels = self._packed()
                if self._number % _STATE_EVERY_FRAMES == 0:
                    self._tell_state()
            self._framed.set()
            self._framed = asyncio.Event()
            for page in self._pages:
                page.news.set()

    def _packed(self) -> "np.ndarray[Any, Any]":
        screen = self._table.session.screen
        planes = screen.transpose(2, 0, 1)[: self._packing.shape[0]]
        return self._packing.pack(np.ascontiguousarray(planes))

    def _tell(self, text: str) -> None:
        for page in self._pages:
            page.tell(said=text)

    def _tell_state(self) -> None:
        state = self._table.state()
        for page in self._pages:
            page.tell_state(state)

    async def _socket(self, socket: WebSocket) -> None:
        if socket.url.path != "/api/play":
            await socket.close()
            return
        await socket.accept()
        if len(self._pages) >= MOST_CLIENTS:
            await socket.close(_BUSY, f"{MOST_CLIENTS} pages are open already; close one")
            return
        page = _Page(self._packing)
        page.tell(game=self._game())
        self._pages.append(page)
        if self._player is None:
            self._player = page
        self._tell_roles()
        page.tell_state(self._table.state())
        sending = asyncio.create_task(self._send(socket, page))
        receiving = asyncio.create_task(self._receive(socket, page))
        try:
            await asyncio.wait((sending, receiving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, receiving):
                task.cancel()
                with suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError, OSError):
                    await task
            self._leave(page)

    def _leave(self, page: _Page) -> None:
        self._pages.remove(page)
        if page is self._player:
            self._player = None
            self._table.hold(())
            self._table.pause()
            self._tell_roles()
            self._tell_state()

    def _tell_roles(self) -> None:
        for page in self._pages:
            role = "player" if page is self._player else "free" if self._player is None else "guest"
            page.tell_role(role)

    def _game(self) -> dict[str, Any]:
        """Return what does not change."""
        return self._table.facts() | {
            "width": SCREEN_WIDTH,
            "height": SCREEN_HEIGHT,
            "bits": self._packing.bits,
            "channels": self._packing.shape[0],
            "palette": [[grey, grey, grey] for grey in (0, 85, 170, 255)],
        }

    async def _send(self, socket: WebSocket, page: _Page) -> None:
        while not self._ended:
            await page.news.wait()
            page.news.clear()
            texts = page.texts
            page.texts = []
            for text in texts:
                await socket.send_text(text)
            message = page.picture(self._number, self._taken, self._pixels)
            if message is not None:
                await socket.send_bytes(message)
        await socket.close(1001, "the server ends")

    async def _receive(self, socket: WebSocket, page: _Page) -> None:
        taken = 0
        framed = self._framed
        while True:
            content = await socket.receive()
            if content["type"] == "websocket.disconnect":
                return
            if framed is not self._framed:
                framed = self._framed
                taken = 0
            taken += 1
            if taken > _MESSAGES_A_FRAME:
                await framed.wait()
            message = _message(content.get("text"))
            if message is not None:
                self.take(page, message)

    def take(self, page: _Page, message: dict[str, Any]) -> None:
        """Do what a page asks for; whatever is no request of a page is left alone."""
        match message:
            case {"seen": int(seen)} if page.seen < seen <= page.sent:
                page.seen = seen
            case {"do": "take_controls"} if page is not self._player:
                self._player = page
                self._table.hold(())
                self._tell_roles()
            case _ if page is not self._player:
                return
            case {"held": [*names], "input": int(number)} if _are_buttons(names):
                self._input = number & 0xFFFF_FFFF
                self._table.hold(names)
            case {"do": str(what), "name": str(name)} if what in _DEEDS:
                _DEEDS[what](self._table, name)
                self._tell_state()


def _are_buttons(names: list[Any]) -> bool:
    return len(names) <= len(BUTTONS) and all(name in BUTTONS for name in names)


def _message(text: str | None) -> dict[str, Any] | None:
    """Return what a page has sent; None if it is no JSON object."""
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


_DEEDS: Mapping[str, Callable[[PlayTable, str], None]] = {
    "go": lambda table, _: table.go(),
    "pause": lambda table, _: table.pause(),
    "fast": lambda table, _: table.go_fast(),
    "normal": lambda table, _: table.go_normally(),
    "take_back": lambda table, _: table.take_back(),
    "moment": PlayTable.mark,
    "start_state": PlayTable.keep,
    "again": PlayTable.begin_again,
}
