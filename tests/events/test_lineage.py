"""All experience is counted, and none of it twice."""

import json
from pathlib import Path
from typing import Literal

import pytest

from game_rl.errors import CheckpointError
from game_rl.events.lineage import (
    Lineage,
    Source,
    add_sources,
    at,
    lineage_json,
    played_in_all,
    read_lineage,
    run_as_source,
    totals,
    write_lineage,
)
from game_rl.files.run_dir import RunDir


def source(run: str, timesteps: int, *, began_at: int = 0, **more: object) -> Source:
    values = {"kind": "fork", "path": f"runs/{run}", "frame_skip": 4, "sha256": "00", **more}
    return Source.model_validate(
        {"run": run, "timesteps": timesteps, "began_at": began_at, **values}
    )


def test_what_a_fork_its_parents_and_their_teacher_played_is_added_up(tmp_path: Path) -> None:
    teacher = source("t", 1_000, kind="teacher", frame_skip=8)
    grandparent = source("g", 200, sources=[teacher])
    parent = source("p", 300, began_at=200, sources=[grandparent])
    run = RunDir(tmp_path)
    write_lineage(run, Lineage(began_at=300, sources=(parent,)))
    account = run_as_source(run, 350, frame_skip=4)
    timesteps, frames = played_in_all(account)
    assert timesteps == 50 + 100 + 200 + 1_000
    assert frames == 4 * (50 + 100 + 200) + 8 * 1_000
    assert json.dumps(lineage_json(account))


def test_a_run_that_comes_in_twice_counts_once_as_far_as_it_was_used(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    write_lineage(run, Lineage(began_at=200, sources=(source("p", 200),)))
    add_sources(run, source("p", 500, kind="lake"))
    assert played_in_all(run_as_source(run, 300, frame_skip=4))[0] == 100 + 500


def test_a_source_that_is_used_further_replaces_what_was_known_of_it(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    for timesteps in (100, 400):
        add_sources(run, source("p", timesteps, kind="lake"))
    add_sources(run, source("q", 50, kind="teacher"))
    assert [(s.run, s.timesteps) for s in read_lineage(run).sources] == [("p", 400), ("q", 50)]


def test_a_run_of_its_own_has_played_what_it_says(tmp_path: Path) -> None:
    assert played_in_all(run_as_source(RunDir(tmp_path), 70, frame_skip=8)) == (70, 560)
    assert list(tmp_path.iterdir()) == []


def test_a_changed_account_is_refused_with_the_way_out(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.lineage.write_text('{"sources": 3}', encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"does not describe a run's sources.*or delete it"):
        read_lineage(run)


def played_source(
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
    member, other = played_source("m", 64), played_source("other", 10, kind="lake")
    learner = played_source("l", 32, played_source("m", 66, kind="lake"), other)
    assert totals([member, learner]) == (64 + 32 + 10, 4 * (64 + 32 + 10))


def test_a_copy_counts_from_where_it_began() -> None:
    parent = played_source("p", 300)
    copy = played_source("c", 250, played_source("p", 200), began_at=200)
    assert totals([parent, copy])[0] == 300 + 50
    assert totals([at(parent, 200), at(copy, 200)])[0] == 200
    assert totals([copy])[0] == 200 + 50  # by itself: with what its parent had played
