"""Rows of several Lakes as one, against lists of what was played."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from game_rl.errors import LakeError
from game_rl.lake.horizon import Capacity
from game_rl.lake.lake import Lake
from game_rl.lake.lake_pool import Drawn, Following, LakePool
from game_rl.lake.lake_reader import LakeReader
from game_rl.lake.writer import LakeWriter
from tests.lake.plays import SCHEMA, Play, Transition, expected
from tests.lake.test_sampler import chi_square

Sequences = dict[str, list[Transition]]


def written(path: Path, streams: dict[str, int], *, n_envs: int = 2) -> Sequences:
    """A Lake with so many timesteps of each env of each stream."""
    lake = Lake.create(path, SCHEMA)
    sequences: Sequences = {}
    for stream, n in streams.items():
        play = Play(SCHEMA, np.random.default_rng(len(stream) + n), n_envs)
        with LakeWriter(lake, stream, n_envs=n_envs, segment_bytes=600) as writer:
            play.steps(writer, n)
        sequences |= {f"{stream}/{env}": rows for env, rows in enumerate(play.stored)}
    return sequences


def pool_of(
    *paths: Path,
    agents: dict[str, float] | None = None,
    n_step: int = 3,
    tell: Callable[[str], None] = lambda _: None,
) -> LakePool:
    readers = [
        LakeReader(
            path,
            table_folder=path.parent,
            pins="reads-me",
            n_step=n_step,
            gamma=0.9,
            cache_bytes=2_000,
            tell=tell,
        )
        for path in paths
    ]
    return LakePool(readers, agents=agents)


def opened(*paths: Path, agents: dict[str, float] | None = None) -> LakePool:
    pool = pool_of(*paths, agents=agents)
    pool.begin([])
    return pool


def where(pool: LakePool, drawn: Drawn) -> list[tuple[str, int]]:
    batch = drawn.batch
    rows = zip(batch.streams.tolist(), batch.envs.tolist(), batch.numbers.tolist(), strict=True)
    return [(f"{pool.streams[stream]}/{env}", number) for stream, env, number in rows]


def test_rows_are_those_that_were_played(tmp_path: Path) -> None:
    played = written(tmp_path / "one", {"a": 90, "b": 30})
    played |= written(tmp_path / "two", {"c": 50})
    pool = opened(tmp_path / "one", tmp_path / "two")
    drawn = pool.draw(np.random.default_rng(0), 400)
    assert len({name for name, _ in where(pool, drawn)}) == 6
    for i, (sequence, at) in enumerate(where(pool, drawn)):
        rows = played[sequence]
        reward, next_stack, discount = expected(
            rows, set(range(len(rows))), at, n_step=3, gamma=0.9
        )
        np.testing.assert_array_equal(drawn.batch.stacks[i], rows[at].stack)
        np.testing.assert_array_equal(drawn.batch.next_stacks[i], next_stack)
        assert drawn.batch.actions[i] == rows[at].action
        np.testing.assert_allclose(drawn.batch.rewards[i], reward, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(drawn.batch.discounts[i], discount, rtol=1e-6)
        assert drawn.ages[i] == (len(rows) - at) * 2


def test_every_row_is_as_likely_as_any_other(tmp_path: Path) -> None:
    written(tmp_path / "one", {"a": 40, "b": 10}, n_envs=1)
    written(tmp_path / "two", {"c": 50}, n_envs=1)
    pool = opened(tmp_path / "one", tmp_path / "two")
    found = where(pool, pool.draw(np.random.default_rng(1), 5_000))
    kinds = sorted(set(found))
    assert len(kinds) == 100
    observed = np.array([found.count(kind) for kind in kinds])
    assert abs(chi_square(observed, np.ones(100))) < 5


def test_agents_have_the_shares_that_were_asked_whatever_they_stored(tmp_path: Path) -> None:
    written(tmp_path / "one", {"a": 90, "b": 20}, n_envs=1)
    written(tmp_path / "two", {"c": 50}, n_envs=1)
    agents = {"a": 1.0, "b": 2.0, "c": 5.0}
    pool = opened(tmp_path / "one", tmp_path / "two", agents=agents)
    found = [name for name, _ in where(pool, pool.draw(np.random.default_rng(2), 4_000))]
    observed = np.array([found.count(f"{stream}/0") for stream in agents])
    assert abs(chi_square(observed, np.array(list(agents.values())))) < 5


def test_streams_that_one_name_stands_for_share_its_part_all_rows_alike(tmp_path: Path) -> None:
    written(tmp_path / "one", {"0a": 30, "0b": 10, "1a": 70}, n_envs=1)
    pool = opened(tmp_path / "one", agents={"0": 3.0, "1a": 1.0})
    found = [name for name, _ in where(pool, pool.draw(np.random.default_rng(3), 4_000))]
    observed = np.array([found.count(f"{stream}/0") for stream in ("0a", "0b", "1a")])
    assert abs(chi_square(observed, np.array([3 / 4 * 30 / 40, 3 / 4 * 10 / 40, 1 / 4]))) < 5


def test_a_stream_without_a_share_is_never_drawn(tmp_path: Path) -> None:
    written(tmp_path / "one", {"a": 90, "b": 20}, n_envs=1)
    pool = opened(tmp_path / "one", agents={"b": 0.5})
    drawn = pool.draw(np.random.default_rng(2), 200)
    assert {name for name, _ in where(pool, drawn)} == {"b/0"}


def test_an_unknown_agent_is_told_with_the_streams_there_are(tmp_path: Path) -> None:
    written(tmp_path / "one", {"a": 20, "b": 20})
    with pytest.raises(LakeError, match=r"names z, but the Lakes have the streams a, b"):
        opened(tmp_path / "one", agents={"z": 1.0})


def test_an_empty_lake_is_told(tmp_path: Path) -> None:
    Lake.create(tmp_path / "one", SCHEMA)
    with pytest.raises(LakeError, match="has no sealed transitions"):
        opened(tmp_path / "one")


def test_what_a_lake_gains_is_drawn_after_the_next_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "one"
    written(path, {"a": 30}, n_envs=1)
    pool = opened(path)
    pool.renew("000001")
    state = pool.state()
    with LakeWriter(Lake.open(path), "a", n_envs=1) as writer:
        Play(SCHEMA, np.random.default_rng(3)).steps(writer, 25)
    told: list[str] = []
    resumed = pool_of(path, tell=told.append)
    resumed.load_state(state, told.append)
    resumed.begin(["000001"])
    assert told == [
        f"{path} has 25 timesteps more than at the checkpoint; they are drawn from the next "
        "checkpoint on"
    ]
    for each in (pool, resumed):
        numbers = each.draw(np.random.default_rng(4), 300).batch.numbers
        assert set(numbers.tolist()) == set(range(30))
        each.renew("000002")
        assert each.draw(np.random.default_rng(4), 900).batch.numbers.max() == 54


def test_the_same_state_draws_the_same_rows_though_the_lake_has_grown(tmp_path: Path) -> None:
    path = tmp_path / "one"
    written(path, {"a": 30, "b": 20})
    pool = opened(path)
    state, first = pool.state(), pool.draw(np.random.default_rng(5), 64)
    written(path, {"c": 40})
    resumed = pool_of(path)
    resumed.load_state(state, lambda _: None)
    again = resumed.draw(np.random.default_rng(5), 64)
    assert where(pool, first) == where(resumed, again)
    np.testing.assert_array_equal(first.batch.stacks, again.batch.stacks)


def test_a_pin_keeps_what_the_writers_let_go(tmp_path: Path) -> None:
    path = tmp_path / "one"
    written(path, {"a": 60}, n_envs=1)
    pool = opened(path)
    before = pool.draw(np.random.default_rng(6), 200)
    lake = Lake.open(path, capacity=Capacity(transitions=10))
    lake.evict()
    after = pool.draw(np.random.default_rng(6), 200)
    np.testing.assert_array_equal(before.batch.stacks, after.batch.stacks)
    assert before.batch.numbers.min() == 0
    pool.release()
    assert not list((path / "pins").iterdir())


def test_rows_that_are_gone_are_counted_and_told(tmp_path: Path) -> None:
    path = tmp_path / "one"
    written(path, {"a": 60, "b": 60}, n_envs=1)
    state = opened(path).state()
    shutil.rmtree(path / "pins")
    Lake.open(path).delete_stream("b")
    told: list[str] = []
    pool = pool_of(path, tell=told.append)
    pool.load_state(state, told.append)
    assert [text for text in told if "has lost 60 of the 120 rows" in text]
    assert {name for name, _ in where(pool, pool.draw(np.random.default_rng(7), 50))} == {"a/0"}


def test_files_that_go_while_they_are_read_are_told_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "one"
    written(path, {"a": 60, "b": 60}, n_envs=1)
    told: list[str] = []
    pool = pool_of(path, tell=told.append)
    pool.begin([])
    shutil.rmtree(path / "pins")
    Lake.open(path).delete_stream("b")
    found = where(pool, pool.draw(np.random.default_rng(8), 200))
    assert {name for name, _ in found} == {"a/0"}
    assert len(told) == 1
    assert "has lost 60 of the 120 rows" in told[0]


def test_a_lake_that_cannot_be_pinned_is_read_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "one"
    written(path, {"a": 30}, n_envs=1)
    (path / "pins").write_text("no folder", encoding="utf-8")
    told: list[str] = []
    pool = pool_of(path, tell=told.append)
    pool.begin([])
    pool.renew("000001")
    assert len(pool.draw(np.random.default_rng(9), 10).ages) == 10
    assert len(told) == 1
    assert "is read without pins" in told[0]


def test_a_table_that_cannot_be_written_is_kept_in_memory_and_told_once(tmp_path: Path) -> None:
    path, told = tmp_path / "one", list[str]()
    written(path, {"a": 30, "b": 20})
    on_disk, in_memory = opened(path), pool_of(path, tell=told.append)
    (reader,) = in_memory.readers
    reader._table_folder = tmp_path / "nowhere"
    in_memory.begin([])
    written(path, {"c": 40})
    for pool in (on_disk, in_memory):
        pool.renew("000001")
    drawn = [pool.draw(np.random.default_rng(5), 200) for pool in (on_disk, in_memory)]
    np.testing.assert_array_equal(drawn[0].batch.stacks, drawn[1].batch.stacks)
    assert len(told) == 1
    assert "is kept in memory instead" in told[0]


def test_a_part_of_a_block_can_be_all_that_was_seen(tmp_path: Path) -> None:
    """A mark in the middle of a block, as when a run was resumed and sealed elsewhere."""
    path = tmp_path / "one"
    played = written(path, {"a": 40}, n_envs=1)["a/0"]
    lake = Lake.open(path)
    mark = lake.mark()
    for end in (1, 17, 33):
        cut = type(mark)(mark.segments, {"a/0": end}, {"a/0": 0})
        view = lake.rows_of(cut)
        assert len(view) == end
        blocks = [view.block(number) for number in range(len(view.heads))]
        rewards = np.concatenate([b.columns.rewards[b.columns.rows] for b in blocks])
        np.testing.assert_array_equal(
            rewards, np.array([row.reward for row in played[:end]], np.float32)
        )


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
