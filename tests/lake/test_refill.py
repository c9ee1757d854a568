"""What is read ahead against what the view has."""

from pathlib import Path

import numpy as np
import pytest

from game_rl.errors import LakeError
from game_rl.lake.lake import Lake
from game_rl.lake.refill import Refill, block_order
from game_rl.lake.sampler import Weights
from game_rl.lake.writer import LakeWriter
from tests.lake.plays import SCHEMA, Play
from tests.lake.test_sampler import chi_square, filled


def test_all_blocks_come_once_in_the_order_asked_for(tmp_path: Path) -> None:
    view = filled(tmp_path, {"a": (0, 60), "b": (1, 33)}).view()
    numbers = block_order(view, n_transitions=10**9, rng=np.random.default_rng(0))
    assert sorted(numbers.tolist()) == list(range(len(view.heads)))
    with Refill(view, numbers, ahead=2) as refill:
        blocks = list(refill)
    for number, block in zip(numbers.tolist(), blocks, strict=True):
        whole = view.block(number)
        np.testing.assert_array_equal(block.frames, whole.frames)
        np.testing.assert_array_equal(block.columns.actions, whole.columns.actions)
        assert (block.first, block.agent) == (whole.first, whole.agent)


def test_no_more_blocks_come_than_the_transitions_need(tmp_path: Path) -> None:
    view = filled(tmp_path, {"a": (0, 60)}).view()
    for n in range(1, 60, 7):
        numbers = block_order(view, n_transitions=n, rng=np.random.default_rng(n))
        lengths = view.n_transitions[numbers]
        assert lengths.sum() >= n > lengths[:-1].sum()


def test_the_first_random_block_is_drawn_by_its_length_and_agent(tmp_path: Path) -> None:
    view = filled(tmp_path, {"a": (3, 40), "b": (5, 20), "c": (6, 10)}).view()
    rng = np.random.default_rng(0)
    weights = Weights(agent_shares={3: 0.5, 5: 0.5})
    agents = np.array(
        [
            view.heads["agent"][block_order(view, n_transitions=1, rng=rng, weights=weights)[0]]
            for _ in range(2_000)
        ]
    )
    assert abs(chi_square(np.bincount(agents)[[3, 5]], np.ones(2))) < 5
    first = [block_order(view, n_transitions=1, rng=rng)[0] for _ in range(4_000)]
    observed = np.bincount(first, minlength=len(view.heads))
    assert abs(chi_square(observed, view.n_transitions.astype(float))) < 5


def test_recent_blocks_come_newest_first_from_every_sequence(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path, SCHEMA)
    play = Play(SCHEMA, np.random.default_rng(0), 2)
    with LakeWriter(lake, "w", n_envs=2, segment_bytes=600) as writer:
        play.steps(writer, 50)
    view = lake.view()
    numbers = block_order(view, n_transitions=40, order="recent")
    envs, firsts = view.heads["env"][numbers], view.heads["first"][numbers]
    for env in (0, 1):
        assert (np.diff(firsts[envs == env].astype(int)) < 0).all()
        own = view.heads["env"] == env
        assert firsts[envs == env][0] == view.heads["first"][own].max()
    assert abs((envs == 0).sum() - (envs == 1).sum()) <= 1


def test_a_refill_that_is_not_read_to_its_end_can_be_closed(tmp_path: Path) -> None:
    view = filled(tmp_path, {"a": (0, 60)}).view()
    refill = Refill(view, np.arange(len(view.heads)), ahead=1)
    next(iter(refill))
    refill.close()
    assert not refill._thread.is_alive()


def test_at_most_so_many_blocks_are_in_memory(tmp_path: Path) -> None:
    view = filled(tmp_path, {"a": (0, 100)}).view()
    with Refill(view, np.arange(len(view.heads)), ahead=3) as refill:
        for _ in refill:
            assert refill._ready.qsize() <= 3


def test_a_damaged_block_is_told_where_it_is_read(tmp_path: Path) -> None:
    view = filled(tmp_path, {"a": (0, 60)}).view()
    path = view.segments[0].path
    content = bytearray(path.read_bytes())
    content[int(view.segments[0].offsets[0]) + 70] ^= 1
    path.write_bytes(bytes(content))
    with (
        Refill(view, np.arange(len(view.heads))) as refill,
        pytest.raises(LakeError, match="checksum is wrong"),
    ):
        list(refill)
