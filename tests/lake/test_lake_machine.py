"""A Lake that lives through anything, against lists of whole transitions."""

import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from numpy.typing import NDArray

from game_rl.lake.horizon import Capacity
from game_rl.lake.lake import Lake
from game_rl.lake.mark import Mark
from game_rl.lake.writer import LakeWriter
from tests.examples import examples
from tests.lake.plays import SCHEMA, Play, Transition, assert_view_holds

N_ENVS = 2


@dataclass(frozen=True)
class Saved:
    """What a checkpoint would have: the mark, as JSON, and the envs' state."""

    mark: str
    stacks: NDArray[np.uint8]
    idle: list[int]
    stored: list[list[Transition]]
    found: set[tuple[str, int]]


class LakeMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folders = [Path(tempfile.mkdtemp())]
        self.play = Play(SCHEMA, np.random.default_rng(0), N_ENVS, end_chance=0.2)
        self.has_evicted = False
        self.saved: dict[str, Saved] = {}
        self.n_saved = 0

    @initialize(capacity=st.sampled_from([None, 31, 90]))
    def create(self, capacity: int | None) -> None:
        self.capacity = Capacity(transitions=capacity)
        self.lake = Lake.create(self.folders[0], SCHEMA, capacity=self.capacity)
        self.start_writing()

    def start_writing(self) -> None:
        self.writer = LakeWriter(self.lake, "w", n_envs=N_ENVS, segment_bytes=900)

    @property
    def sequences(self) -> dict[str, list[Transition]]:
        return {f"w/{env}": rows for env, rows in enumerate(self.play.stored)}

    @rule(n=st.integers(1, 30))
    def append(self, n: int) -> None:
        self.play.version += 1
        self.play.steps(self.writer, n)
        self.writer._waiting.join()  # what its thread evicts, no view loses while it is looked at

    @rule()
    def seal(self) -> None:
        assert self.writer.seal()
        found = assert_view_holds(self.lake.view(), self.sequences, n_step=3)
        if not self.has_evicted:
            assert found == self.newest()

    def newest(self) -> set[tuple[str, int]]:
        """What the capacity has room for, as many of each env: level by level."""
        lengths = {sequence: len(rows) for sequence, rows in self.sequences.items()}
        most = self.capacity.transitions or 10**9
        levels = range(1, 1 + max(lengths.values()))
        level = max(
            (n for n in levels if sum(min(n, m) for m in lengths.values()) <= most), default=1
        )
        return {(s, i) for s, n in lengths.items() for i in range(max(0, n - level), n)}

    @rule()
    def save(self) -> None:
        assert self.writer.seal()
        name = f"{self.n_saved:03d}"
        self.n_saved += 1
        mark = self.lake.pin(name)
        found = assert_view_holds(self.lake.view(), self.sequences)
        self.saved[name] = Saved(
            mark.to_json(),
            self.play.stacks.copy(),
            list(self.play.idle),
            [list(rows) for rows in self.play.stored],
            found,
        )

    @precondition(lambda self: self.saved)
    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        """After a crash: everything that is not in the mark is forgotten."""
        self.crash_into_copy()
        saved = self.saved[data.draw(st.sampled_from(sorted(self.saved)))]
        self.lake.resume(Mark.from_json(saved.mark, source="test"))
        assert not list(self.lake.path.glob("*.open"))
        self.play.stored = [list(rows) for rows in saved.stored]
        self.play.stacks, self.play.idle = saved.stacks.copy(), list(saved.idle)
        self.start_writing()
        assert assert_view_holds(self.lake.view(), self.sequences) == saved.found

    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """The open file is torn anywhere; what was whole comes back, and new episodes begin."""
        self.crash_into_copy()
        for path in self.lake.path.glob("*.open"):
            size = path.stat().st_size
            with path.open("r+b") as file:
                file.truncate(data.draw(st.integers(0, size)))
        before = assert_view_holds(self.lake.view(), self.sequences)
        self.start_writing()
        found = assert_view_holds(self.lake.view(), self.sequences)
        if self.capacity.transitions is None:
            assert before <= found, "what was sealed is lost"
        self.forget_lost(found)

    def forget_lost(self, found: set[tuple[str, int]]) -> None:
        for env in range(N_ENVS):
            kept = [at for sequence, at in found if sequence == f"w/{env}"]
            rows = self.play.stored[env][: max(kept, default=-1) + 1]
            if rows:
                rows[-1] = replace(rows[-1], is_cut=True)
            self.play.stored[env] = rows
        self.play.idle = list(range(N_ENVS))

    def crash_into_copy(self) -> None:
        """Go on in a copy of the folder as it is now; the old writer ends in the old one."""
        copy = Path(tempfile.mkdtemp())
        self.folders.append(copy)
        self.writer._waiting.join()  # the copy is of a moment at which nobody writes
        shutil.copytree(self.lake.path, copy, dirs_exist_ok=True)
        self.writer.close()
        self.lake = Lake.open(copy, capacity=self.capacity)

    @rule()
    def evict(self) -> None:
        self.has_evicted |= self.lake.evict_oldest()

    @precondition(lambda self: self.saved)
    @rule(data=st.data())
    def unpin(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.saved)))
        del self.saved[name]
        self.lake.unpin(name)

    @invariant()
    def marks_see_what_they_saw(self) -> None:
        for saved in self.saved.values():
            view = self.lake.view(Mark.from_json(saved.mark, source="test"))
            sequences = {f"w/{env}": rows for env, rows in enumerate(saved.stored)}
            assert assert_view_holds(view, sequences) == saved.found

    def teardown(self) -> None:
        self.writer.close()
        for folder in self.folders:
            shutil.rmtree(folder)


TestLakeMachine = LakeMachine.TestCase
TestLakeMachine.settings = settings(max_examples=examples(30), stateful_step_count=15)
