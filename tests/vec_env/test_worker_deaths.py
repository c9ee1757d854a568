import pytest

from game_rl.errors import WorkerError
from game_rl.vec_env.workers import WorkerDeaths

KILLED = WorkerError("worker 0 was killed")


def test_the_third_death_of_one_worker_in_a_row_is_an_error_with_its_cause() -> None:
    deaths = WorkerDeaths(2)
    deaths.note(0, KILLED)
    deaths.note(0, KILLED)
    with pytest.raises(WorkerError, match="worker 0 was killed; it is the third time in a row"):
        deaths.note(0, KILLED)


def test_each_worker_has_its_own_row() -> None:
    deaths = WorkerDeaths(4)
    for worker in (0, 1, 2, 3, 3, 2, 1, 0):
        deaths.note(worker, KILLED)
    assert [deaths.count(worker) for worker in range(4)] == [2] * 4
    assert len(deaths.noted) == 8


def test_a_thousand_vec_steps_end_a_row_from_its_last_death_on() -> None:
    deaths = WorkerDeaths(1)
    for vec_steps in (0, 1_000, 2_001, 2_002, 3_003):
        deaths.vec_steps = vec_steps
        deaths.note(0, KILLED)
    deaths.vec_steps = 4_003
    deaths.note(0, KILLED)
    deaths.vec_steps = 5_003
    with pytest.raises(WorkerError, match="third time"):
        deaths.note(0, KILLED)
