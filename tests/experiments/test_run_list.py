import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from game_rl.checkpoints.checkpoint_files import write_files
from game_rl.checkpoints.checkpoint_state import Best, CheckpointState
from game_rl.checkpoints.evaluation_files import append_row
from game_rl.cli.main import main
from game_rl.config.loader import dump_config
from game_rl.config.schema import RunConfig
from game_rl.errors import CheckpointError, UsageError
from game_rl.events import Begun, CheckpointSaved, Ended
from game_rl.events.event_log import EventFile, EventLog, read_events
from game_rl.events.run_view import RunView
from game_rl.experiments.run_list import delete_spare, runs_below
from game_rl.files.run_dir import RunDir
from game_rl.playback.checkpoint_survey import survey
from game_rl.viewer.followed_run import run_summary
from game_rl.viewer.watched_place import WatchedPlace


def make_run(
    root: Path, *saved: int, best: int | None = None, evaluation_due: bool = False
) -> RunDir:
    """Write a run directory with checkpoints at these timesteps, as far as lists read it."""
    run_dir = RunDir(root)
    root.mkdir(parents=True)
    values = {"game": "duel", "total_timesteps": 1_000, "run_dir": root}
    values |= {"evaluation": {"every_timesteps": 1_000}, "checkpoints": {"every_timesteps": 1_000}}
    values |= {"env": {"n_envs": 2}, "algorithm": {"n_steps": 128}}
    config = RunConfig.model_validate(values)
    run_dir.config.write_text(dump_config(config), encoding="utf-8")
    run_dir.identity()
    for timesteps in saved:
        state = CheckpointState(
            num_timesteps=timesteps,
            n_updates=1,
            schedule_timesteps=1_000,
            best=None if best is None else Best(timesteps=best, mean_reward=1.0),
            evaluation_due=evaluation_due,
            rom_sha256="0" * 64,
            config=config.model_dump(mode="json"),
            game={},
            versions={},
            computing={},
        )
        run_dir.checkpoints.mkdir(exist_ok=True)
        content = (state.model_dump_json().encode(),)
        write_files(run_dir.checkpoint(timesteps), [("state.json", content)])
    return run_dir


def begun(run_dir: RunDir) -> None:
    with EventFile(run_dir.events) as file:
        EventLog(file, ()).emit(
            Begun(
                run="r", algorithm="ppo", total_timesteps=1_000, device="cpu", precision="float32"
            )
        )


def ended(run_dir: RunDir, reason: Any) -> None:
    with EventFile(run_dir.events) as file:
        EventLog(file, ()).emit(Ended(timesteps=900, reason=reason, exit_code=0, text=""))


def test_runs_are_found_at_any_depth_and_by_path(tmp_path: Path) -> None:
    make_run(tmp_path / "b" / "deep" / "one", 100)
    make_run(tmp_path / "a", 100)
    make_run(tmp_path / "a" / "members" / "00", 100)  # not listed apart from what it is in
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "config.yaml").write_text("a: 1", encoding="utf-8")
    (tmp_path / "b" / "up").symlink_to(tmp_path)  # a loop
    (tmp_path / "b" / "itself").symlink_to(tmp_path / "b" / "itself")
    (tmp_path / "a second way to a").symlink_to(tmp_path / "a")
    found = [run.root.relative_to(tmp_path) for run in runs_below(tmp_path)]
    assert found == [Path("a"), Path("b/deep/one")]
    assert [run.root for run in runs_below(tmp_path / "a")] == [tmp_path / "a"]


def test_a_run_behind_a_link_is_listed_and_not_pruned_through_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = make_run(tmp_path / "disk" / "run", 100, 200, 300, best=300)
    inner = make_run(tmp_path / "runs" / "inner", 100, 200, best=200)
    inner.checkpoints.rename(tmp_path / "disk" / "checkpoints")
    inner.checkpoints.symlink_to(tmp_path / "disk" / "checkpoints")
    runs = tmp_path / "runs"
    for name, target in {"one": run_dir.root, "folder": tmp_path / "disk"}.items():
        (runs / name).symlink_to(target)
    found = {run.root.relative_to(runs): run.link_to for run in runs_below(runs)}
    assert found == {Path("folder/run"): run_dir.root, Path("inner"): None}
    assert main(["runs", str(runs), "--prune", "--yes"]) == 0
    shown = capsys.readouterr()
    assert f"is a link to {run_dir.root}, and nothing is deleted through a link" in shown.err
    gone = tmp_path / "disk" / "checkpoints" / "000000000100"
    assert f"{inner.checkpoint(100)} (in {gone})" in shown.out
    assert not gone.exists()
    assert [int(path.name) for path in run_dir.checkpoints_newest_first()] == [300, 200, 100]


def test_a_folder_that_cannot_be_read_ends_no_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(make_run(tmp_path / "mine", 100))
    secret = make_run(tmp_path / "secret", 100)
    listed = Path.iterdir

    def refused(self: Path) -> Iterator[Path]:
        if self == secret.root or self == secret.checkpoints:
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        return listed(self)

    monkeypatch.setattr(Path, "iterdir", refused)
    found = {run.root.name: run for run in runs_below(tmp_path)}
    assert found["mine"].state == "killed"
    assert found["secret"].state == "unreadable"
    assert found["secret"].fault == f"{secret.checkpoints}: Permission denied"


def test_a_folder_that_this_user_may_not_enter_is_listed_and_ends_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path / "mine", 100)
    secret = make_run(tmp_path / "of another user", 100).root
    refuse_to_enter(secret, monkeypatch)
    found = {run.root.name: (run.kind, run.state, run.fault) for run in runs_below(tmp_path)}
    assert found["mine"] == ("ppo", "not begun", "")
    fault = f"{secret}: Permission denied"
    assert found["of another user"] == ("folder", "unreadable", fault)
    (only,) = runs_below(secret)
    assert only.fault == fault
    place = WatchedPlace(tmp_path)
    assert place.kind == "folder"
    assert list(place.runs()) == ["mine"]


@pytest.mark.parametrize("command", ["status", "report", "plot", "checkpoints", "watch", "lineage"])
def test_a_folder_that_this_user_may_not_enter_is_named_by_each_command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    secret = make_run(tmp_path / "of another user", 100).root
    outputs = {"report": ["--output", "a.html"], "plot": ["--output", "a.png"]}
    refuse_to_enter(secret, monkeypatch)
    assert main([command, str(secret), *outputs.get(command, [])]) == 1
    assert capsys.readouterr().err == f"error: {secret}: Permission denied\n"


def refuse_to_enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the system refuse what is in a folder, as for a user without the right to search it."""

    def refusing(call: Any) -> Any:
        def wrapper(path: Any, *args: Any, **options: Any) -> Any:
            is_path = isinstance(path, str | os.PathLike)
            is_listed = call is os.listdir and is_path and Path(path) == folder
            if is_path and (folder in Path(path).parents or is_listed):
                raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
            return call(path, *args, **options)

        return wrapper

    for name in ("stat", "lstat", "open", "listdir", "scandir"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))


def test_the_time_of_a_checkpoint_is_that_of_its_event(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200, best=200)
    with EventFile(run_dir.events) as file:
        EventLog(file, ()).emit(
            CheckpointSaved(
                timesteps=100, checkpoint="000000000100", n_bytes=1, seconds=1.0, contents=()
            )
        )
    (event,) = read_events(run_dir)
    shutil.copytree(run_dir.root, tmp_path / "copy")  # with new times of its files
    written = {each.timesteps: each.written_s for each in survey(RunDir(tmp_path / "copy"))}
    assert written == {100: event.time.timestamp(), 200: None}


def test_a_run_s_line_says_how_it_is(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", 100)
    (run,) = runs_below(tmp_path)
    assert (run.kind, run.state) == ("ppo", "not begun")
    begun(run_dir)
    (run,) = runs_below(tmp_path)
    assert (run.kind, run.state) == ("ppo", "killed")
    ended(run_dir, "completed")
    (run,) = runs_below(tmp_path)
    assert (run.state, run.timesteps) == ("completed", 900)
    with run_dir.locked():
        (run,) = runs_below(tmp_path)
        assert (run.state, run.spare) == ("training", ())


def test_a_run_whose_lock_this_user_cannot_read_is_not_called_killed(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200, best=200)
    (run_dir.root / "lock").mkdir()  # fails as a file of another user does, for root too
    (run,) = runs_below(tmp_path)
    assert (run.state, run.spare) == ("unknown", ())
    assert run_summary(RunView(read_events(run_dir), None))["state"] == "unknown"


def test_a_size_counts_each_file_once(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200)
    (run_dir.root / "lake").mkdir()
    (run_dir.root / "lake" / "segment").write_bytes(b"x" * 12_345)
    os.link(run_dir.root / "lake" / "segment", run_dir.root / "same")
    files = {
        path.stat().st_ino: path.stat().st_size
        for path in run_dir.root.rglob("*")
        if path.is_file()
    }
    (run,) = runs_below(tmp_path)
    assert run.n_bytes == sum(files.values())


def test_only_what_nothing_needs_is_spare(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200, 300, 400, best=200)
    for folder in (run_dir.damaged, run_dir.set_aside):
        (folder / "000000000050").mkdir(parents=True)
    (run,) = runs_below(tmp_path)
    gone = {run_dir.damaged, run_dir.set_aside, run_dir.checkpoint(100), run_dir.checkpoint(300)}
    assert set(run.spare) == gone
    delete_spare(run)
    assert [int(path.name) for path in run_dir.checkpoints_newest_first()] == [400, 200]
    assert not any(path.exists() for path in gone)
    assert runs_below(tmp_path)[0].spare == ()


@pytest.mark.parametrize(
    ("is_best", "stays"), [(None, {100, 300}), (False, {100, 300}), (True, {300})]
)
def test_the_best_is_that_of_a_due_evaluation_once_it_was_played(
    is_best: bool | None, stays: set[int], tmp_path: Path
) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200, 300, best=100, evaluation_due=True)
    if is_best is not None:
        row = {"timesteps": 300, "mean_reward": 2.0, "is_best": is_best, "deterministic": True}
        append_row(run_dir, row)
    (run,) = runs_below(tmp_path)
    assert {int(path.name) for path in run.spare} == {100, 200, 300} - stays


def test_nothing_is_deleted_if_what_would_stay_is_damaged(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200, 300, best=200)
    (run,) = runs_below(tmp_path)
    damaged = run_dir.checkpoint(200) / "state.json"
    damaged.write_bytes(damaged.read_bytes().replace(b"1", b"2"))
    with pytest.raises(CheckpointError, match=r"nothing of .* was deleted: .*is damaged"):
        delete_spare(run)
    assert len(run_dir.checkpoints_newest_first()) == 3


def test_a_checkpoint_that_waits_for_its_upload_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200, 300)
    monkeypatch.setattr("game_rl.experiments.run_list._waiting", lambda _: {100})
    assert runs_below(tmp_path)[0].spare == (run_dir.checkpoint(200),)


def test_nothing_is_deleted_under_a_training(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200, 300)
    (run,) = runs_below(tmp_path)
    with run_dir.locked(), pytest.raises(UsageError, match="another training is writing"):
        delete_spare(run)
    assert len(run_dir.checkpoints_newest_first()) == 3


def test_a_run_that_cannot_be_read_is_listed_with_its_fault(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", 100)
    run_dir.config.write_text("game: duel\nnonsense: 1\n", encoding="utf-8")
    (run,) = runs_below(tmp_path)
    assert run.state == "unreadable"
    assert "nonsense" in run.fault
