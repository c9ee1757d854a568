import json

import pytest
from stable_baselines3 import PPO

from benchmarks.training import Row, Run, rows_of, run_of
from benchmarks.trainings.update_clock import UpdateClock
from benchmarks.trainings.work import Work


def test_a_run_is_the_median_of_its_updates_without_the_first() -> None:
    seconds = {"collect_s": [9.0, 9.0, 1.0, 2.0, 3.0], "update_s": [9.0, 9.0, 3.0, 4.0, 2.0]}
    run = run_of(seconds, rollout_timesteps=1_000)
    assert (run.collect_us, run.update_us, run.total_us) == pytest.approx((2_000, 3_000, 5_000))
    assert run.timesteps_per_s == pytest.approx(200)


def test_ratios_compare_the_runs_of_the_same_round() -> None:
    slow = Row("plain", Work(), [Run(1, 1, 10.0), Run(1, 1, 20.0)])
    fast = Row("ours", Work(), [Run(1, 1, 2.0), Run(1, 1, 10.0)])
    assert fast.ratios(slow) == pytest.approx([5.0, 2.0])


def test_more_envs_leave_the_rollout_as_long_as_it_was() -> None:
    rows = rows_of(["plain", "zoo"], [8, 64], Work())
    assert [(row.peer, row.work.n_envs, row.work.n_steps) for row in rows] == [
        ("plain", 8, 128),
        ("plain", 64, 16),
        ("zoo", 8, 128),
        ("zoo", 64, 16),
    ]


def test_the_clock_leaves_no_gap() -> None:
    """What it says for an update and its rollout adds up to the training's time."""
    clock = UpdateClock()
    PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=16, device="cpu").learn(96, clock)
    found = json.loads(clock.to_json())
    assert [len(found[key]) for key in ("collect_s", "update_s")] == [3, 3]
    assert min(found["collect_s"] + found["update_s"]) > 0
