"""The recorded training curves, against SB3's own CSV file."""

import csv
import json
import math
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger, configure
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from game_rl.checkpoints.training_log import CurveLog, restore_log, save_log
from game_rl.events import CURVE_POINTS, CurvesRecorded, Event
from game_rl.events.event_log import EventLog, read_events
from game_rl.events.run_view import read_curves
from game_rl.files.run_dir import RunDir
from game_rl.preflight import calibration
from game_rl.training.train import resume, train
from tests.tiny_env import TinyEnv
from tests.tiny_run import MakeConfig, command, train_once

ROLLOUT, UPDATES = 8, 24


def recorded(log: CurveLog, dumps: Sequence[tuple[int, dict[str, object]]]) -> None:
    for timesteps, values in dumps:
        log.write(values, dict.fromkeys(values, ()), timesteps)


def listening() -> tuple[EventLog, list[CurvesRecorded]]:
    found: list[CurvesRecorded] = []

    def listen(event: Event) -> None:
        assert isinstance(event, CurvesRecorded)
        found.append(event)

    return EventLog(listeners=[listen]), found


def test_each_value_is_the_mean_of_the_rows_of_sb3s_csv_file_since_the_last(tmp_path: Path) -> None:
    events, found = listening()
    env = VecMonitor(DummyVecEnv([TinyEnv] * 2))
    model = PPO("CnnPolicy", env, n_steps=ROLLOUT // 2, batch_size=4, n_epochs=1, device="cpu")
    model.set_logger(configure(str(tmp_path), ["csv"]))
    every = 3 * ROLLOUT
    model.logger.output_formats.append(CurveLog(events, total_timesteps=every * CURVE_POINTS))
    model.learn(UPDATES * ROLLOUT)
    model.logger.close()
    with (tmp_path / "progress.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == UPDATES
    curves = read_curves(found)
    assert {"rollout/ep_rew_mean", "train/approx_kl", "time/fps"} < curves.keys()
    assert not {"time/iterations", "time/total_timesteps"} & curves.keys()  # as in TensorBoard
    for name, curve in curves.items():
        expected = []
        for first in range(0, UPDATES, 3):
            texts = [row[name] for row in rows[first : first + 3]]
            expected += [fmean(float(text) for text in texts if text)] if any(texts) else []
        np.testing.assert_allclose(curve.values, expected, rtol=1e-6, atol=1e-12)
        np.testing.assert_array_equal(curve.timesteps, range(every, UPDATES * ROLLOUT + 1, every))


Dumps = st.lists(
    st.tuples(
        st.integers(1, 40),
        st.dictionaries(st.sampled_from(["a", "b", "c"]), st.floats(-9, 9), max_size=3),
    ),
    max_size=30,
)


@given(dumps=Dumps, cut=st.integers(0, 30), total=st.integers(1, 20_000))
def test_a_resumed_log_records_what_an_unbroken_one_records(
    dumps: list[tuple[int, dict[str, object]]], cut: int, total: int
) -> None:
    timesteps = np.cumsum([step for step, _ in dumps]).tolist()
    series = [(at, values) for at, (_, values) in zip(timesteps, dumps, strict=True)]
    events, unbroken = listening()
    recorded(CurveLog(events, total_timesteps=total), series)
    events, broken = listening()
    before = Logger(None, [CurveLog(events, total_timesteps=total)])
    recorded(before.output_formats[0], series[:cut])  # type: ignore[arg-type]
    after = Logger(None, [CurveLog(events, total_timesteps=total)])
    restore_log(after, save_log(before, RunDir(Path("/nonexistent"))))
    recorded(after.output_formats[0], series[cut:])  # type: ignore[arg-type]
    assert [(e.timesteps, e.values) for e in broken] == [(e.timesteps, e.values) for e in unbroken]


@given(total=st.integers(1, 5_000_000), step=st.integers(1, 3_000))
def test_a_run_has_at_most_a_thousand_points_up_to_its_total(total: int, step: int) -> None:
    events, found = listening()
    log = CurveLog(events, total_timesteps=total)
    dumps = range(step, total + 1, max(step, total // 4_000))
    recorded(log, [(at, {"a": float(at)}) for at in dumps])
    assert len(found) <= CURVE_POINTS
    assert bool(found) == (len(dumps) > 0 and dumps[-1] >= math.ceil(total / CURVE_POINTS))


def test_numbers_that_no_curve_can_show_and_other_steps_are_left_out() -> None:
    events, found = listening()
    log = CurveLog(events, total_timesteps=10)
    nothing: dict[str, object] = {"a": math.nan, "b": math.inf, "text": "x", "array": np.zeros(2)}
    log.write({**nothing, "eval/mean_reward": 1.0, "offline/loss": 1.0}, _none_excluded(nothing), 3)
    assert not found
    log.write({**nothing, "c": np.float32(0.1), "whole": 123456789.0}, _none_excluded(nothing), 5)
    (event,) = found
    assert event.values == {"c": 0.1, "whole": 123456789.0}


def _none_excluded(values: dict[str, object]) -> dict[str, tuple[str, ...]]:
    names = (*values, "c", "whole", "eval/mean_reward", "offline/loss")
    return dict.fromkeys(names, ())


@pytest.mark.slow
def test_the_curves_of_a_resumed_run_are_those_of_an_unbroken_one(make_config: MakeConfig) -> None:
    """Each point is the mean of three or four updates, and no break is at a point."""
    straight, broken = (make_config(name, "total_timesteps=100000") for name in ("one", "two"))
    quiet = Console(file=StringIO())
    train(straight, command(quiet, until=352))
    train(broken, command(quiet, until=96))
    resume(broken.run_dir, command(quiet, until=256))
    resume(broken.run_dir, command(quiet, until=352))
    one, two = (read_curves(read_events(RunDir(c.run_dir))) for c in (straight, broken))
    same = [name for name in one if not name.startswith(("time/", "resources/"))]
    assert one.keys() == two.keys()
    assert one["rollout/ep_rew_mean"].timesteps.tolist() == [128, 224, 320]
    for name in same:
        np.testing.assert_array_equal(one[name].timesteps, two[name].timesteps)
        np.testing.assert_array_equal(one[name].values, two[name].values)


@pytest.mark.slow
def test_an_event_with_curves_takes_what_is_counted(make_config: MakeConfig) -> None:
    run_dir = train_once(make_config("run"))
    lines = run_dir.events.read_text(encoding="utf-8").splitlines()
    recorded = [line for line in lines if '"curves_recorded"' in line and "train/loss" in line]
    assert recorded
    for line in recorded:
        counted = calibration.EVENT_NUMBER_BYTES * len(json.loads(line)["values"])
        assert 0.6 < len(line) / counted < 1
