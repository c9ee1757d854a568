import os

import pytest

from game_rl.system.machine import effective_cpus
from game_rl.system.share import take_share


@pytest.mark.parametrize(
    ("cpus", "n_processes", "share"),
    [(1, 8, {7}), (2, 4, {6, 7}), (1, 4, {6, 7}), (1, 1, set(range(8))), (2, 8, {6, 7})],
)
def test_a_share_is_what_the_others_leave_and_never_less_than_its_own_cpus(
    monkeypatch: pytest.MonkeyPatch, cpus: int, n_processes: int, share: set[int]
) -> None:
    taken: list[set[int]] = []
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(8)))
    monkeypatch.setattr(os, "sched_setaffinity", lambda _process, cores: taken.append(set(cores)))
    take_share(cpus, n_processes)
    assert taken == [share]
    assert effective_cpus() == int(os.environ["OMP_NUM_THREADS"]) == cpus
