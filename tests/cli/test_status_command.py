"""`game-rl status` of a run: milestones, hints and stuck episodes."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.events import (
    BaselinePlayed,
    Begun,
    CurvesRecorded,
    HintGiven,
    MilestoneReached,
    PoolCounted,
    PoolLevel,
    RolloutEnded,
)
from game_rl.events.event_log import EventFile
from game_rl.files.run_dir import RunDir


@pytest.fixture
def root(tmp_path: Path) -> Path:
    run_dir = RunDir(tmp_path / "run")
    run_dir.root.mkdir()
    run_dir.identity()
    run_dir.config.write_text("game: duel\n", encoding="utf-8")
    with EventFile(run_dir.events) as file:
        file.add(
            Begun(
                run="r",
                algorithm="ppo",
                total_timesteps=500,
                frame_skip=8,
                device="cpu",
                precision="float32",
            )
        )
        file.add(
            BaselinePlayed(
                timesteps=0,
                action="kick",
                episodes=9,
                mean_reward=-1.5,
                std_reward=1.0,
                success_rate=0.0,
                mean_length=9,
                seconds=1,
            )
        )
        for timesteps, value in ((16, 1), (64, 2)):
            file.add(
                MilestoneReached(
                    timesteps=timesteps,
                    kind="variable",
                    name="badges",
                    value=value,
                    text=f"badges reached {value}",
                    hours=0.25,
                )
            )
        for timesteps in (100, 400):
            file.add(
                HintGiven(timesteps=timesteps, name="x", text=f"lower gamma, {timesteps}", key="k")
            )
        for share in (0.9, 0.2, 0.2, 0.2, 0.2, 0.2):
            file.add(CurvesRecorded(timesteps=400, values={"game/stuck/episodes": share}))
    return run_dir.root


def test_it_shows_the_newest_milestones_hints_and_stuck_episodes(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", str(root)]) == 0
    shown = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "hint lower gamma, 400" in lines
    assert "baseline always kick: success 0%, reward -1.50 in 9 episodes" in lines
    assert "lower gamma, 100" not in shown
    assert "milestone timestep frame after" in lines
    assert "badges reached 2 64 512 15 min" in lines
    assert "badges reached 1" not in shown
    assert any(line.startswith("stuck 20% of the latest episodes") for line in lines)


def test_it_begins_with_what_people_want_and_ends_with_the_id(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", str(root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [" ".join(line.split()) for line in lines[:2]] == [
        "state killed",
        "timesteps 400 of 500 (80%)",
    ]
    names = [line.split()[0] for line in lines[: lines.index("")]]
    assert names[-1] == "id"


def test_a_run_that_trains_has_the_time_that_is_left(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = datetime.now(UTC)
    with EventFile(RunDir(root).events) as file:
        for n in range(3):
            time = now - timedelta(minutes=10 * (2 - n))
            file.add(RolloutEnded(timesteps=401 + n, timesteps_per_s=1.0, time=time))
    with RunDir(root).locked():
        assert main(["status", str(root)]) == 0
    state = capsys.readouterr().out.splitlines()[0]
    assert re.fullmatch(r"state +training, about (16 h|15 h 5\d min).* left", state)


def test_its_json_has_them(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(root), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["value"], row["frame"]) for row in found["milestones"]] == [
        ("badges", 2, 512)
    ]
    assert found["hints"] == ["lower gamma, 400"]
    assert found["stuck_episodes"] == pytest.approx(0.2)


def test_a_run_with_a_pool_says_what_comes_of_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "pool" not in status_lines(root, capsys)
    with EventFile(RunDir(root).events) as file:
        for n in range(7):
            values = {"pool/states": 10.0 + n, "pool/share": 0.5, "pool/success_rate": n / 10}
            if n != 5:
                values["pool/success_rate_from_start"] = 0.0
            file.add(CurvesRecorded(timesteps=401 + n, values=values))
    words = (
        "16 states, 50% of the episodes start there, goal met in 40% from there, goal met in 0% "
        "from the start states"
    )
    assert status_lines(root, capsys)["pool"] == words
    assert main(["status", str(root), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["pool"]
    assert found["success_rate"] == pytest.approx(0.4)  # of the last five points
    del found["success_rate"]
    assert found == {
        "states": 16,
        "share": 0.5,
        "success_rate_from_start": 0.0,
        "passed": None,
        "levels": [],
    }
    with EventFile(RunDir(root).events) as file:
        file.add(CurvesRecorded(timesteps=409, values={"pool/states": 40, "pool/passed": 0.3}))
    assert status_lines(root, capsys)["pool"].startswith("40 states, 12 of them passed, 50%")


def test_a_pool_is_shown_by_the_reward_of_its_states(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = PoolLevel(least_reward=0, most_reward=0, states=3, episodes=0, successes=0)
    played = PoolLevel(
        least_reward=1.5, most_reward=2, states=7, episodes=30, successes=12, mean_reward=0.625
    )
    with EventFile(RunDir(root).events) as file:
        file.add(CurvesRecorded(timesteps=401, values={"pool/states": 10}))
        file.add(PoolCounted(timesteps=402, levels=(new,)))
        file.add(PoolCounted(timesteps=403, levels=(new, played)))
    assert main(["status", str(root)]) == 0
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()][-4:]
    assert [row for row in rows if row[:1].isdigit()] == ["0 3 0", "1.5 to 2 7 30 40% 0.62"]
    assert main(["status", str(root), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["pool"]["levels"]
    assert found == [new.model_dump(), played.model_dump()]


def status_lines(root: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Return each line by its name; one that goes on in the next line is put together."""
    assert main(["status", str(root)]) == 0
    found: dict[str, str] = {}
    name = ""
    for line in capsys.readouterr().out.split("\n\n")[0].splitlines():
        first = line[:12].strip()
        name = first or name
        found[name] = f"{found[name]} {line[13:]}" if not first else line[13:]
    return found
