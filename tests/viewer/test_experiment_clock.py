"""When the last generation ends: against times that are written out by hand."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from game_rl.events import ExperimentBegun, ExperimentEvent, GenerationBegun, GenerationEnded
from game_rl.experiments.experiment_status import ExperimentStatus, MemberStatus
from game_rl.viewer.experiment_summary import experiment_seconds_left

START = datetime(2026, 1, 1, 12, tzinfo=UTC)


def status_of(generations: int, members: tuple[MemberStatus, ...] = ()) -> ExperimentStatus:
    return ExperimentStatus(
        path="runs/population",
        kind="population",
        state="training",
        generation=1,
        generations=generations,
        stretch_until=1_000,
        members=members,
        text="",
        timesteps_of_all=None,
        frames_of_all=None,
    )


def begun(generation: int, at: float) -> GenerationBegun:
    time = START + timedelta(seconds=at)
    return GenerationBegun(time=time, generation=generation, timesteps=1_000)


def ended(generation: int, at: float, seconds: float) -> GenerationEnded:
    return GenerationEnded(
        time=START + timedelta(seconds=at),
        generation=generation,
        record=str(Path("generations") / f"{generation:04d}.json"),
        seconds=seconds,
        copies=0,
        checkpoints_bytes=0,
    )


def started() -> ExperimentBegun:
    return ExperimentBegun(time=START, experiment="0" * 32, members=2, generations=5, slots=2)


def left(events: list[ExperimentEvent], generations: int, at: float) -> float | None:
    now = START + timedelta(seconds=at)
    return experiment_seconds_left(status_of(generations), events, now)


def test_the_mean_of_the_newest_generations_holds_for_the_rest() -> None:
    events: list[ExperimentEvent] = [started()]
    for number, (start, took) in enumerate([(0, 900), (900, 60), (960, 80), (1_040, 100)], start=1):
        events += [begun(number, start), ended(number, start + took, took)]
    events.append(begun(5, 1_140))
    # a mean of 80 s, the slow first generation left out; 20 s of the fifth are over
    assert left(events, 7, 1_160) == 60 + 2 * 80
    assert left(events, 5, 1_160) == 60


def test_nothing_is_said_before_a_generation_has_ended() -> None:
    assert left([], 4, 0) is None
    assert left([started(), begun(1, 0)], 4, 500) is None


def test_a_generation_that_takes_longer_is_over_any_moment() -> None:
    events: list[ExperimentEvent] = [started(), begun(1, 0), ended(1, 50, 50), begun(2, 50)]
    assert left(events, 4, 5_000) == 2 * 50
    assert left(events, 2, 5_000) is None


def test_nothing_is_said_of_the_champions_episodes() -> None:
    assert left([started(), begun(1, 0), ended(1, 50, 50)], 1, 60) is None


def test_a_generation_of_two_controllers_is_no_measure() -> None:
    events: list[ExperimentEvent] = [
        *(started(), begun(1, 0)),
        *(started(), begun(1, 90), ended(1, 100, 10), begun(2, 100)),
    ]
    assert left(events, 4, 100) is None
    assert left([*events, ended(2, 140, 40), begun(3, 140)], 4, 140) == 80


def test_an_experiment_that_does_not_train_has_no_end() -> None:
    events: list[ExperimentEvent] = [started(), begun(1, 0), ended(1, 50, 50), begun(2, 50)]
    stopped = replace(status_of(4), state="stopped")
    assert experiment_seconds_left(stopped, events, START) is None


def test_of_members_that_train_at_once_the_slowest_counts() -> None:
    fast = MemberStatus(0, "00", 900, 1_000, 10.0, False, None)
    slow = MemberStatus(1, "01", 400, 1_000, 5.0, False, None)
    done = MemberStatus(2, "02", 1_000, 1_000, None, True, None)
    live = replace(status_of(1, (fast, slow, done)), is_live=True)
    assert experiment_seconds_left(live, [], START) == 120
    unknown = replace(live, members=(fast, replace(slow, timesteps_per_s=None)))
    assert experiment_seconds_left(unknown, [], START) is None
    assert experiment_seconds_left(replace(live, members=(done,)), [], START) is None


@given(st.floats(1, 1e5), st.integers(2, 9), st.data())
def test_generations_of_one_length_end_on_time(
    seconds: float, generations: int, data: st.DataObject
) -> None:
    done = data.draw(st.integers(1, generations - 1))
    share = data.draw(st.floats(0, 0.99))
    events: list[ExperimentEvent] = [started()]
    for number in range(1, done + 1):
        events += [begun(number, (number - 1) * seconds), ended(number, number * seconds, seconds)]
    events.append(begun(done + 1, done * seconds))
    at = (done + share) * seconds
    found = left(events, generations, at)
    assert found is not None
    assert abs(at + found - generations * seconds) < 1e-3 + 1e-6 * seconds
