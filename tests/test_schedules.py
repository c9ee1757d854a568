import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.schedules import Ramp, Restart, RestartingRamp, constant, linear


def test_a_line_runs_from_start_to_end_over_the_training() -> None:
    total = 1000
    value = linear(2.5e-4, 5e-5)
    for timestep in range(0, total + 1, 100):
        plain = 2.5e-4 - (2.5e-4 - 5e-5) * timestep / total
        assert value(1 - timestep / total) == pytest.approx(plain)


def test_a_constant_stays() -> None:
    assert [constant(0.2)(p) for p in (1.0, 0.5, 0.0)] == [0.2, 0.2, 0.2]


def test_a_ramp_goes_down_a_straight_line_and_stays_there() -> None:
    ramp = Ramp(1.0, 0.2, timesteps=100)
    assert [ramp.at(t) for t in (0, 50, 100, 10_000)] == pytest.approx([1.0, 0.6, 0.2, 0.2])


def plain_share(timestep: int, main: Ramp, restarts: list[Restart]) -> float:
    """Return the highest of all lines that apply at the timestep."""
    lines = [main.at(timestep)]
    for each in restarts:
        if each.at <= timestep < each.at + each.over:
            below = np.interp(
                timestep,
                [each.at, each.at + each.over],
                [each.start, main.at(each.at + each.over)],
            )
            lines.append(float(below))
    return max(lines)


@given(
    start=st.floats(0, 1),
    end=st.floats(0, 1),
    gaps=st.lists(st.tuples(st.integers(0, 50), st.floats(0, 1), st.integers(1, 60)), max_size=5),
)
def test_a_restart_is_a_line_back_to_the_ramp_and_never_below_it(
    start: float, end: float, gaps: list[tuple[int, float, int]]
) -> None:
    main, restarts, free = Ramp(start, end, timesteps=100), [], 1
    for gap, height, over in gaps:
        restarts.append(Restart(at=free + gap, start=height, over=over))
        free += gap + over
    schedule = RestartingRamp(main, tuple(restarts))
    for timestep in range(free + 20):
        plain = plain_share(timestep, main, restarts)
        assert schedule.at(timestep) == pytest.approx(plain, abs=1e-12)
        assert schedule.at(timestep) >= main.at(timestep)


def test_a_restart_begins_at_its_start_and_then_leaves_nothing_behind() -> None:
    main = Ramp(1.0, 0.05, timesteps=100)
    schedule = RestartingRamp(main, (Restart(at=500, start=0.45, over=40),))
    found = [schedule.at(t) for t in (499, 500, 520, 540)]
    assert found == pytest.approx([0.05, 0.45, 0.25, 0.05])
    assert [schedule.at(t) for t in range(540, 600)] == [main.at(t) for t in range(540, 600)]
