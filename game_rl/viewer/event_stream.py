"""Server-sent events with what the page shows beside the screens."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from game_rl.viewer.followed_run import FollowedRun
from game_rl.viewer.page_json import json_text
from game_rl.viewer.run_board import RunBoard

EVERY_S = 1.0
_COMMENT_AFTER = 15  # looks without news; proxies close what is silent for longer


class EventStream:
    """The events of one client.

    `state` has the numbers of a run, `overview` those of an experiment, each when they have
    changed. `happened` has new lines of the list of events, and `history` all of them: at first,
    and after a resume that has superseded some. An id is the number of starts of the run, a dot and
    the offset of the newest line.

    Args:
        name: run, or "" for the place itself.
        last_id: id of the last event that the client has got, or "".
    """

    def __init__(self, board: RunBoard, name: str, last_id: str) -> None:
        self._board, self._name = board, name
        self._cuts, self._offset = _parsed(last_id)
        self._sent: dict[str, str] = {}

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield what is new, once a second, for as long as the client listens."""
        yield b"retry: 2000\n\n"
        silent = 0
        while True:
            texts = [text async for text in self._news()]
            silent = 0 if texts else silent + 1
            if texts:
                yield "".join(texts).encode()
            elif silent % _COMMENT_AFTER == 0:
                yield b": nothing new\n\n"
            await asyncio.sleep(EVERY_S)

    async def _news(self) -> AsyncIterator[str]:
        run = await self._board.fresh(self._name)
        if run is not None:
            for text in self._changed("state", run.state), self._happened(run):
                if text:
                    yield text
            return
        overview = None if self._name else await self._board.overview()
        text = "" if overview is None else self._changed("overview", overview)
        if text:
            yield text

    def _changed(self, event: str, value: dict[str, Any]) -> str:
        text = json_text(value)
        if self._sent.get(event) == text:
            return ""
        self._sent[event] = text
        return f"event: {event}\ndata: {text}\n\n"

    def _happened(self, run: FollowedRun) -> str:
        is_new = run.cuts != self._cuts
        if not is_new and run.end <= self._offset:
            return ""
        lines = run.happenings(-1 if is_new else self._offset)
        self._cuts, self._offset = run.cuts, run.end
        event = "history" if is_new else "happened"
        return f"id: {self._cuts}.{self._offset}\nevent: {event}\ndata: {json_text(lines)}\n\n"


def _parsed(last_id: str) -> tuple[int, int]:
    cuts, _, offset = last_id.partition(".")
    if cuts.isdecimal() and offset.isdecimal() and len(last_id) < 40:
        return int(cuts), int(offset)
    return -1, -1
