"""The logs of a run that was broken off are those of the run that was not."""

import csv
import shutil
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from game_rl.config.loader import load_config
from game_rl.event_log import read_events
from game_rl.events import Evaluated, Resumed
from game_rl.run_dir import RunDir
from game_rl.training.train import resume
from tests.tiny_run import TINY, command, train_once

CHANGES = [
    "logging={csv: true, tensorboard: false}",
    "env.max_episode_timesteps=11",
    "env.start_states=[level_1, level_2]",
    "evaluation.episodes=6",
    "checkpoints={every_timesteps: 32, keep_last: 20}",
]
OF_THE_PROCESS = ("time/fps", "time/time_elapsed", "time/iterations", "resources/")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    folder = tmp_path_factory.mktemp("whole")
    path = folder / "run.yaml"
    path.write_text(TINY.format(run_dir=folder / "run"), encoding="utf-8")
    return train_once(load_config(path, CHANGES))


@pytest.fixture
def broken(whole: RunDir, tmp_path: Path) -> Callable[[int], RunDir]:
    """The run as a kill would leave it after so many timesteps, with all that it wrote later."""

    def make(timesteps: int) -> RunDir:
        run_dir = RunDir(tmp_path / "run")
        shutil.copytree(whole.root, run_dir.root)
        for path in run_dir.checkpoints_newest_first():
            if int(path.name) > timesteps:
                shutil.rmtree(path)
        text = run_dir.config.read_text(encoding="utf-8")
        text = text.replace(str(whole.root), str(run_dir.root))
        run_dir.config.write_text(text, encoding="utf-8")
        return run_dir

    return make


def episodes(run_dir: RunDir) -> list[list[str]]:
    """All fields of each episode but its time."""
    rows = run_dir.monitor.read_text(encoding="utf-8").splitlines()[2:]
    return [[f for i, f in enumerate(row.split(",")) if i != 2] for row in rows]


def curves(run_dir: RunDir) -> list[dict[str, str]]:
    with run_dir.progress.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [{k: v for k, v in row.items() if not k.startswith(OF_THE_PROCESS)} for row in rows]


def test_a_run_writes_its_tables_and_no_tensorboard(whole: RunDir) -> None:
    assert not whole.tensorboard.exists()
    assert {"train/loss", "rollout/ep_rew_mean", "eval/mean_reward"} < curves(whole)[-1].keys()
    assert len(curves(whole)) == 6 + 3  # rollouts and evaluations


def test_each_row_of_the_table_says_its_timesteps(whole: RunDir) -> None:
    steps = [int(row["time/total_timesteps"]) for row in curves(whole)]
    assert set(steps) == {32, 64, 96, 128, 160, 192}
    assert steps == sorted(steps)


def test_each_training_episode_has_a_row(whole: RunDir) -> None:
    found = episodes(whole)
    assert sum(int(row[1]) for row in found) <= 192
    assert {row[3] for row in found} == {"level_1", "level_2"}
    assert {row[2] for row in found} <= {"True", "False"}
    assert len(found) >= 2 * (96 // 11)


def test_the_curves_have_each_evaluation_apart_by_start_state(whole: RunDir) -> None:
    events = [e for e in read_events(whole) if isinstance(e, Evaluated) and not e.is_final]
    rows = [row for row in curves(whole) if row["eval/mean_reward"]]
    assert len(events) == len(rows) == 3
    for event, row in zip(events, rows, strict=True):
        assert event.by_start_state is not None
        for name, result in event.by_start_state.items():
            assert float(row[f"eval/success_rate/{name}"]) == result.success_rate


@pytest.mark.parametrize("timesteps", [0, 32, 96, 160])
def test_a_resumed_run_has_the_same_logs(
    broken: Callable[[int], RunDir], whole: RunDir, timesteps: int
) -> None:
    run_dir = broken(timesteps)
    resume(run_dir.root, command(Console(file=StringIO(), width=1000)))
    assert episodes(run_dir) == episodes(whole)
    assert curves(run_dir) == curves(whole)
    resumed = [event for event in read_events(run_dir) if isinstance(event, Resumed)]
    assert all(not event.changes and not event.not_restored for event in resumed)
