import json

import pytest

from game_rl.schedules import Ramp, constant, linear


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


def test_a_ramp_begins_anew_where_and_from_what_it_is_told() -> None:
    ramp = Ramp(1.0, 0.0, timesteps=100)
    ramp.restart(at=500)
    assert [ramp.at(t) for t in (500, 575, 600)] == pytest.approx([1.0, 0.25, 0.0])
    ramp.restart(at=1_000, start=0.4)
    assert [ramp.at(t) for t in (1_000, 1_050, 2_000)] == pytest.approx([0.4, 0.2, 0.0])


def test_a_ramp_goes_on_over_a_break_as_if_there_had_been_none() -> None:
    ramp = Ramp(0.9, 0.1, timesteps=70)
    ramp.restart(at=30, start=0.5)
    other = Ramp(1.0, 1.0, timesteps=1)
    other.load_state(json.loads(json.dumps(ramp.state())))
    assert [other.at(t) for t in range(30, 200)] == [ramp.at(t) for t in range(30, 200)]
