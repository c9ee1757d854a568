"""A pool that follows Lakes while others write them, against what was played."""

from pathlib import Path

import numpy as np
import pytest

from game_rl.errors import LakeError
from game_rl.lake.lake import Lake
from game_rl.lake.lake_pool import Following, LakePool
from game_rl.lake.lake_reader import LakeReader
from game_rl.lake.writer import LakeWriter
from tests.lake.plays import SCHEMA, Play
from tests.lake.test_lake_pool import where

AT_ONCE = 1e-9
RARELY = 1e6


def following(
    path: Path, *, every_s: float = AT_ONCE, agents: dict[str, float] | None = None
) -> LakePool:
    reader = LakeReader(
        path,
        table_folder=path.parent,
        pins="reads-me",
        n_step=3,
        gamma=0.9,
        cache_bytes=2_000,
        follows=True,
        tell=pytest.fail,
    )
    return LakePool([reader], agents=agents, following=Following(every_s))


def look(pool: LakePool) -> None:
    """At once, however long the last look took."""
    assert pool.following is not None
    pool.following._next_at = 0.0
    pool.follow()


def drawable(pool: LakePool) -> set[tuple[str, int]]:
    return set(where(pool, pool.draw(np.random.default_rng(0), 3_000)))


def rows(stream: str, n: int, n_envs: int = 1) -> set[tuple[str, int]]:
    return {(f"{stream}/{env}", number) for env in range(n_envs) for number in range(n)}


def test_it_draws_what_is_sealed_while_a_run_plays(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake", SCHEMA)
    pool = following(lake.path)
    pool.begin([])
    assert not pool.has_rows
    with pytest.raises(LakeError, match="has no sealed transitions"):
        pool.draw(np.random.default_rng(0), 1)
    play = Play(SCHEMA, np.random.default_rng(1), 1)
    with LakeWriter(lake, "a", n_envs=1) as writer:
        for n in (20, 40):
            play.steps(writer, 20)
            writer.seal()
            look(pool)
            assert drawable(pool) == rows("a", n)
    assert pool.following is not None
    assert pool.following.n_rows == 40
    age_s = pool.following.newest_age_s
    assert age_s is not None
    assert age_s >= 0


def test_until_it_is_time_the_view_stays(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake", SCHEMA)
    pool = following(lake.path, every_s=RARELY)
    play = Play(SCHEMA, np.random.default_rng(1), 1)
    with LakeWriter(lake, "a", n_envs=1) as writer:
        play.steps(writer, 20)
        writer.seal()
        pool.begin([])
        pool.follow()
        play.steps(writer, 20)
        writer.seal()
        pool.follow()
    assert drawable(pool) == rows("a", 20)


def test_a_run_that_is_taken_back_and_plays_again_counts_once(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake", SCHEMA)
    pool = following(lake.path)
    with LakeWriter(lake, "a", n_envs=1) as writer:
        play = Play(SCHEMA, np.random.default_rng(1), 1)
        play.steps(writer, 20)
        writer.seal()
        mark = lake.pin("a.000020", "a")
        pool.begin([])
        play.steps(writer, 20)
        writer.seal()
        look(pool)
    lake.resume(mark, "a")
    assert drawable(pool) == rows("a", 40)  # what it has seen stays until it looks again
    look(pool)
    assert drawable(pool) == rows("a", 20)
    with LakeWriter(lake, "a", n_envs=1) as writer:
        Play(SCHEMA, np.random.default_rng(2), 1).steps(writer, 30)
    look(pool)
    assert drawable(pool) == rows("a", 50)
    assert pool.following is not None
    assert pool.following.n_rows == 50


def test_a_run_that_begins_again_takes_nothing_away_until_it_is_back(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake", SCHEMA)
    pool = following(lake.path)
    with LakeWriter(lake, "a", n_envs=1) as writer:
        Play(SCHEMA, np.random.default_rng(1), 1).steps(writer, 20)
    pool.begin([])
    look(pool)
    lake.delete_stream("a")
    look(pool)
    pool.renew("000064")
    assert drawable(pool) == rows("a", 20)
    again = following(lake.path)
    again.load_state(pool.state(), pytest.fail)
    again.begin(["000064"])
    assert drawable(again) == rows("a", 20)


def test_a_checkpoint_of_an_empty_lake_goes_on(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake", SCHEMA)
    pool = following(lake.path)
    pool.begin([])
    pool.renew("000064")
    again = following(lake.path)
    again.load_state(pool.state(), pytest.fail)
    again.begin(["000064"])
    assert not again.has_rows


def test_an_agent_gets_its_share_once_it_is_there(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake", SCHEMA)
    with LakeWriter(lake, "a", n_envs=1) as writer:
        Play(SCHEMA, np.random.default_rng(1), 1).steps(writer, 20)
    pool = following(lake.path, agents={"b": 1.0})
    pool.begin([])
    assert not pool.has_rows
    with LakeWriter(lake, "b", n_envs=1) as writer:
        Play(SCHEMA, np.random.default_rng(1), 1).steps(writer, 20)
    look(pool)
    assert drawable(pool) == rows("b", 20)
