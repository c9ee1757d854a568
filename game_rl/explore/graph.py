"""How many timesteps are still to go from each cell of an archive, along its graph."""

import heapq
from collections import defaultdict

from game_rl.errors import UsageError
from game_rl.explore.archive import ENDED, Archive, CellRecord
from game_rl.games.cell import Cell


def goals(archive: Archive) -> list[CellRecord]:
    """Return the cells in which an episode was a success or, if none was, had the highest reward.

    Raises:
        UsageError: nothing was earned since the beginning.
    """
    found = archive.successes()
    if found:
        return found
    if not archive.cells:
        raise UsageError("nothing is explored yet")
    best = archive.best().score.reward
    if best <= archive.cells[0].score.reward:
        raise UsageError(
            f"of its {len(archive.cells):,} cells none is a success, and none has a reward"
        )
    return [record for record in archive.cells if record.score.reward == best]


def timesteps_to_go(archive: Archive) -> dict[Cell, int]:
    """Return the fewest timesteps from each cell to a goal, by Dijkstra's algorithm backwards.

    A step is known only if no life was lost in it or in the one before, as the loss of a life may
    send the player back to an entrance. So a way that needs such a loss is not known. Cells from
    which no way is known are missing. The cell of an episode's end counts as the cell that it is
    but for the end, unless that one is known itself.

    Raises:
        UsageError: there is no goal.
    """
    steps_into: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for (before, after), timesteps in archive.steps.items():
        steps_into[after].append((before, timesteps))
    reached: dict[int, int] = {}
    waiting = [(0, record.number) for record in goals(archive)]
    heapq.heapify(waiting)
    while waiting:
        to_go, number = heapq.heappop(waiting)
        if number in reached:
            continue
        reached[number] = to_go
        for before, timesteps in steps_into[number]:
            if before not in reached:
                heapq.heappush(waiting, (to_go + timesteps, before))
    n_entries = len(archive.cells[0].cell)
    found: dict[Cell, int] = {}
    ends: dict[Cell, int] = {}
    for record in archive.cells:
        if record.number not in reached:
            continue
        has_ended = len(record.cell) > n_entries and record.cell[-1] == ENDED
        if has_ended:
            ends[record.cell[:-1]] = reached[record.number]
        else:
            found[record.cell] = reached[record.number]
    return ends | found
