"""A run's page from its files, while they grow."""

import json
import tempfile
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.events import (
    Begun,
    CheckpointSaved,
    CurvesRecorded,
    Ended,
    Evaluated,
    Event,
    HintGiven,
    LakesFollowed,
    MilestoneReached,
    Resumed,
    RolloutEnded,
    StartStateResult,
    StopConditionMet,
)
from game_rl.events.event_log import EventFile, EventFollower, parse_event
from game_rl.events.run_view import RunView
from game_rl.files.run_dir import RunDir, locked
from game_rl.places.place_counts import PlaceCounts, Visits
from game_rl.statistics import wilson_interval
from game_rl.viewer.event_words import happening
from game_rl.viewer.followed_run import (
    MOST_EVENTS,
    MOST_POINTS,
    FollowedRun,
    going_in_circles,
    newest_values,
    run_summary,
)
from tests.viewer.live_run import RUN_ID, first_events, make_run

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def rollout(timesteps: int, *, minutes: float = 0.0, speed: float = 100.0) -> RolloutEnded:
    time = NOON + timedelta(minutes=minutes)
    return RolloutEnded(time=time, timesteps=timesteps, timesteps_per_s=speed)


def begun(total: int = 100_000) -> Begun:
    return Begun(time=NOON, run=RUN_ID, algorithm="ppo", total_timesteps=total, frame_skip=8,
                 device="cpu", precision="float32")  # fmt: skip


def resumed(timesteps: int, end: int, *, minutes: float = 0.0) -> Resumed:
    return Resumed(time=NOON + timedelta(minutes=minutes), timesteps=timesteps, run=RUN_ID,
                   checkpoint=f"{timesteps:012d}", total_timesteps=100_000, frame_skip=8,
                   device="cpu", precision="float32", superseded_from_bytes=end,
                   restored=())  # fmt: skip


def naive(content: bytes) -> list[Event]:
    """Read the log as a person would: line by line, each start crossing out what it supersedes."""
    kept: list[tuple[int, Event]] = []
    at = 0
    for line in content.split(b"\n")[:-1]:
        event = parse_event(line)
        if isinstance(event, Begun):
            kept = []
        if isinstance(event, Resumed):
            kept = [
                (start, old)
                for start, old in kept
                if start < event.superseded_from_bytes
                or (isinstance(old, CheckpointSaved) and old.checkpoint == event.checkpoint)
            ]
        if event is not None:
            kept.append((at, event))
        at += len(line) + 1
    return [event for _, event in kept]


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_following_a_growing_log_gives_what_reading_it_whole_gives(data: st.DataObject) -> None:
    lines: list[bytes] = []
    for number in range(data.draw(st.integers(1, 12))):
        size = sum(len(line) for line in lines)
        kind = data.draw(st.sampled_from(["rollout", "rollout", "begun", "resumed", "torn"]))
        event: Event = rollout(number)
        if kind == "begun":
            event = begun()
        elif kind == "resumed":
            event = resumed(number, data.draw(st.integers(0, size)))
        text = event.model_dump_json(exclude_none=True).encode()
        lines.append(text[: len(text) // 2] + b"\n" if kind == "torn" else text + b"\n")
    content = b"".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=6)))
    _follow_in_pieces(content, [*cuts, len(content)])


def _follow_in_pieces(content: bytes, cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = RunDir(Path(folder))
        follower = EventFollower(run)
        for cut in cuts:
            run.events.write_bytes(content[:cut])
            before = [event for _, event in follower.events]
            cuts_before = follower.cuts
            new = follower.read()
            found = [event for _, event in follower.events]
            assert found == naive(content[:cut])
            if follower.cuts == cuts_before:
                assert found == [*before, *(event for _, event in new)]
            assert all(content[at:].startswith(b'{"time"') for at, _ in follower.events)


def test_another_run_at_the_same_place_is_followed_from_its_start(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    follower = EventFollower(run)
    follower.read()
    run.events.unlink()
    with EventFile(run.events) as file:
        file.add(begun())
    follower.read()
    assert [event.event for _, event in follower.events] == ["begun"]
    assert follower.replacements == 1


def test_another_run_that_is_as_long_or_longer_is_followed_from_its_start(tmp_path: Path) -> None:
    """Its file may even have the number of the old one, which the disk gives away again."""
    run = make_run(tmp_path / "run")
    follower = EventFollower(run)
    follower.read()
    other = [begun(), *(rollout(n) for n in range(1, 40))]
    content = b"".join(event.model_dump_json(exclude_none=True).encode() + b"\n" for event in other)
    assert len(content) > run.events.stat().st_size
    with run.events.open("r+b") as file:
        file.write(content)
    assert [event for _, event in follower.read()] == other
    assert [event for _, event in follower.events] == other
    assert follower.replacements == 1
    follower.read()
    assert follower.replacements == 1


def test_how_a_run_has_ended() -> None:
    met = StopConditionMet(text="success of 95 %")
    ended = Ended(timesteps=2_048, reason="completed", exit_code=0)
    found = run_summary(RunView([*first_events(), met, ended], False))
    assert (found["state"], found["ended"]["text"]) == ("completed", "success of 95\u00a0%")
    assert run_summary(RunView([*first_events(), ended], True))["state"] == "training"
    killed = run_summary(RunView(first_events(), False))
    assert (killed["state"], killed["ended"], killed["seconds_left"]) == (
        "killed",
        None,
        None,
    )
    failed = Ended(reason="failed", exit_code=1, text="a loss became NaN")
    assert run_summary(RunView([failed], False))["ended"]["text"] == "a loss became NaN"


def test_evaluations_have_wilsons_interval() -> None:
    found = run_summary(RunView(first_events(), False))["evaluation"]
    assert found["success_interval"] == wilson_interval(8, 20)


def test_curves_are_thinned_and_end_at_their_last_point(tmp_path: Path) -> None:
    events = [rollout(n, speed=float(n)) for n in range(1, 3_001)]
    run = FollowedRun(make_run(tmp_path / "run", [begun(), *events]), "run")
    run.refresh()
    curve = run.curves()["training/timesteps_per_s"]
    assert len(curve["timesteps"]) == MOST_POINTS
    assert (curve["timesteps"][0], curve["timesteps"][-1]) == (1, 3_000)
    assert curve["values"] == [float(t) for t in curve["timesteps"]]


def test_a_long_run_keeps_few_events_and_the_newest_of_each_kind(tmp_path: Path) -> None:
    events: list[Event] = [begun()]
    for n in range(1, 4_001):
        events += [
            rollout(n),
            LakesFollowed(timesteps=n, rows=n, newest_age_s=1.0, own_drawn=n, drawn=n),
        ]
    run = FollowedRun(make_run(tmp_path / "run", events), "run")
    run.refresh()
    assert len(run.events) <= MOST_EVENTS
    assert run.state["timesteps"] == 4_000
    assert run.state["timesteps_per_s"] == 100
    kinds = [event.event for event in run.events]
    assert (kinds.count("begun"), kinds.count("lakes_followed")) == (1, 1)
    assert kinds.count("rollout_ended") == 2_001


def test_memory_and_disk_stand_against_their_forecast(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run")
    parts = [{"name": "Lake", "bytes": 300}]
    plan = {
        "ram": {"predicted_peak_bytes": 500, "limit_bytes": 900},
        "vram": None,
        "disk": {"predicted_total_bytes": 4_000, "parts": parts},
    }
    run_dir.preflight.write_text(json.dumps(plan), encoding="utf-8")
    run_dir.footprint.write_text('{"ram_peak_bytes": {"measured": 450}}', encoding="utf-8")
    run_dir.lake.mkdir()
    (run_dir.lake / "segment").write_bytes(bytes(123))
    run = FollowedRun(run_dir, "run")
    machine = run.summary()["machine"]
    assert machine["ram"] == {
        "predicted": 500,
        "limit": 900,
        "now": None,
        "free": None,
        "peak": 450,
    }
    assert machine["lake"] == {"now": 123, "predicted": 300}
    assert machine["disk"]["predicted"] == 4_000
    files = [path for path in run_dir.root.rglob("*") if path.is_file()]
    assert machine["disk"]["now"] == sum(path.stat().st_size for path in files)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"ram": 3}', '{"ram": {"predicted_peak_bytes": "x"}}']
)
def test_a_damaged_plan_is_as_none(tmp_path: Path, content: str) -> None:
    run_dir = make_run(tmp_path / "run")
    run_dir.preflight.write_text(content, encoding="utf-8")
    run_dir.config.write_text(content, encoding="utf-8")
    summary = FollowedRun(run_dir, "run").summary()
    assert summary["machine"]["ram"]["predicted"] is None
    assert summary["n_envs"] is None


def test_whoever_writes_to_the_run_trains_it(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run")
    run = FollowedRun(run_dir, "run")
    run.refresh()
    assert run.summary()["state"] == "killed"
    with locked(run_dir.root / "lock", busy="busy"):
        assert run.summary()["state"] == "training"


def test_frequent_events_are_not_listed_and_unknown_kinds_have_a_line() -> None:
    assert happening(rollout(1)) is None

    class Odd(RolloutEnded):
        event: str = "something_new"  # type: ignore[assignment]
        text: str = "that a later version tells"

    line = happening(Odd(timesteps=1, timesteps_per_s=1.0))
    assert line is not None
    assert (line.title, line.text) == ("something new", "that a later version tells")


def test_curves_milestones_and_hints_are_shown(tmp_path: Path) -> None:
    def curves(timesteps: int, **values: float) -> CurvesRecorded:
        return CurvesRecorded(timesteps=timesteps, values=values)

    def hint(timesteps: int, text: str) -> HintGiven:
        return HintGiven(timesteps=timesteps, name="stuck", text=text, key="gamma")

    key = MilestoneReached(
        timesteps=5, kind="variable", name="key", text="the first key", hours=0.1
    )
    run = FollowedRun(make_run(tmp_path / "run", [begun()]), "run")
    run.refresh()
    later: list[Event] = [
        curves(10, a=1.0),
        curves(20, a=2.0, b=3.0),
        key,
        hint(10, "it is stuck"),
        hint(20, "stuck in 25% of episodes"),
    ]
    run._follower.events += [(10**6 + n, event) for n, event in enumerate(later)]
    assert newest_values(run.events) == {"a": 2.0, "b": 3.0}
    summary = run.summary()
    assert [each["text"] for each in summary["milestones"]] == ["the first key"]
    assert [each["text"] for each in summary["hints"]] == ["stuck in 25\u00a0% of episodes"]
    lines = [(line["title"], line["tone"]) for line in run.happenings(10**5)]
    assert lines == [("milestone", "good"), ("hint", "bad"), ("hint", "bad")]


def test_the_map_of_places_has_what_was_counted(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run")
    run = FollowedRun(run_dir, "run")
    assert run.places() == {}
    counts = PlaceCounts(("map", "x", "y"), {})
    counts.add(Visits(np.array([[3, 10, 20], [3, 12, 21]]), np.array([1, 9])))
    run_dir.places.write_bytes(counts.to_bytes())
    (layer,) = run.places()["layers"]
    assert (layer["map_id"], layer["x0"], layer["y0"], layer["most"]) == ([3], 10, 20, 9)
    levels = np.frombuffer(b64decode(layer["levels"]), np.uint8)
    shown = levels.reshape(layer["height"], layer["width"])
    assert (shown > 0).tolist() == [[True, False, False], [False, False, True]]
    assert shown.max() == 255
    run_dir.places.write_bytes(b"damaged")
    assert run.places() == {}


def test_time_between_sessions_is_no_training() -> None:
    events: list[Event] = [begun(), rollout(1_000, minutes=5), rollout(2_000, minutes=9)]
    assert run_summary(RunView(events, False))["trained_s"] == 9 * 60
    later: list[Event] = [resumed(2_000, 10**6, minutes=500), rollout(3_000, minutes=503)]
    assert run_summary(RunView([*events, *later], False))["trained_s"] == (9 + 3) * 60
    assert run_summary(RunView([], False))["trained_s"] == 0


def test_the_term_that_is_most_earned_in_loops_is_named() -> None:
    found = going_in_circles(
        {"game/stuck/episodes": 0.3, "game/looped/apple": 0.1, "game/looped/flag": 0.7}
    )
    assert found == {"stuck": 0.3, "term": "flag", "looped": 0.7}
    assert going_in_circles({"train/loss": 1.0}) == {"stuck": None, "term": None, "looped": None}


@pytest.mark.parametrize(
    ("text", "states"),
    [
        (
            "game: duel\nenv: {n_envs: 2, start_states: [level_1, level_2]}\n",
            ["level_1", "level_2"],
        ),
        ("game: duel\nenv: {n_envs: 2, start_states: null}\n", []),
        ("game: duel\nenv: {n_envs: 2}\n", []),
        ("[]\n", []),
    ],
)
def test_start_states_and_settings_are_those_of_the_config(
    tmp_path: Path, text: str, states: list[str]
) -> None:
    run = make_run(tmp_path / "run")
    run.config.write_text(text, encoding="utf-8")
    followed = FollowedRun(run, "run")
    followed.refresh()
    assert followed.state["start_states"] == states
    assert followed.settings() == {"text": text}
    run.config.unlink()
    assert followed.settings() == {"text": ""}


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("{name: dqn}", ""),
        ("{memory: null}", ""),
        ("{memory: {kind: lstm, size: 256, layers: 1}}", "an LSTM of 256 units"),
        ("{memory: {kind: gru, size: 64, layers: 2}}", "a GRU of 64 units in 2 layers"),
        ("{memory: {kind: 3}}", ""),
        ("7", ""),
    ],
)
def test_what_an_agent_remembers_with_is_that_of_the_config(
    tmp_path: Path, section: str, words: str
) -> None:
    run = make_run(tmp_path / "run")
    text = f"game: duel\nenv: {{n_envs: 2}}\nalgorithm: {section}\n"
    run.config.write_text(text, encoding="utf-8")
    followed = FollowedRun(run, "run")
    followed.refresh()
    assert followed.state["memory"] == words


@pytest.mark.parametrize("ways", [(True,), (False,), (True, False)])
def test_curves_by_start_state_are_those_of_one_way_to_act(
    tmp_path: Path, ways: tuple[bool, ...]
) -> None:
    events: list[Event] = [begun()]
    for timesteps in (1_000, 2_000):
        for way in ways:
            wins = {"level_1": timesteps // 1_000 + (4 if way else 0), "level_2": 0}
            by_state = {
                name: StartStateResult(episodes=10, successes=won, mean_reward=1.0)
                for name, won in wins.items()
            }
            events.append(
                Evaluated(timesteps=timesteps, policy_timesteps=timesteps, episodes=20,
                          deterministic=way, mean_reward=0.0, std_reward=1.0, mean_length=9,
                          seconds=1, success_rate=0.1, by_start_state=by_state)
            )  # fmt: skip
    followed = FollowedRun(make_run(tmp_path / "run", events), "run")
    followed.refresh()
    curves = followed.curves()
    added = 0.4 if ways[0] else 0.0
    assert curves["eval/success_rate/level_1"] == {
        "timesteps": [1_000, 2_000],
        "values": [pytest.approx(0.1 + added), pytest.approx(0.2 + added)],
    }
    assert curves["eval/success_rate/level_2"]["values"] == [0.0, 0.0]
