import pytest

from game_rl.schedules import constant, linear


def test_a_line_runs_from_start_to_end_over_the_training() -> None:
    total = 1000
    value = linear(2.5e-4, 5e-5)
    for timestep in range(0, total + 1, 100):
        plain = 2.5e-4 - (2.5e-4 - 5e-5) * timestep / total
        assert value(1 - timestep / total) == pytest.approx(plain)


def test_a_constant_stays() -> None:
    assert [constant(0.2)(p) for p in (1.0, 0.5, 0.0)] == [0.2, 0.2, 0.2]
