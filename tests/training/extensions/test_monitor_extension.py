"""Episodes of a rollout reach `monitor.csv` when it is complete."""

from pathlib import Path
from typing import Any

import pytest

from game_rl.loggers.log_files import MonitorFile
from game_rl.training.extensions.monitor_extension import MonitorCallback

RUNNING: dict[str, Any] = {}


def ended(reward: float, length: int) -> dict[str, Any]:
    return {"episode": {"r": reward, "l": length, "t": 1.0}, "start_state": "level_1"}


def rows(path: Path) -> list[list[str]]:
    return [row.split(",") for row in path.read_text(encoding="utf-8").splitlines()[2:]]


@pytest.mark.parametrize("is_broken_off", [True, False])
def test_a_rollout_that_a_stop_breaks_off_leaves_no_rows(
    tmp_path: Path, *, is_broken_off: bool
) -> None:
    path = tmp_path / "monitor.csv"
    file = MonitorFile(path, "duel")
    callback = MonitorCallback(file)
    callback.locals = {"infos": [ended(1.5, 3), RUNNING, ended(-2, 4)]}
    callback._on_rollout_start()
    assert callback._on_step()
    assert rows(path) == []
    if not is_broken_off:
        callback._on_rollout_end()
    callback._on_rollout_start()
    callback.locals = {"infos": [RUNNING, ended(7, 9), RUNNING]}
    callback._on_step()
    callback._on_rollout_end()
    file.close()
    before = [] if is_broken_off else [["1.5", "3"], ["-2.0", "4"]]
    assert [row[:2] for row in rows(path)] == [*before, ["7.0", "9"]]
    assert {row[4] for row in rows(path)} == {"level_1"}
