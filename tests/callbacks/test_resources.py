"""What is chosen, by a clock and a mover of the test's own."""

from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from game_rl.callbacks.resources import Cores, WorkerCores

ALL = [3, 5, 8]
WORKERS = [70, 71]


class Stage:
    """Workers whose vec steps take so long on all cores, and so long on fewer."""

    def __init__(self, on_all: float, on_fewer: float) -> None:
        self.now = 0.0
        self.moves: list[tuple[int, Cores]] = []
        self.places: dict[int, Cores] = {}
        self._on_all, self._on_fewer = on_all, on_fewer
        self.worker_cores = WorkerCores(ALL, move=self._move, clock=lambda: self.now)

    def _move(self, process: int, cores: Cores) -> None:
        self.moves.append((process, cores))
        self.places[process] = cores

    def rollout(self, vec_steps: int, workers: list[int] = WORKERS) -> Iterator[Cores]:
        """Where the workers were in each vec step."""
        self.worker_cores.begin(workers)
        for _ in range(vec_steps):
            places = [self.places[worker] for worker in workers]
            assert all(place == places[0] for place in places)
            self.now += self._on_all if places[0] == ALL else self._on_fewer
            yield places[0]
            self.worker_cores.stepped()
        self.now += 1000.0  # an update, an evaluation


paces = st.floats(0.01, 2.0)


@given(on_all=paces, on_fewer=paces, vec_steps=st.integers(2, 300))
def test_the_faster_place_is_kept(on_all: float, on_fewer: float, vec_steps: int) -> None:
    assume(abs(on_all - on_fewer) > 0.01 * on_all)
    stage = Stage(on_all, on_fewer)
    for _ in range(10_000):
        list(stage.rollout(vec_steps))
        if stage.worker_cores.is_settled:
            break
    assert stage.worker_cores.is_settled
    before = len(stage.moves)
    assert all((place == ALL) == (on_all < on_fewer) for place in stage.rollout(50))
    assert len(stage.moves) == before + len(WORKERS)  # those that begin a rollout may be new


def test_the_places_take_turns_and_fewer_are_all_but_one() -> None:
    stage = Stage(0.6, 0.7)
    places = list(stage.rollout(10))
    fewer = places[2]
    assert len(fewer) == len(ALL) - 1
    assert set(fewer) < set(ALL)
    # the first vec step only starts the clock; each later one is a trial
    assert places[1:] == [ALL, fewer, fewer, ALL, ALL, fewer, fewer, ALL, ALL]
    assert stage.worker_cores.is_settled


def test_short_vec_steps_are_tried_for_seconds() -> None:
    stage = Stage(0.01, 0.02)
    rollout = stage.rollout(1000)
    while not stage.worker_cores.is_settled:
        next(rollout)
    assert 4.0 <= stage.now < 5.0


def test_what_lies_between_rollouts_does_not_count() -> None:
    stage = Stage(0.01, 0.01)
    for _ in range(4):
        list(stage.rollout(2))
    assert all(cores == ALL for _, cores in stage.moves)
    assert not stage.worker_cores.is_settled


def test_in_rollouts_of_one_vec_step_the_workers_keep_all_cores() -> None:
    stage = Stage(0.7, 0.6)
    assert [list(stage.rollout(1)) for _ in range(20)] == [[ALL]] * 20
    assert stage.worker_cores.is_settled


def test_a_new_worker_is_placed_when_the_next_rollout_begins() -> None:
    stage = Stage(0.7, 0.6)
    list(stage.rollout(20))
    chosen = stage.worker_cores.cores
    assert chosen != ALL
    list(stage.rollout(2, [70, 99]))
    assert stage.places[99] == chosen


def test_a_process_that_cannot_be_moved_is_left_where_it_is() -> None:
    def refuse(process: int, _: Cores) -> None:
        raise ProcessLookupError(process)

    worker_cores = WorkerCores(ALL, move=refuse)
    worker_cores.begin(WORKERS)
    assert worker_cores.cores == ALL


@pytest.mark.parametrize("pid", [10, 11, 12])
def test_trainings_spare_different_cores(pid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("game_rl.callbacks.resources.os.getpid", lambda: pid)
    stage = Stage(0.7, 0.6)
    list(stage.rollout(20))
    assert set(ALL) - set(stage.worker_cores.cores) == {ALL[pid % 3]}
