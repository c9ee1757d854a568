"""Warnings of little disk or RAM: at which amounts, how often, and what they name."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.callbacks import CallbackList

from game_rl.callbacks import resources
from game_rl.callbacks.resource_watch import LowWater, PlanWatch, ResourceWatch
from game_rl.callbacks.resources import ResourceMonitorCallback
from game_rl.config.loader import load_config
from game_rl.events import Event, ResourceLow
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir
from game_rl.files.saved_forecast import STANDING_PARTS
from game_rl.games.definition import load_game
from game_rl.preflight.preflight import preflight
from game_rl.system.process_memory import PssSampler
from tests.callbacks.conftest import make_checkpoints, make_stop
from tests.callbacks.test_callbacks import MakeModel
from tests.preflight.conftest import MACHINE

GB = 10**9
LONG_ROLLOUTS = [
    "total_timesteps=4_000_000",
    "algorithm.n_steps=8192",
    "evaluation.every_timesteps=200_000",
    "checkpoints.every_timesteps=200_000",
]


def fallen(threshold: int, frees: list[int]) -> list[int | None]:
    """Return what LowWater should say, found by marking every level that a free amount is below."""
    levels, level = [], threshold
    while level:
        levels.append(level)
        level //= 2
    told: set[int] = set()
    found: list[int | None] = []
    for free in frees:
        if free >= 2 * threshold:
            told.clear()
        below = {level for level in levels if free < level}
        found.append(min(below) if below - told else None)
        told |= below
    return found


@given(st.integers(1, 100), st.lists(st.integers(0, 250), max_size=30))
def test_each_level_counts_once_until_there_is_space_again(
    threshold: int, frees: list[int]
) -> None:
    levels = LowWater(threshold)
    assert [levels.crossed(free) for free in frees] == fallen(threshold, frees)


@pytest.fixture
def log(run_dir: RunDir) -> tuple[EventLog, list[ResourceLow]]:
    run_dir.root.mkdir(parents=True)
    heard: list[ResourceLow] = []

    def listen(event: Event) -> None:
        assert isinstance(event, ResourceLow)
        heard.append(event)

    return EventLog(listeners=[listen]), heard


def look(watch: ResourceWatch, *, disk_gb: float = 100, ram_gb: float = 100) -> None:
    watch.look(7, disk_free=round(disk_gb * GB), ram_free=round(ram_gb * GB), ram_used=3 * GB)


def test_a_warning_is_repeated_at_each_half_and_names_the_line_of_the_plan(
    run_dir: RunDir, log: tuple[EventLog, list[ResourceLow]]
) -> None:
    events, heard = log
    plan = {
        "ram": {
            "parts": [{"name": STANDING_PARTS[0], "bytes": 900}, {"name": "replay", "bytes": 5}]
        },
        "disk": {"parts": [{"name": "4 checkpoints", "bytes": 3000}, {"name": "clip", "bytes": 2}]},
        "growth": [],
    }
    run_dir.preflight.write_text(json.dumps(plan), encoding="utf-8")
    watch = ResourceWatch(run_dir, events, warn_disk_gb=20, warn_ram_gb=2)
    for free in (21, 20, 19.9, 12, 9.9, 9, 2.4, 2.4):
        look(watch, disk_gb=free)
    look(watch, ram_gb=0.9)
    assert [(e.resource, e.free_bytes / GB, e.threshold_bytes / GB) for e in heard] == [
        ("disk", 19.9, 20), ("disk", 9.9, 10), ("disk", 2.4, 2.5), ("ram", 0.9, 1),
    ]  # fmt: skip
    assert all(event.timesteps == 7 for event in heard)
    assert "18.5 GiB of the disk of" in heard[0].text
    assert "less than monitoring.warn_disk_gb, 20 GB" in heard[0].text
    assert "of the forecast, 4 checkpoints may take up to 2.93 KiB" in heard[0].text
    assert "less than 1/8 of monitoring.warn_disk_gb, 20 GB" in heard[2].text
    assert [event.plan_part for event in heard] == ["4 checkpoints"] * 3 + ["replay"]
    assert "less than 1/2 of monitoring.warn_ram_gb, 2 GB; this run uses 2.79 GiB" in heard[3].text


def test_a_threshold_of_null_never_warns(
    run_dir: RunDir, log: tuple[EventLog, list[ResourceLow]]
) -> None:
    events, heard = log
    watch = ResourceWatch(run_dir, events, warn_disk_gb=None, warn_ram_gb=None)
    look(watch, disk_gb=0, ram_gb=0)
    assert not heard


@pytest.mark.parametrize("plan", [None, "", "{", "[]", '{"disk": 1}', '{"disk": {"parts": [1]}}'])
def test_a_plan_that_cannot_be_read_is_not_named(
    plan: str | None, run_dir: RunDir, log: tuple[EventLog, list[ResourceLow]]
) -> None:
    events, heard = log
    if plan is not None:
        run_dir.preflight.write_text(plan, encoding="utf-8")
    look(ResourceWatch(run_dir, events, warn_disk_gb=20, warn_ram_gb=None), disk_gb=1)
    assert heard[0].plan_part is None
    assert "in the plan" not in heard[0].text


@pytest.mark.parametrize(
    ("changes", "resource", "named"),
    [
        (["lake={}"], "disk", "Lake"),
        (["checkpoints.keep_last=50"], "disk", "checkpoint"),
        (["algorithm={name: dqn, replay: {capacity: 1_000_000}}"], "ram", "replay"),
        (LONG_ROLLOUTS, "ram", "rollout buffer"),
    ],
)
def test_the_plan_of_a_real_run_is_understood(
    changes: list[str], resource: str, named: str, run_dir: RunDir,
    log: tuple[EventLog, list[ResourceLow]],
) -> None:  # fmt: skip
    events, heard = log
    config = load_config(Path("configs/duel_ppo.yaml"), changes)
    plan = preflight(config, load_game("duel"), MACHINE).to_json()
    run_dir.preflight.write_text(json.dumps(plan), encoding="utf-8")
    look(ResourceWatch(run_dir, events, warn_disk_gb=20, warn_ram_gb=20), **{f"{resource}_gb": 1})
    assert heard[0].plan_part is not None
    assert named in heard[0].plan_part
    assert set(STANDING_PARTS) <= {part["name"] for part in plan["ram"]["parts"]}


def test_a_training_warns_when_others_fill_its_disk(
    make_model: MakeModel,
    run_dir: RunDir,
    log: tuple[EventLog, list[ResourceLow]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events, heard = log
    frees = iter([40 * GB, 19 * GB, 18 * GB, 9 * GB, 8 * GB])
    monkeypatch.setattr(resources, "disk_free_bytes", lambda _: next(frees))
    stop = make_stop()
    checkpoints = make_checkpoints(run_dir, 1000, stop=stop)
    monitor = ResourceMonitorCallback(
        PssSampler(),
        stop,
        checkpoints,
        run_dir=run_dir.root,
        watch=ResourceWatch(run_dir, events, warn_disk_gb=20, warn_ram_gb=None),
        plan=PlanWatch(run_dir, EventLog()),
    )
    make_model().learn(40, callback=CallbackList([monitor, checkpoints]))
    assert [(event.timesteps, event.free_bytes // GB) for event in heard] == [(16, 19), (32, 9)]
