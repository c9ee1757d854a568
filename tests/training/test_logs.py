"""The logs of a run that was broken off are those of the run that was not."""

import csv
import shutil
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_state import LogState
from game_rl.checkpoints.training_log import cut_log
from game_rl.config.loader import load_config
from game_rl.config.migration import saved_config
from game_rl.config.output_config import LoggingConfig
from game_rl.events import Evaluated, Resumed
from game_rl.events.event_log import read_events
from game_rl.files.run_dir import RunDir
from game_rl.training.forking import make_fork, plan_fork
from game_rl.training.train import resume, train
from tests.tiny_run import TINY, command, train_once
from tests.training.forks import KINDS

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


@pytest.mark.slow
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


def test_a_fork_begins_with_its_parents_logs_up_to_there(whole: RunDir, tmp_path: Path) -> None:
    fork = f"fork={{run: {whole.root}@96}}"
    config = load_config(whole.config, [fork, f"run_dir={tmp_path / 'fork'}"], is_saved=True)
    make_fork(plan_fork(config))
    run_dir = RunDir(config.run_dir)
    n_bytes = len(run_dir.monitor.read_bytes())
    assert run_dir.monitor.read_bytes() == whole.monitor.read_bytes()[:n_bytes]
    assert episodes(run_dir) == [row for row in episodes(whole) if int(row[-1]) <= 96]
    ours, theirs = curves(run_dir), curves(whole)
    assert ours == theirs[: len(ours)]
    assert {int(row["time/total_timesteps"]) for row in ours} == {32, 64, 96}
    anew = load_config(
        whole.config,
        [f"fork={{run: {whole.root}@96, counters: new}}", f"run_dir={tmp_path / 'anew'}"],
        is_saved=True,
    )
    make_fork(plan_fork(anew))
    assert not RunDir(anew.run_dir).monitor.exists()
    assert not RunDir(anew.run_dir).progress.exists()


def test_a_run_from_before_there_were_such_logs_resumes_without_a_note(
    broken: Callable[[int], RunDir],
) -> None:
    """Its config has no section `logging`, and its checkpoints no sizes of these files."""
    run_dir = broken(96)
    config = Checkpoint(run_dir.checkpoint(96)).state.config
    old = {key: value for key, value in config.items() if key != "logging"}
    assert saved_config(old, source="the checkpoint").logging == LoggingConfig()
    log: dict[str, Any] = {"values": {}, "counts": {}, "excluded": {}, "file_bytes": {}}
    cut_log(run_dir, LogState.model_validate(log))
    assert not run_dir.monitor.exists()
    assert not run_dir.progress.exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dqn", "pqn"])
def test_runs_of_other_algorithms_resume_with_the_same_logs(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(TINY.format(run_dir=tmp_path / "whole"), encoding="utf-8")
    whole = load_config(path, [*CHANGES, *KINDS[kind]])
    broken = load_config(path, [*CHANGES, *KINDS[kind], f"run_dir={tmp_path / 'broken'}"])
    train(whole, command(Console(file=StringIO())))
    train(broken, command(Console(file=StringIO()), until=90))
    resume(broken.run_dir, command(Console(file=StringIO())))
    ours, theirs = RunDir(broken.run_dir), RunDir(whole.run_dir)
    assert episodes(ours) == episodes(theirs)
    assert curves(ours) == curves(theirs)
