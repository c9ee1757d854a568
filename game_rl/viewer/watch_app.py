"""The application behind the page: a fixed table of paths, all of them only read.

| path | answer |
|---|---|
| `/`, `/page/NAME` | the page: HTML, modules, style |
| `/api/state?run=&after=` | numbers, new events, or an overview as JSON; see `page_news` |
| `/api/curves?run=` | the curves as JSON |
| `/api/places?run=` | how often each place was visited, as JSON |
| `/api/settings?run=` | the run's config as JSON with its text |
| `/api/clip?run=&name=` | a clip |
| `/api/picture?run=&name=` | a picture of an exploration |
| `/api/frames?run=&env=&browser=` | a stream of live screens, see `live_stream` |
| `/api/frames?run=&env=&once=1` | the screens of this moment, for a page that has no stream |
"""

import asyncio
import functools
import json
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from importlib import resources
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from game_rl.errors import GameRLError
from game_rl.files.run_dir import RunDir
from game_rl.live.live_stream import HEARTBEAT, FrameEncoder, FrameHub
from game_rl.look import stylesheet
from game_rl.system.output import valid_text
from game_rl.viewer.access import Receive, Scope, Send
from game_rl.viewer.followed_run import FollowedRun
from game_rl.viewer.watched_place import WatchedPlace, owning_experiment

if TYPE_CHECKING:
    from game_rl.viewer.followed_exploration import FollowedExploration

READ_EVERY_S = 0.9
_OVERVIEW_EVERY_S = 2.0
_LIST_EVERY_S = 2.0
_FOLLOW_S = 120.0
"""Time without a look after which an exploration is forgotten: one may take much memory."""
_ALONE = ""


class RunBoard:
    """Finds and follows the runs of a place.

    Args:
        clock: seconds, which only grow.
    """

    def __init__(self, place: WatchedPlace, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.place = place
        self._clock = clock
        self._lock = asyncio.Lock()
        self._runs: dict[str, RunDir] = {}
        self._inside: dict[str, WatchedPlace] = {}
        self._listed_at = float("-inf")
        self._live: dict[str, RunDir] = {}
        self._live_at = float("-inf")
        self._followed: dict[str, FollowedRun] = {}
        self._read_at: dict[str, float] = {}
        self._overviews: dict[str, tuple[float, dict[str, Any]]] = {}
        self._reading: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._explorations: dict[str, tuple[float, FollowedExploration]] = {}

    async def runs(self) -> dict[str, RunDir]:
        """Return the runs by name, as they were within the last seconds."""
        if self._clock() - self._listed_at >= _LIST_EVERY_S:
            self._runs = await asyncio.to_thread(self.place.runs)
            self._inside = await asyncio.to_thread(self.place.inside)
            self._listed_at = self._clock()
        return self._runs

    async def live_runs(self, name: str) -> dict[str, RunDir]:
        """Return the runs whose screens a page shows: of a run, an experiment or the place."""
        runs = await self.runs()
        if name or _ALONE in runs:
            members = name in self._inside
            return {
                each: run
                for each, run in runs.items()
                if each == name or (members and each.startswith(f"{name}/"))
            }
        if self._clock() - self._live_at >= _LIST_EVERY_S:
            self._live = await asyncio.to_thread(self.place.live_runs, runs)
            self._live_at = self._clock()
        return self._live

    async def knows(self, name: str) -> bool:
        """Whether there is something to show under a name; "" is the place itself."""
        return name in await self.runs() or await self.place_of(name) is not None

    async def place_of(self, name: str) -> WatchedPlace | None:
        """Return an experiment or exploration of the folder by its name, or the place for ""."""
        await self.runs()
        return self._inside.get(name) if name else self.place

    async def fresh(self, name: str) -> FollowedRun | None:
        """Return a run whose events were read within the last second; None if there is none."""
        run_dir = (await self.runs()).get(name)
        if run_dir is None:
            return None
        async with self._lock:
            run = self._followed.get(name)
            if run is None:
                run = self._followed[name] = FollowedRun(
                    run_dir, self.place.title_of(name), experiment=owning_experiment(run_dir)
                )
            if self._clock() - self._read_at.get(name, float("-inf")) >= READ_EVERY_S:
                await asyncio.to_thread(run.refresh)
                self._read_at[name] = self._clock()
        return run

    async def overview(self, name: str) -> dict[str, Any] | None:
        """Return an experiment, an exploration or the list of runs; None without one of that name.

        Args:
            name: an experiment or exploration of a folder, or "" for the place itself.
        """
        names = await self.runs()
        place = await self.place_of(name)
        if _ALONE in names or place is None:
            return None
        async with self._reading[name]:
            read_at, found = self._overviews.get(name, (float("-inf"), {}))
            if self._clock() - read_at >= _OVERVIEW_EVERY_S:
                try:
                    exploration = await self.exploration(name)
                    if exploration is not None:
                        found = await asyncio.to_thread(exploration.summary)
                    else:
                        found = await asyncio.to_thread(place.overview, names)
                except (GameRLError, OSError):
                    if not name:
                        raise
                    return None  # the folder's page says why
                self._overviews[name] = self._clock(), found
        return found

    async def exploration(self, name: str) -> "FollowedExploration | None":
        """Return an exploration of that name, if there is one, and forget those without a look.

        Raises:
            GameRLError: what is explored cannot be read.
        """
        now = self._clock()
        explorations = self._explorations.items()
        self._explorations = {each: one for each, one in explorations if now - one[0] < _FOLLOW_S}
        place = await self.place_of(name)
        if place is None or not place.is_exploration:
            return None
        _, found = self._explorations.get(name, (now, None))
        if found is None:
            found = await asyncio.to_thread(place.exploration)
        self._explorations[name] = now, found
        return found


async def page_news(board: RunBoard, name: str, last_id: str) -> dict[str, Any] | None:
    """Return what is new for a client; None if there is nothing of that name.

    `state` has the numbers of a run, `others` the names of the place's other runs, whose curves may
    be laid over its own, `overview` the numbers of an experiment, an exploration or several runs.
    Of the list of events, `happened` has the lines after `last_id`, and `history` all of them: at
    first, and after a resume that has superseded some. `id` is the number of starts of the run, a
    dot and the offset of the newest line.

    Args:
        name: run, an experiment or exploration of a folder, or "" for the place itself.
        last_id: the `id` that the client has got last, or "".
    """
    run = await board.fresh(name)
    if run is not None:
        found: dict[str, Any] = {"state": run.state, "id": f"{run.cuts}.{run.end}"}
        others = [each for each in await board.runs() if each != name and _is_beside(each, name)]
        if others:
            found["others"] = others
        cuts, _, offset = last_id.partition(".")
        is_id = cuts.isdecimal() and offset.isdecimal() and len(last_id) < 40
        if not is_id or int(cuts) != run.cuts:
            found["history"] = run.happenings()
        elif run.end > int(offset):
            found["happened"] = run.happenings(int(offset))
        return found
    overview = await board.overview(name)
    return None if overview is None else {"overview": overview}


def _is_beside(other: str, name: str) -> bool:
    """Whether a run is of the same experiment, or both are runs of a folder or champions in it."""
    own, is_inside, run = name.rpartition("/")
    others_own, is_other_inside, other_run = other.rpartition("/")
    is_shown = not is_inside or run == "champion"
    is_other_shown = not is_other_inside or other_run == "champion"
    return (is_shown and is_other_shown) or bool(own == others_own and own)


_HEARTBEAT_AFTER = 10  # looks without a new screen
_LOOKS_ONCE = 3


class FrameStream:
    """The screens of all envs of a run or, on the page of several, of the first env of each.

    Args:
        name: run, an experiment of a folder, or "" for the place itself.
        large: env that the client shows large, whose parts of the observation it gets too.
        is_once: whether it ends after the first screens, or if none come within some looks.
    """

    def __init__(
        self, board: RunBoard, hub: FrameHub, name: str, large: int | None, *, is_once: bool = False
    ) -> None:
        self._board = board
        self._hub = hub
        self._is_once = is_once
        self._name = name
        self._large = large
        self._joined: dict[str, RunDir] = {}

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield a message for each look at the live files that has found something new."""
        encoder = FrameEncoder()
        look = 0
        silent = 0
        is_one = self._name in await self._board.runs()
        large = None if self._large is None or not is_one else (self._name, self._large)
        try:
            yield HEARTBEAT
            while True:
                await self._join()
                look = await self._hub.newer(look)
                screens = [
                    (run, screen)
                    for run in self._joined
                    for screen in self._hub.screens(run)[: None if is_one else 1]
                ]
                found = {run: self._hub.layout(run) for run in self._joined}
                layouts = {run: each for run, each in found.items() if each is not None}
                learns_from = {run: self._hub.learns_from(run) for run in self._joined}
                message = encoder.message(screens, layouts, large=large, learns_from=learns_from)
                silent = 0 if message is not None else silent + 1
                if message is not None:
                    yield message
                elif silent % _HEARTBEAT_AFTER == 0:
                    yield HEARTBEAT
                if self._is_once and (message is not None or silent == _LOOKS_ONCE):
                    return
        finally:
            self._hub.leave(self._joined)

    async def _join(self) -> None:
        """Follow the runs that have come, and no longer those that have gone."""
        runs = await self._board.live_runs(self._name)
        gone = [name for name in self._joined if name not in runs]
        come = {name: run for name, run in runs.items() if name not in self._joined}
        self._hub.join(come)
        self._hub.leave(gone)
        self._joined = {n: r for n, r in self._joined.items() if n not in gone} | come


def json_text(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return compact JSON, as valid text, without the numbers that JSON does not have."""
    return json.dumps(_shown(value), separators=(",", ":"), ensure_ascii=False)


def _shown(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, str):
        return value if value.isascii() else valid_text(value)
    if isinstance(value, dict):
        return {_shown(key): _shown(each) for key, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, list | tuple) else value


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
        self._files = page_files("index.html")
        self._n_streams: Counter[str] = Counter()
        self._is_ending = asyncio.Event()
        self._answers: Mapping[str, Answer] = {
            "/api/state": self._state,
            "/api/curves": functools.partial(self._of_run, FollowedRun.curves),
            "/api/places": self._places,
            "/api/settings": functools.partial(self._of_run, FollowedRun.settings),
            "/api/clip": self._clip,
            "/api/picture": self._picture,
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

    async def _of_run(
        self, read: Callable[[FollowedRun], dict[str, Any]], request: Request
    ) -> Response | None:
        run = await self._board.fresh(_run_of(request))
        return None if run is None else _json(await asyncio.to_thread(read, run))

    async def _places(self, request: Request) -> Response | None:
        exploration = await self._board.exploration(_run_of(request))
        if exploration is not None:
            return _json(await asyncio.to_thread(exploration.places))
        return await self._of_run(FollowedRun.places, request)

    async def _picture(self, request: Request) -> Response | None:
        place = await self._board.place_of(_run_of(request))
        if place is None:
            return None
        found = await asyncio.to_thread(place.picture, request.query_params.get("name", ""))
        return None if found is None else FileResponse(found)

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

    async def pass_on() -> None:
        try:
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        finally:
            await chunks.aclose()  # type: ignore[attr-defined]  # a generator

    async def disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    headers = [(b"content-type", b"application/octet-stream"), (b"x-accel-buffering", b"no")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    sending = asyncio.create_task(pass_on())
    gone = asyncio.create_task(disconnected())
    ending = asyncio.create_task(is_ending.wait())
    try:
        await asyncio.wait((sending, gone, ending), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, gone, ending):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    await send({"type": "http.response.body", "body": b""})


def page_files(index: str) -> dict[str, Response]:
    """Return the files of a page by path, read once; `index` is the one at `/`."""
    folder = resources.files("game_rl.viewer") / "page"
    found: dict[str, Response] = {}
    for file in folder.iterdir():
        media = _TYPES.get(PurePath(file.name).suffix)
        if media is not None:
            path = "/" if file.name == index else f"/page/{file.name}"
            found[path] = Response(file.read_bytes(), media_type=media)
    found["/favicon.ico"] = found["/page/icon.svg"]  # browsers ask for it beside text
    found["/page/look.css"] = Response(stylesheet(), media_type=_TYPES[".css"])
    return found
