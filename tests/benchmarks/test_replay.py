import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

from benchmarks.linked_lake import linked
from benchmarks.replay import checkpoint_cost, measure
from benchmarks.replay_stores import LakeStore, Play, VecStep
from game_rl.lake.lake import Lake
from game_rl.lake.sampler import Sampler
from game_rl.lake.writer import LakeWriter
from tests.lake.plays import SCHEMA
from tests.lake.plays import Play as RandomPlay


class RecordedPlay(Play):
    """Played once."""

    @cached_property
    def _recorded(self) -> list[VecStep]:
        return list(super().vec_steps())

    def vec_steps(self) -> Iterator[VecStep]:
        return iter(self._recorded)


PLAY = RecordedPlay("half", 1200, n_envs=2)


@pytest.mark.slow
def test_a_play_is_always_the_same() -> None:
    for step, again in zip(PLAY.vec_steps(), Play("half", 100, n_envs=2).vec_steps(), strict=False):
        assert list(step.fingerprints()) == list(again.fingerprints())


@pytest.mark.slow
def test_a_play_is_stacks_in_order() -> None:
    before = None
    n_ends = 0
    for step in PLAY.vec_steps():
        assert step.observations.shape == (2, 4, 72, 80)
        np.testing.assert_array_equal(step.observations[:, 1:], step.next_observations[:, :-1])
        if before is not None:
            ended = before.terminated | before.truncated
            n_ends += int(ended.sum())
            np.testing.assert_array_equal(
                step.observations[~ended], before.next_observations[~ended]
            )
            assert not step.observations[ended, :-1].any()
        before = step
    assert n_ends > 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ours: Pond", "ours: Lake", "sb3"])
def test_what_a_store_gives_is_what_was_played(tmp_path: Path, name: str) -> None:
    found = measure(name, PLAY, tmp_path)
    assert found["equal"] == 1
    least = {"ours: Pond": 2_880, "ours: Lake": 50, "sb3": 46_080}[name]
    assert least <= found["bytes"] < 1.2 * least + 1000
    assert len(found["ratios"]) == 7
    json.dumps(found)


def test_a_store_that_gives_something_else_is_seen(tmp_path: Path) -> None:
    assert 0.9 < measure("sb3 optimized", PLAY, tmp_path)["equal"] < 1


def test_a_linked_lake_is_the_play_many_times(tmp_path: Path) -> None:
    base = Lake.create(tmp_path / "base", SCHEMA)
    play = RandomPlay(SCHEMA, np.random.default_rng(0))
    with LakeWriter(base, "w", n_envs=1) as writer:
        play.steps(writer, 50)
    view = linked(base, tmp_path / "large", 500).view()
    assert len(view) == 500
    stacks = {row.stack.tobytes() for row in play.stored[0]}
    batch = Sampler(view).sample(np.random.default_rng(0), 64)
    assert {stack.tobytes() for stack in batch.stacks} <= stacks


def test_a_checkpoint_of_a_lake_writes_less_than_its_new_transitions(tmp_path: Path) -> None:
    store = LakeStore(PLAY, tmp_path)
    for step in PLAY.vec_steps():
        store.add(step)
    before = store.nbytes()
    store.writer.close()
    _, beside_new = checkpoint_cost(store.lake, PLAY)
    assert 0 < beside_new < store.lake.n_bytes() - before
