"""What the page shows beside the screens, as JSON that it asks for about once a second.

An answer that ends keeps no connection. A browser has six of them for all its windows.
"""

from typing import Any

from game_rl.viewer.followed_run import FollowedRun
from game_rl.viewer.run_board import RunBoard


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
