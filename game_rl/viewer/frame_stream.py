"""The live screens of one client, as the messages of `frame_wire`."""

from collections.abc import AsyncIterator

from game_rl.files.run_dir import RunDir
from game_rl.live.frame_hub import FrameHub
from game_rl.live.frame_wire import HEARTBEAT, FrameEncoder
from game_rl.viewer.run_board import RunBoard

_HEARTBEAT_AFTER = 10  # looks without a new screen
_LOOKS_ONCE = 3
_ALONE = ""


class FrameStream:
    """The screens of all envs of a run or, for an experiment, of the first env of each member.

    Args:
        name: run, or "" for the place itself.
        large: env that the client shows large, whose parts of the observation it gets too.
        is_once: whether it ends after the first screens, or if none come within some looks.
    """

    def __init__(
        self,
        board: RunBoard,
        hub: FrameHub,
        name: str,
        large: int | None,
        *,
        is_once: bool = False,
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
        is_one = bool(self._name) or _ALONE in await self._board.runs()
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
                message = encoder.message(screens, layouts, large=large)
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
        runs = await self._board.runs()
        if self._name or _ALONE in runs:
            runs = {name: run for name, run in runs.items() if name == self._name}
        gone = [name for name in self._joined if name not in runs]
        come = {name: run for name, run in runs.items() if name not in self._joined}
        self._hub.join(come)
        self._hub.leave(gone)
        self._joined = {n: r for n, r in self._joined.items() if n not in gone} | come
