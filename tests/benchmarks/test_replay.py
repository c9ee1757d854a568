import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.replay_claims import linked
from benchmarks.replay_measures import measure
from benchmarks.replay_trace import Trace, record
from game_rl.lake.lake import Lake
from game_rl.lake.sampler import Sampler
from game_rl.lake.writer import LakeWriter
from tests.lake.plays import SCHEMA, Play


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    folder = tmp_path_factory.mktemp("trace") / "half"
    return record(folder, game="duel", size="half", n_transitions=1200, n_envs=2)


def test_a_trace_has_the_stacks_of_its_play_in_order(trace: Trace) -> None:
    before = None
    n_ends = 0
    for step in trace.vec_steps():
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


@pytest.mark.parametrize("name", ["ours: Pond", "ours: Lake", "sb3"])
def test_what_a_store_gives_is_what_was_played(trace: Trace, tmp_path: Path, name: str) -> None:
    found = measure(name, trace, tmp_path)
    assert found["equal"] == 1
    assert found["transitions"] + found["new_transitions"] == len(trace)
    least = {"ours: Pond": 2_880, "ours: Lake": 50, "sb3": 46_080}[name]
    assert least <= found["bytes"] < 1.2 * least + 1000
    json.dumps(found)


def test_a_store_that_gives_something_else_is_seen(trace: Trace, tmp_path: Path) -> None:
    assert 0.9 < measure("sb3 optimized", trace, tmp_path)["equal"] < 1


def test_a_linked_lake_is_the_play_many_times(tmp_path: Path) -> None:
    base = Lake.create(tmp_path / "base", SCHEMA)
    play = Play(SCHEMA, np.random.default_rng(0))
    with LakeWriter(base, "w", n_envs=1) as writer:
        play.steps(writer, 50)
    view = linked(base, tmp_path / "large", 500).view()
    assert len(view) == 500
    stacks = {row.stack.tobytes() for row in play.stored[0]}
    batch = Sampler(view).sample(np.random.default_rng(0), 64)
    assert {stack.tobytes() for stack in batch.stacks} <= stacks
