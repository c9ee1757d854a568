"""The followed runs of one page, each read at most once a second for all clients, and their news.

News is JSON that a page asks for about once a second. An answer that ends keeps no connection. A
browser has six of them for all its windows.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from game_rl.files.run_dir import RunDir
from game_rl.viewer.followed_run import FollowedRun
from game_rl.viewer.watched_place import WatchedPlace, is_of_experiment

READ_EVERY_S = 0.9
_OVERVIEW_EVERY_S = 2.0
_LIST_EVERY_S = 2.0


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
        self._listed_at = float("-inf")
        self._followed: dict[str, FollowedRun] = {}
        self._read_at: dict[str, float] = {}
        self._overview: dict[str, Any] = {}
        self._overview_at = float("-inf")

    async def runs(self) -> dict[str, RunDir]:
        """Return the runs by name, as they were within the last seconds."""
        if self._clock() - self._listed_at >= _LIST_EVERY_S:
            self._runs = await asyncio.to_thread(self.place.runs)
            self._listed_at = self._clock()
        return self._runs

    async def knows(self, name: str) -> bool:
        """Whether there is something to show under a name; "" is the place itself."""
        return not name or name in await self.runs()

    async def fresh(self, name: str) -> FollowedRun | None:
        """Return a run whose events were read within the last second; None if there is none."""
        run_dir = (await self.runs()).get(name)
        if run_dir is None:
            return None
        async with self._lock:
            run = self._followed.get(name)
            if run is None:
                run = self._followed[name] = FollowedRun(
                    run_dir, self.place.title_of(name), is_of_experiment=is_of_experiment(run_dir)
                )
            if self._clock() - self._read_at.get(name, float("-inf")) >= READ_EVERY_S:
                await asyncio.to_thread(run.refresh)
                self._read_at[name] = self._clock()
        return run

    async def overview(self) -> dict[str, Any] | None:
        """Return the experiment or the list of runs; None if the place is one run."""
        names = await self.runs()
        if "" in names:
            return None
        async with self._lock:
            if self._clock() - self._overview_at >= _OVERVIEW_EVERY_S:
                self._overview = await asyncio.to_thread(self.place.overview, names)
                self._overview_at = self._clock()
        return self._overview


async def page_news(board: RunBoard, name: str, last_id: str) -> dict[str, Any] | None:
    """Return what is new for a client; None if there is nothing of that name.

    `state` has the numbers of a run, `overview` those of an experiment or of several runs. Of the
    list of events, `happened` has the lines after `last_id`, and `history` all of them: at first,
    and after a resume that has superseded some. `id` is the number of starts of the run, a dot and
    the offset of the newest line.

    Args:
        name: run, or "" for the place itself.
        last_id: the `id` that the client has got last, or "".
    """
    run = await board.fresh(name)
    if run is not None:
        return {"state": run.state, **_happened(run, last_id)}
    overview = None if name else await board.overview()
    return None if overview is None else {"overview": overview}


def _happened(run: FollowedRun, last_id: str) -> dict[str, Any]:
    cuts, offset = _parsed(last_id)
    is_new = run.cuts != cuts
    found: dict[str, Any] = {"id": f"{run.cuts}.{run.end}"}
    if is_new or run.end > offset:
        found["history" if is_new else "happened"] = run.happenings(-1 if is_new else offset)
    return found


def _parsed(last_id: str) -> tuple[int, int]:
    cuts, _, offset = last_id.partition(".")
    if cuts.isdecimal() and offset.isdecimal() and len(last_id) < 40:
        return int(cuts), int(offset)
    return -1, -1
