"""When a run passes 80 % and all of its forecast."""

import json
from pathlib import Path

from game_rl.callbacks.resource_watch import PlanWatch
from game_rl.events import Event, PlanPassed
from game_rl.events.event_log import EventFile, EventLog
from game_rl.files.run_dir import RunDir

PLAN = {
    "ram": {
        "predicted_peak_bytes": 1_000,
        "parts": [
            {"name": "Python, torch, SB3", "bytes": 700},
            {"name": "rollout buffer", "bytes": 300},
        ],
    },
    "disk": {"predicted_total_bytes": 10_000, "parts": []},
    "growth": [],
}


def made(tmp_path: Path) -> RunDir:
    run_dir = RunDir(tmp_path / "run")
    run_dir.root.mkdir()
    run_dir.preflight.write_text(json.dumps(PLAN), encoding="utf-8")
    return run_dir


def passed(heard: list[Event]) -> list[tuple[str, float, int]]:
    return [(e.resource, e.share, e.timesteps) for e in heard if isinstance(e, PlanPassed)]


def test_each_share_of_the_memory_is_told_once(tmp_path: Path) -> None:
    heard: list[Event] = []
    watch = PlanWatch(made(tmp_path), EventLog(listeners=[heard.append]))
    for timesteps, used in enumerate((799, 800, 990, 700, 1_001, 5_000)):
        watch.look(timesteps, ram_used=used)
    assert passed(heard) == [("ram", 0.8, 1), ("ram", 1.0, 4)]
    last = heard[-1]
    assert isinstance(last, PlanPassed)
    assert last.part == "rollout buffer"
    assert "100.1% of the forecast" in last.text
    assert last.text.endswith("of the forecast of 1000 B")


def test_the_disk_is_looked_at_once_a_minute_without_the_lake(tmp_path: Path) -> None:
    heard: list[Event] = []
    run_dir, now = made(tmp_path), [0.0]
    watch = PlanWatch(run_dir, EventLog(listeners=[heard.append]), clock=lambda: now[0])
    run_dir.lake.mkdir()
    (run_dir.lake / "rows").write_bytes(bytes(90_000))
    watch.look(0, ram_used=0)
    folder = run_dir.checkpoint(8)
    folder.mkdir(parents=True)
    (folder / "policy").write_bytes(bytes(12_000))
    now[0] = 59.0
    watch.look(1, ram_used=0)
    assert not heard
    now[0] = 60.0
    watch.look(2, ram_used=0)
    assert passed(heard) == [("disk", 1.0, 2)]
    assert isinstance(heard[0], PlanPassed)
    assert heard[0].part == folder.relative_to(run_dir.root).parts[0]


def test_a_resumed_run_tells_nothing_twice_unless_the_forecast_has_changed(tmp_path: Path) -> None:
    run_dir = made(tmp_path)
    with EventFile(run_dir.events) as file:
        PlanWatch(run_dir, EventLog(file)).look(1, ram_used=850)
    heard: list[Event] = []
    PlanWatch(run_dir, EventLog(listeners=[heard.append])).look(2, ram_used=850)
    assert not heard
    plan = PLAN | {"ram": {"predicted_peak_bytes": 900, "parts": []}}
    run_dir.preflight.write_text(json.dumps(plan), encoding="utf-8")
    PlanWatch(run_dir, EventLog(listeners=[heard.append])).look(3, ram_used=850)
    assert passed(heard) == [("ram", 0.8, 3)]


def test_without_a_forecast_nothing_is_told(tmp_path: Path) -> None:
    heard: list[Event] = []
    run_dir = made(tmp_path)
    for text in ("{", "{}", ""):
        run_dir.preflight.write_text(text, encoding="utf-8")
        PlanWatch(run_dir, EventLog(listeners=[heard.append])).look(1, ram_used=10**12)
    assert not heard
