"""Whose timesteps count, and how many."""

from typing import Literal

from game_rl.lineage import Source, at, totals


def source(
    run: str,
    timesteps: int,
    *sources: Source,
    kind: Literal["fork", "lake"] = "fork",
    began_at: int = 0,
) -> Source:
    return Source(
        kind=kind,
        run=run,
        path="x",
        timesteps=timesteps,
        began_at=began_at,
        frame_skip=4,
        sha256="",
        sources=sources,
    )


def test_each_run_counts_once_and_by_its_own_account() -> None:
    member, other = source("m", 64), source("other", 10, kind="lake")
    learner = source("l", 32, source("m", 66, kind="lake"), other)
    assert totals([member, learner]) == (64 + 32 + 10, 4 * (64 + 32 + 10))


def test_a_copy_counts_from_where_it_began() -> None:
    parent = source("p", 300)
    copy = source("c", 250, source("p", 200), began_at=200)
    assert totals([parent, copy])[0] == 300 + 50
    assert totals([at(parent, 200), at(copy, 200)])[0] == 200
    assert totals([copy])[0] == 200 + 50  # by itself: with what its parent had played
