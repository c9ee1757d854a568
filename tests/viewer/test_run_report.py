"""The report of a run as a person without a network reads it."""

import json
import os
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from game_rl.events import (
    CurvesRecorded,
    HintGiven,
    MilestoneReached,
    PoolCounted,
    PoolLevel,
    StartStateResult,
    Warned,
)
from game_rl.events.event_log import EventFile
from game_rl.files.run_dir import RunDir
from game_rl.places.place_counts import PlaceCounts, Visits
from game_rl.playback.clip import write_mp4
from game_rl.viewer import report_sections
from game_rl.viewer.followed_run import machine_use
from game_rl.viewer.report_sections import places_section
from game_rl.viewer.run_report import run_report, state_of
from game_rl.viewer.run_story import in_percent
from game_rl.viewer.shown_runs import ShownRun, read_run
from tests.experiments.compare.fake_runs import write_run
from tests.places.test_screen_map import traced_peak, write_rooms
from tests.tiny_run import MakeConfig, train_once
from tests.viewer.html_page import read_page

SPITEFUL = "<script>alert('\"&')<-script>"


@pytest.fixture
def tiny(make_config: MakeConfig) -> ShownRun:
    return read_run(train_once(make_config("run", "recording={episodes: 1, max_s: 1}")).root)


def test_it_is_one_page_without_scripts_and_without_references_to_others(tiny: ShownRun) -> None:
    found = read_page(run_report(tiny))
    assert found.tags.count("svg") >= 7
    clip, still = [link for link in found.links if link.startswith("data:")]
    assert clip.startswith("data:image/gif;base64,")
    assert still.startswith("data:image/png;base64,")  # the same on paper


def test_its_numbers_are_those_of_the_run(tiny: ShownRun) -> None:
    text = read_page(run_report(tiny)).text
    for line in tiny.run_dir.events.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["event"] == "evaluated":
            assert f"{event['policy_timesteps']:,}" in text
            assert f"{event['mean_reward']:.2f} ± {event['std_reward']:.2f}" in text
    assert tiny.final is not None
    assert f"{tiny.final.mean_reward:.2f}" in text
    counts = tiny.final.action_counts
    assert sum(counts) == tiny.final.episodes * round(tiny.final.mean_length)
    for name, count in zip(tiny_actions(tiny), counts, strict=True):
        assert f"{name}{100 * count / sum(counts):.1f} %" in text
    for part in ("algorithm.n_steps", "game-rl train again.yaml", "the run fits the machine"):
        assert part in text
    assert "0–66" in text  # no success in two episodes


def test_a_printed_report_has_its_bars_and_nothing_twice(tiny: ShownRun) -> None:
    html = run_report(tiny)
    assert re.search(r'<details class="whole"><summary>All \d+ events</summary>', html)
    printed = html.partition("@media print {\n")[2]
    assert "details.whole { display: none; }" in printed
    assert re.search(r"\.bars \.bar i \{[^}]*print-color-adjust: exact;", printed)
    assert "<details><summary>The whole config" in html  # which stands nowhere else


def tiny_actions(run: ShownRun) -> list[str]:
    assert run.checkpoint_state is not None
    actions = run.checkpoint_state.game["actions"]
    assert isinstance(actions, dict)
    return list(actions)


def test_names_and_texts_of_others_are_escaped(tmp_path: Path) -> None:
    run_dir = write_run(tmp_path / SPITEFUL, seed=0, final=None, failure=SPITEFUL)
    with EventFile(run_dir.events) as events:
        events.add(Warned(text=SPITEFUL))
    page = run_report(read_run(run_dir.root))
    assert "<script" not in page
    assert read_page(page).text.count(SPITEFUL) >= 3


def test_a_run_without_anything_yet_says_what_is_missing(tmp_path: Path) -> None:
    run_dir = write_run(tmp_path / "run", seed=0, final=None)
    run_dir.events.unlink()
    text = read_page(run_report(read_run(run_dir.root))).text
    for part in (
        "No evaluation yet: the first one is due at timestep 64.",
        "No clip was recorded.",
        "no preflight.json",
        "no events.jsonl yet",
        "Nothing is recorded yet",
        "there is none yet",
        "not begun",
    ):
        assert part in text


DAMAGED = ('{"ram": ', "[]", '{"ram": 1, "disk": {"plan": {"rows": [{}]}, "parts": [{}]}}')


@pytest.mark.parametrize("content", [*DAMAGED, '{"ram_peak_bytes": 3, "findings": ["x"]}'])
def test_files_that_are_damaged_or_of_another_version_are_as_if_missing(
    tmp_path: Path, content: str
) -> None:
    run_dir = write_run(tmp_path / "run", seed=0, final=0.9)
    for path in (run_dir.preflight, run_dir.footprint):
        path.write_text(content, encoding="utf-8")
    read_page(run_report(read_run(run_dir.root)))


def test_every_file_of_a_run_may_be_missing_but_its_config(tiny: ShownRun) -> None:
    root = tiny.run_dir.root
    for name in ("events.jsonl", "checkpoints", "run.json", "videos"):
        path = root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        read_page(run_report(read_run(root)))
    for path in root.rglob("*"):
        if path.is_file() and path != tiny.run_dir.config:
            path.unlink()
    read_page(run_report(read_run(root)))


def test_a_clip_that_is_too_large_is_named(tiny: ShownRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_sections, "_LARGEST_CLIP_BYTES", 10)
    found = read_page(run_report(tiny))
    assert not [link for link in found.links if link.startswith("data:")]
    assert "best.gif has" in found.text


def test_the_newest_clip_is_shown_if_there_is_none_of_the_best(tmp_path: Path) -> None:
    run_dir = write_run(tmp_path / "run", seed=0, final=0.9)
    run_dir.videos.mkdir()
    for second, name in enumerate(("old.gif", "new.mp4")):
        (run_dir.videos / name).write_bytes(name.encode())
        os.utime(run_dir.videos / name, (second, second))
    found = read_page(run_report(read_run(run_dir.root)))
    (clip,) = [link for link in found.links if link.startswith("data:")]
    assert clip.startswith("data:video/mp4")  # it is damaged, and has no picture


def test_an_mp4_has_a_picture_unless_the_package_is_missing_that_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = write_run(tmp_path / "run", seed=0, final=0.9)
    run_dir.videos.mkdir()
    write_mp4([np.full((144, 160, 3), 90, np.uint8)], 0.1, run_dir.videos / "best.mp4")
    found = read_page(run_report(read_run(run_dir.root)))
    clip, poster, still = [link for link in found.links if link.startswith("data:")]
    assert clip.startswith("data:video/mp4;base64,")
    assert poster == still
    assert still.startswith("data:image/png;base64,")
    assert "game_rl[video]" not in found.text
    monkeypatch.setitem(sys.modules, "av", None)
    found = read_page(run_report(read_run(run_dir.root)))
    assert [link for link in found.links if link.startswith("data:")] == [clip]
    assert "pip install 'game_rl[video]'" in found.text


@pytest.mark.slow
def test_a_map_is_drawn_from_fewer_pixels_than_its_screens_have(tmp_path: Path) -> None:
    run_dir = write_run(tmp_path / "run", seed=0, final=0.9)
    counts = PlaceCounts(("room", "x", "y"), {})
    counts.add(Visits(np.array([[0, 3, 4]]), np.array([1])), until=1)
    run_dir.places.write_bytes(counts.to_bytes())
    size = write_rooms(run_dir.place_screens, 40)
    run = read_run(run_dir.root)
    assert traced_peak(lambda: places_section(run)) < size


def test_milestones_and_hints_have_their_tables(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", seed=0, final=0.9).root)
    without = read_page(run_report(run)).text
    assert "Milestones" not in without
    milestone = MilestoneReached(
        timesteps=4_321,
        kind="reward_term",
        name="fight_won",
        text="fight_won was earned",
        hours=0.5,
    )
    hint = HintGiven(
        timesteps=5_432, name="collapsed", text="the entropy collapsed", key="algorithm.ent_coef"
    )
    text = read_page(run_report(replace(run, events=(*run.events, milestone, hint)))).text
    for part in ("fight_won was earned4,32130 min", "5,432the entropy collapsedalgorithm.ent_coef"):
        assert part in text


def test_a_pool_has_a_table_by_the_reward_of_its_states(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", seed=0, final=0.9).root)
    assert "Pool by reward" not in read_page(run_report(run)).text
    level = PoolLevel(
        least_reward=1.5, most_reward=2, states=7, episodes=30, successes=12, mean_reward=0.625
    )
    events = (
        CurvesRecorded(timesteps=5_000, values={"pool/states": 7}),
        PoolCounted(timesteps=5_000, levels=(level,)),
    )
    text = read_page(run_report(replace(run, events=(*run.events, *events)))).text
    assert f"1.5 to 2730{in_percent(0.4)}0.62" in text


def test_start_states_have_their_shares_with_intervals(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", seed=0, final=0.9).root)
    assert "By start state" not in read_page(run_report(run)).text
    assert run.final is not None
    states = {
        "level_1": StartStateResult(episodes=20, successes=18, mean_reward=1.25),
        "level_2": StartStateResult(episodes=100, successes=90, mean_reward=-2.5),
    }
    apart = run.final.model_copy(update={"by_start_state": states})
    text = read_page(run_report(replace(run, events=(*run.events, apart)))).text
    # the intervals are in tables of textbooks
    assert "level_190 %70–971.2520level_290 %83–94-2.50100" in text


@pytest.mark.parametrize(
    ("final", "failure", "words"),
    [(0.9, None, "complete"), (None, "it broke", "failed"), (None, None, "killed")],
)
def test_the_state_is_that_of_the_last_event(
    tmp_path: Path, final: float | None, failure: str | None, words: str
) -> None:
    run_dir = write_run(tmp_path / "run", seed=0, final=final, failure=failure)
    assert state_of(read_run(run_dir.root))[0] == words
    with RunDir(run_dir.root).locked():
        assert state_of(read_run(run_dir.root))[0] == "training"


@pytest.mark.parametrize(
    "plan",
    [
        {"findings": 3, "ram": {"parts": [True, {"bytes": "x"}, {}]}, "disk": [1]},
        {"findings": [3], "ram": {"parts": 7}, "disk": {"parts": [None], "plan": {"rows": [[]]}}},
        {"disk": {"plan": {"rows": [{"at": "a", "checkpoints": "b", "others": "c"}]}}},
        "[" * 100_000,
        '{"ram": 1e999}',
        '{"ram": {"parts": [{"bytes": ' + "9" * 40 + "}]}}",
    ],
)
def test_a_plan_and_a_footprint_of_another_form_are_left_out(
    plan: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_sections, "panel_svg", lambda _: "<svg/>")
    run_dir = write_run(tmp_path / "run", seed=0, final=0.9)
    text = plan if isinstance(plan, str) else json.dumps(plan)
    for file in (run_dir.preflight, run_dir.footprint):
        file.write_text(text, encoding="utf-8")
    assert "Forecast and footprint" in run_report(read_run(run_dir.root))
    assert machine_use(run_dir, {})["ram"]["peak"] is None
