"""However the same play is cut into blocks and files, the Lake shows and draws the same rows."""

import shutil
import tempfile
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.lake.horizon import Capacity
from game_rl.lake.lake import Lake
from game_rl.lake.mark import Mark
from game_rl.lake.sampler import Batch, Sampler
from game_rl.lake.upkeep import compact
from game_rl.lake.writer import LakeWriter
from tests.examples import examples
from tests.lake.plays import SCHEMA, Play, Transition, everything
from tests.lake.test_processes import Nowhere

LENGTHS = {"a": 70, "b": 23, "c": 51}
SHARES = {"a": 0.2, "c": 0.8}


@dataclass(frozen=True)
class Cut:
    """How a stream is written.

    Attributes:
        seals: after so many rows.
        crashes: after so many rows, which part of an `.open` file is left.
        merges: after so many rows the writer ends, segments are merged, and another goes on.
    """

    segment_bytes: int = 1 << 20
    seal_every: int | None = None
    seals: frozenset[int] = frozenset()
    crashes: tuple[tuple[int, float], ...] = ()
    merges: frozenset[int] = frozenset()


PLAIN = Cut()
moments = st.frozensets(st.integers(0, 69), max_size=4)
cuts = st.builds(
    Cut,
    segment_bytes=st.sampled_from([250, 700, 1 << 20]),
    seal_every=st.sampled_from([None, 3, 11]),
    seals=moments,
    crashes=st.lists(st.tuples(st.integers(0, 69), st.floats(0, 1)), max_size=2).map(tuple),
    merges=moments,
)


def rows_of(seed: int, n: int) -> list[Transition]:
    play = Play(SCHEMA, np.random.default_rng(seed), end_chance=0.2)
    play.steps(Nowhere(), n)  # type: ignore[arg-type]
    return play.stored[0]


class Stream:
    """The rows of one env on their way into a Lake; what a crash loses is written again."""

    def __init__(self, lake: Lake, name: str, rows: list[Transition], cut: Cut) -> None:
        self.lake, self.name, self.rows, self.cut = lake, name, rows, cut
        self.crashes = dict(cut.crashes)
        self.open()

    def open(self) -> None:
        self.writer = LakeWriter(
            self.lake,
            self.name,
            n_envs=1,
            segment_bytes=self.cut.segment_bytes,
            seal_every_transitions=self.cut.seal_every,
        )
        (self.at,) = self.writer.next_transitions

    def write(self) -> Lake:
        while self.at < len(self.rows):
            self.step()
            self.happen()
        self.writer.close()
        return self.lake

    def step(self) -> None:
        row = self.rows[self.at]
        self.writer.append(
            observations=row.stack[None],
            frames=row.stack[None, -1:],
            actions=np.array([row.action]),
            rewards=np.array([row.reward]),
            next_frames=row.next_stack[None, -1:],
            terminated=np.array([row.terminated]),
            truncated=np.array([row.truncated]),
            version=row.version,
        )
        self.at += 1

    def happen(self) -> None:
        at = self.at
        if at in self.cut.seals:
            assert self.writer.seal()
        if at in self.crashes:
            self.crash(self.crashes.pop(at))
        elif at in self.cut.merges:
            self.writer.close()
            compact(self.lake)
            self.open()

    def crash(self, left: float) -> None:
        """Go on in a copy of the folder as it is now."""
        copy = self.lake.path.with_name(f"{self.lake.path.name}-")
        self.writer._waiting.join()
        shutil.copytree(self.lake.path, copy)
        self.writer.close()
        for file in copy.glob("*.open"):
            with file.open("r+b") as opened:
                opened.truncate(int(file.stat().st_size * left))
        self.lake = Lake.open(copy, capacity=self.lake.capacity)
        self.open()


def written(folder: Path, cut: Cut, capacity: int | None) -> Lake:
    lake = Lake.create(folder / "lake", SCHEMA, capacity=Capacity(transitions=capacity))
    for seed, (name, n) in enumerate(LENGTHS.items()):
        lake = Stream(lake, name, rows_of(seed, n), cut).write()
    return lake


def assert_same(one: Batch, other: Batch) -> None:
    for field in fields(Batch):
        np.testing.assert_array_equal(
            getattr(one, field.name), getattr(other, field.name), err_msg=field.name
        )


def assert_draws_the_same(one: Lake, other: Lake) -> None:
    views = one.view(), other.view()
    (ours, where), (theirs, there) = (everything(view, n_step=3) for view in views)
    assert_same(ours, theirs)
    assert where == there
    for shares in (None, SHARES):
        samplers = [Sampler(view, n_step=3, shares=shares) for view in views]
        drawn = [s.sample(np.random.default_rng(7), 40) for s in samplers]
        assert_same(*drawn)


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(cuts, st.sampled_from([None, 12, 60, 120]))
def test_seals_crashes_and_compaction_change_no_row_and_no_draw(
    cut: Cut, capacity: int | None
) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        plain, lake = written(Path(one), PLAIN, capacity), written(Path(other), cut, capacity)
        assert_draws_the_same(plain, lake)
        # who comes later and knows of no capacity sees the same
        assert_draws_the_same(plain, Lake.open(lake.path))
        compact(lake, segment_bytes=1_000)
        assert_draws_the_same(plain, lake)
        mark = lake.pin("kept")
        seen = everything(lake.view())
        with LakeWriter(lake, "d", n_envs=1, segment_bytes=300) as writer:
            Play(SCHEMA, np.random.default_rng(9)).steps(writer, 60)
        marked = lake.view(Mark.from_json(mark.to_json(), source="test"))
        assert (capacity is None) == (len(lake.view()) == 204)
        assert_same(seen[0], everything(marked)[0])
        assert seen[1] == everything(marked)[1]
        lake.resume(mark)
        assert_draws_the_same(plain, lake)
        assert_draws_the_same(plain, Lake.open(lake.path))
