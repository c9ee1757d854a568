"""The application behind the page: a fixed table of paths, all of them only read.

| path | answer |
|---|---|
| `/`, `/page/NAME` | the page: HTML, modules, style |
| `/api/state?run=&after=` | numbers, new events, or an overview as JSON; see `page_news` |
| `/api/curves?run=` | the curves as JSON |
| `/api/places?run=` | how often each place was visited, as JSON |
| `/api/settings?run=` | the run's config as JSON with its text |
| `/api/clip?run=&name=` | a clip |
| `/api/frames?run=&env=&browser=` | a stream of live screens, see `frame_wire` |
| `/api/frames?run=&env=&once=1` | the screens of this moment, for a page that has no stream |
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from importlib import resources

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from game_rl.live.frame_hub import FrameHub
from game_rl.viewer.access import Receive, Scope, Send
from game_rl.viewer.frame_stream import FrameStream
from game_rl.viewer.look import stylesheet
from game_rl.viewer.page_json import json_text
from game_rl.viewer.page_news import page_news
from game_rl.viewer.run_board import RunBoard
from game_rl.viewer.watched_place import WatchedPlace

MOST_CLIENTS = 8
"""Streams of screens at once."""
MOST_OF_A_BROWSER = 4
"""Streams of one browser, which has six connections for all its windows and tabs."""

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_BUSY = f"{MOST_CLIENTS} pages watch already, so this one shows fewer screens a second\n"

Answer = Callable[[Request], Awaitable[Response | None]]


class WatchApp:
    """Answers requests whose access was checked already."""

    def __init__(self, place: WatchedPlace) -> None:
        self._board = RunBoard(place)
        self._hub = FrameHub()
        self._files = _page_files()
        self._n_streams: Counter[str] = Counter()
        self._is_ending = asyncio.Event()
        self._answers: Mapping[str, Answer] = {
            "/api/state": self._state,
            "/api/curves": self._curves,
            "/api/places": self._places,
            "/api/settings": self._settings,
            "/api/clip": self._clip,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        path = scope["path"]
        if path == "/api/frames":
            await self._frames(request, receive, send)
            return
        answer: Response | None = self._files.get(path)
        if path in self._answers:
            answer = await self._answers[path](request)
        answer = answer or PlainTextResponse("there is nothing at this address\n", 404)
        await answer(scope, receive, send)

    def end_streams(self) -> None:
        """End all answers that would go on for ever."""
        self._is_ending.set()

    async def _curves(self, request: Request) -> Response | None:
        run = await self._board.fresh(_run_of(request))
        return None if run is None else _json(await asyncio.to_thread(run.curves))

    async def _places(self, request: Request) -> Response | None:
        run = await self._board.fresh(_run_of(request))
        return None if run is None else _json(await asyncio.to_thread(run.places))

    async def _settings(self, request: Request) -> Response | None:
        run = await self._board.fresh(_run_of(request))
        return None if run is None else _json(await asyncio.to_thread(run.settings))

    async def _clip(self, request: Request) -> Response | None:
        run = await self._board.fresh(_run_of(request))
        clips = {} if run is None else {clip.name: clip for clip in run.clips()}
        found = clips.get(request.query_params.get("name", ""))
        return None if found is None else FileResponse(found)

    async def _state(self, request: Request) -> Response | None:
        after = request.query_params.get("after", "")
        found = await page_news(self._board, _run_of(request), after)
        return None if found is None else _json(found)

    async def _frames(self, request: Request, receive: Receive, send: Send) -> None:
        asked = request.query_params
        if not await self._board.knows(_run_of(request)):
            await PlainTextResponse("there is no such run\n", 404)(request.scope, receive, send)
            return
        env = asked.get("env", "")
        browser = asked.get("browser", "")[:64]
        large = int(env) if env.isdecimal() and len(env) < 6 else None
        is_once = asked.get("once") == "1"
        n_own = self._n_streams[browser] if browser else 0
        is_full = self._n_streams.total() >= MOST_CLIENTS or n_own >= MOST_OF_A_BROWSER
        if is_full and not is_once:
            answer = PlainTextResponse(_BUSY, 503, {"retry-after": "10"})
            await answer(request.scope, receive, send)
            return
        stream = FrameStream(self._board, self._hub, _run_of(request), large, is_once=is_once)
        self._n_streams[browser] += not is_once
        try:
            await _send_all(stream.messages(), receive, send, self._is_ending)
        finally:
            self._n_streams[browser] -= not is_once
            self._n_streams += Counter()  # forgets those without a stream


def _json(value: dict[str, object]) -> Response:
    return Response(json_text(value), media_type="application/json")


def _run_of(request: Request) -> str:
    return request.query_params.get("run", "")


async def _send_all(
    chunks: AsyncIterator[bytes], receive: Receive, send: Send, is_ending: asyncio.Event
) -> None:
    """Send chunks as they come, until they end, the client is gone, or the server ends."""
    headers = [(b"content-type", b"application/octet-stream"), (b"x-accel-buffering", b"no")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    sending = asyncio.create_task(_pass_on(chunks, send))
    gone = asyncio.create_task(_disconnected(receive))
    ending = asyncio.create_task(is_ending.wait())
    try:
        await asyncio.wait((sending, gone, ending), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, gone, ending):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    await send({"type": "http.response.body", "body": b""})


async def _pass_on(chunks: AsyncIterator[bytes], send: Send) -> None:
    try:
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    finally:
        await chunks.aclose()  # type: ignore[attr-defined]  # a generator


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _page_files() -> dict[str, Response]:
    """Return the page's files by path, read once."""
    folder = resources.files("game_rl.viewer") / "page"
    found: dict[str, Response] = {}
    for file in folder.iterdir():
        media = _TYPES.get(file.name[file.name.rfind(".") :])
        if media is not None:
            path = "/" if file.name == "index.html" else f"/page/{file.name}"
            found[path] = Response(file.read_bytes(), media_type=media)
    found["/favicon.ico"] = found["/page/icon.svg"]  # browsers ask for it beside text
    found["/page/look.css"] = Response(stylesheet(), media_type=_TYPES[".css"])
    return found
