"""What a plot shows, as numbers, against the files of a tiny run read in another way."""

import csv
import itertools
import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.events import (
    BaselinePlayed,
    Begun,
    CheckpointSaved,
    CurvesRecorded,
    Ended,
    Evaluated,
    Event,
    Resumed,
    RolloutEnded,
)
from game_rl.events.event_log import EventFile
from game_rl.events.run_view import reward_interval, run_clock
from game_rl.files.run_dir import RunDir
from game_rl.system.units import GIB
from game_rl.viewer.panels import Panel, PlotLine, SeedCurve, seed_lines, thinned
from game_rl.viewer.run_panels import run_panels, speed_curve
from game_rl.viewer.shown_runs import RunGroup, ShownRun, grouped_runs, read_run
from tests.experiments.compare.fake_runs import write_run
from tests.tiny_run import MakeConfig, train_once

Z95 = 1.959964


@pytest.fixture
def tiny(make_config: MakeConfig) -> ShownRun:
    return read_run(train_once(make_config("run", "live.fps=0")).root)


def panels_by_name(*runs: ShownRun, axis: Any = "timesteps") -> dict[str, Panel]:
    return {panel.name: panel for panel in run_panels(grouped_runs(runs), axis)}


def line(panel: Panel, style: str, number: int = 0) -> PlotLine:
    return [each for each in panel.lines if each.style == style][number]


def lines_of(run_dir: RunDir, name: str) -> list[dict[str, Any]]:
    rows = run_dir.events.read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, rows) if row["event"] == name]


def test_evaluations_are_those_of_eval_csv(tiny: ShownRun) -> None:
    with tiny.run_dir.evaluations.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    panels = panels_by_name(tiny)
    for name, column in (("success", "success_rate"), ("reward", "mean_reward")):
        shown = line(panels[name], "main")
        assert shown.x.tolist() == [float(row["timesteps"]) for row in rows]
        np.testing.assert_allclose(shown.y, [float(row[column]) for row in rows], atol=5e-5)


def test_baselines_are_level_lines_over_the_evaluations_of_one_run(tiny: ShownRun) -> None:
    played = [
        BaselinePlayed(
            timesteps=0,
            action=action,
            episodes=20,
            mean_reward=reward,
            std_reward=1.0,
            success_rate=0.25,
            mean_length=9,
            seconds=1.0,
        )
        for action, reward in (("", -4.0), ("kick", -2.0))
    ]
    assert not [each for each in panels_by_name(tiny)["reward"].lines if each.style == "baseline"]
    with_them = replace(tiny, events=(*tiny.events, *played))
    panels = panels_by_name(with_them)
    for number, (label, reward) in enumerate((("random actions", -4.0), ("always kick", -2.0))):
        shown = line(panels["reward"], "baseline", number)
        assert (shown.label, shown.y.tolist()) == (label, [reward, reward])
        assert shown.x.tolist() == [0.0, line(panels["reward"], "main").x[-1]]
        assert line(panels["success"], "baseline", number).y.tolist() == [0.25, 0.25]


def test_the_interval_of_a_success_rate_is_where_a_test_of_95_percent_ends(tiny: ShownRun) -> None:
    """Wilson's ends are the shares p with |observed - p| = z standard deviations of p."""
    shown = line(panels_by_name(tiny)["success"], "main")
    assert shown.interval is not None
    episodes = tiny.config.evaluation.episodes
    for share, *ends in zip(shown.y, *shown.interval, strict=True):
        for end in ends:
            if 0 < end < 1:
                deviation = math.sqrt(end * (1 - end) / episodes)
                assert abs(share - end) == pytest.approx(Z95 * deviation, rel=1e-4)


def test_the_interval_of_a_mean_reward_is_that_of_its_episodes() -> None:
    rewards = np.random.default_rng(0).normal(size=20)
    low, high = reward_interval(evaluated(64, rewards)) or (0, 0)
    half = Z95 * np.std(rewards, ddof=1) / math.sqrt(20)
    np.testing.assert_allclose((low, high), (rewards.mean() - half, rewards.mean() + half))
    assert reward_interval(evaluated(64, rewards[:1])) is None


def test_terms_memory_and_disk_are_those_of_the_events_and_the_forecast(tiny: ShownRun) -> None:
    panels = panels_by_name(tiny)
    recorded = lines_of(tiny.run_dir, "curves_recorded")
    term = next(each for each in panels["reward-terms"].lines if each.label == "damage_taken")
    found = [e for e in recorded if "game/reward/damage_taken" in e["values"]]
    assert term.x.tolist() == [e["timesteps"] for e in found]
    assert term.y.tolist() == [e["values"]["game/reward/damage_taken"] for e in found]
    memory = [e["values"]["resources/ram_gib"] * GIB for e in recorded[1:]]
    np.testing.assert_allclose(line(panels["memory"], "main").y, memory)
    forecast = json.loads(tiny.run_dir.preflight.read_text(encoding="utf-8"))
    predicted = forecast["ram"]["predicted_peak_bytes"]
    assert line(panels["memory"], "forecast").y.tolist() == [predicted, predicted]
    saved = lines_of(tiny.run_dir, "checkpoint_saved")
    assert line(panels["disk"], "main").y.tolist() == [e["run_bytes"] for e in saved]
    rows = forecast["disk"]["plan"]["rows"]
    assert line(panels["disk"], "forecast").x.tolist() == [row["at"] for row in rows]
    assert line(panels["disk"], "forecast").y[-1] == sum(
        part["bytes"] for part in forecast["disk"]["parts"]
    )


def test_the_size_of_the_run_directory_is_that_of_its_files(tiny: ShownRun) -> None:
    """What was written after the last checkpoint is small."""
    now = sum(path.stat().st_size for path in tiny.run_dir.root.rglob("*") if path.is_file())
    then = lines_of(tiny.run_dir, "checkpoint_saved")[-1]["run_bytes"]
    assert 0 <= now - then < 4_000


@pytest.mark.parametrize("axis", ["timesteps", "frames", "hours"])
def test_every_axis_shows_the_same_values_in_the_same_order(tiny: ShownRun, axis: str) -> None:
    plain, other = panels_by_name(tiny), panels_by_name(tiny, axis=axis)
    assert plain.keys() == other.keys()
    for name, panel in plain.items():
        for one, two in zip(panel.lines, other[name].lines, strict=True):
            assert np.all(np.diff(two.x) >= 0)
            if one.style != "forecast":
                np.testing.assert_array_equal(one.y, two.y)
    if axis == "frames":
        shown, plainly = (line(each["success"], "main").x for each in (other, plain))
        np.testing.assert_array_equal(shown, plainly * tiny.config.env.frame_skip)


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(second: float) -> datetime:
    return NOON + timedelta(seconds=second)


def evaluated(timesteps: int, rewards: Any = (0.0, 1.0), **more: Any) -> Evaluated:
    return Evaluated(
        timesteps=timesteps,
        policy_timesteps=timesteps,
        episodes=len(rewards),
        mean_reward=float(np.mean(rewards)),
        std_reward=float(np.std(rewards)),
        success_rate=None,
        mean_length=5,
        seconds=2,
        **more,
    )


def begun(second: float) -> Begun:
    return Begun(
        time=at(second), run="r", algorithm="ppo", total_timesteps=400, device="cpu", precision="x"
    )


def resumed(second: float, timesteps: int) -> Resumed:
    return Resumed(
        time=at(second),
        timesteps=timesteps,
        run="r",
        checkpoint=f"{timesteps:012d}",
        total_timesteps=400,
        device="cpu",
        precision="x",
        superseded_from_bytes=10**9,
        restored=(),
    )


def curves(second: float, timesteps: int, **more: Any) -> CurvesRecorded:
    return CurvesRecorded(time=at(second), timesteps=timesteps, values={"a": 1.0}, **more)


def test_hours_leave_out_the_time_between_an_end_and_a_resume() -> None:
    events: list[Event] = [
        begun(0),
        curves(3_600, 100),
        Ended(time=at(3_960), timesteps=100, reason="until", exit_code=0),
        resumed(90_000, 100),
        curves(91_800, 200, waited_frames=50),
        RolloutEnded(time=at(93_600), timesteps=300, timesteps_per_s=1, waited_frames=80),
    ]
    clock = run_clock(events, frame_skip=8)
    assert clock.at([0, 100, 200, 300], "hours").tolist() == pytest.approx([0, 1, 1.6, 2.1])
    assert clock.at([0, 100, 200, 300], "frames").tolist() == [0, 800, 1_650, 2_480]
    assert clock.at([150], "hours").tolist() == pytest.approx([1.3])


def shown_events(tmp_path: Path, events: list[Event]) -> ShownRun:
    run_dir = write_run(tmp_path / "run", seed=0, final=None)
    run_dir.events.unlink()
    with EventFile(run_dir.events) as file:
        for event in events:
            file.add(event)
    return read_run(run_dir.root)


def test_a_run_with_a_pool_shows_success_by_beginning(tmp_path: Path) -> None:
    values = {"pool/success_rate": 0.5, "pool/success_rate_from_start": 0.1}
    later = {"pool/success_rate": 0.75}
    (tmp_path / "pool").mkdir()
    (tmp_path / "other").mkdir()
    pooled = shown_events(
        tmp_path / "pool",
        [
            begun(0),
            CurvesRecorded(time=at(10), timesteps=100, values=values),
            CurvesRecorded(time=at(20), timesteps=200, values=later),
        ],
    )
    other = shown_events(tmp_path / "other", [begun(0), curves(10, 100)])
    assert "success-by-beginning" not in panels_by_name(other)
    panel = panels_by_name(pooled)["success-by-beginning"]
    found = {each.label: (each.x.tolist(), each.y.tolist()) for each in panel.lines}
    assert found == {
        "from the pool": ([100, 200], [0.5, 0.75]),
        "from the start states": ([100], [0.1]),
    }


def test_speed_counts_neither_evaluations_nor_checkpoints_nor_the_time_away(tmp_path: Path) -> None:
    saved = CheckpointSaved(
        time=at(25), timesteps=200, checkpoint="x", n_bytes=1, seconds=1, contents=()
    )
    run = shown_events(
        tmp_path,
        [begun(0), curves(10, 100), curves(20, 200), evaluated(200, time=at(22)), saved,
         curves(33, 300), resumed(1_000, 300), curves(1_010, 400), curves(1_015, 450)],
    )  # fmt: skip
    curve = speed_curve(run, "timesteps")
    assert curve.x.tolist() == [200, 300, 450]
    assert curve.y.tolist() == [100 / 10, 100 / (13 - 2 - 1), 50 / 5]


def test_of_two_ways_to_act_each_has_a_line_and_the_final_evaluation_a_point(
    tmp_path: Path,
) -> None:
    run = shown_events(
        tmp_path,
        [evaluated(64, (1.0, 2.0)), evaluated(64, (3.0, 9.0), deterministic=False),
         evaluated(128, (2.0, 4.0)), evaluated(128, (9.0, 9.5), deterministic=False),
         evaluated(128, (5.0, 7.0), is_final=True)],
    )  # fmt: skip
    panels = panels_by_name(run)
    assert "success" not in panels
    likeliest, drawn = (line(panels["reward"], "main", n) for n in (0, 1))
    assert (likeliest.y.tolist(), drawn.y.tolist()) == ([1.5, 3], [6, 9.25])
    assert likeliest.colour != drawn.colour
    final = line(panels["reward"], "final")
    assert (final.x.tolist(), final.y.tolist()) == ([128], [6])
    # 6 is not above 1.5 by more than the standard error of 3.04, and 9.25 is above 3
    assert [event.mean_reward for event in run.better_evaluations] == [6.0, 9.25]


def test_seeds_of_one_config_share_a_colour_and_other_configs_have_their_own(
    tmp_path: Path,
) -> None:
    for seed in (1, 2, 3):
        curve = (0.1, 0.5, 0.1 * seed)
        write_run(tmp_path / f"ppo_{seed}", seed=seed, final=0.9, curve=curve)
    write_run(tmp_path / "slow", seed=1, final=None, overrides=["algorithm.gamma=0.9"])
    names = ("ppo_1", "slow", "ppo_2", "ppo_3")
    groups = grouped_runs([read_run(tmp_path / name) for name in names])
    assert [(group.name, [run.name for run in group.runs]) for group in groups] == [
        ("ppo", ["ppo_1", "ppo_2", "ppo_3"]),
        ("slow", ["slow"]),
    ]
    (success, _) = run_panels(groups, "timesteps")
    seeds = [each for each in success.lines if each.style == "seed"]
    assert [each.y.tolist() for each in seeds] == [[0.1, 0.5, 0.1 * seed] for seed in (1, 2, 3)]
    mean = line(success, "main")
    assert mean.label == "ppo (3 seeds)"
    np.testing.assert_allclose(mean.y, [0.1, 0.5, 0.2])
    assert {each.colour for each in seeds} == {mean.colour} == {0}
    assert line(success, "main", 1).colour == 1


@given(n=st.integers(1, 2_000))
def test_a_thinned_curve_keeps_its_mean_and_its_order(n: int) -> None:
    rng = np.random.default_rng(n)
    curve = SeedCurve(np.sort(rng.random(n)), rng.normal(size=n))
    found = thinned(curve)
    assert len(found.x) == min(n, 200)
    assert np.all(np.diff(found.x) >= 0)
    edges = [n * place // len(found.x) for place in range(len(found.x) + 1)]
    for place, (start, end) in enumerate(itertools.pairwise(edges)):
        assert found.y[place] == pytest.approx(curve.y[start:end].mean())


def test_a_single_curve_is_no_mean_and_curves_apart_have_none() -> None:
    one = SeedCurve(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    far = SeedCurve(np.array([5.0, 6.0]), np.array([1.0, 2.0]))
    assert [each.style for each in seed_lines("a", 0, [one])] == ["main"]
    apart = list(seed_lines("a", 0, [one, far]))
    assert [(each.style, each.label) for each in apart] == [("seed", "a"), ("seed", "")]


@pytest.mark.parametrize("n", [4, 5])
def test_the_mean_of_five_seeds_has_students_interval_and_that_of_four_has_none(n: int) -> None:
    x = np.array([0.0, 1.0])
    curves = [SeedCurve(x, np.array([seed, 2.0 * seed])) for seed in range(n)]
    *_, mean = seed_lines("a", 0, curves)
    if n == 4:
        assert mean.interval is None
        return
    # t(0.975, 4) = 2.776; 0, 1, 2, 3, 4 deviate by sqrt(2.5)
    half = 2.776 * np.sqrt(2.5 / 5)
    assert mean.interval is not None
    low, high = mean.interval
    assert low == pytest.approx([2 - half, 4 - 2 * half], abs=0.02)
    assert high == pytest.approx([2 + half, 4 + 2 * half], abs=0.02)


def test_a_run_that_has_recorded_nothing_has_no_panels(tmp_path: Path) -> None:
    run = shown_events(tmp_path, [])
    assert run_panels([RunGroup("run", (run,))], "hours") == []
