"""A process that was given up as lost does not overwrite the work of its replacement."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from game_rl.config.loader import dump_config
from game_rl.errors import ExperimentError, UsageError
from game_rl.events import CheckpointSaved, Event
from game_rl.experiments.jobs.job_files import StretchRequest
from game_rl.experiments.jobs.member_jobs import run_stretch
from game_rl.files import run_dir as run_dir_module
from game_rl.files.durable_files import new_directory, remove_directory, write_atomic
from game_rl.files.run_dir import (
    CLAIM_VARIABLE,
    EXPERIMENT_VARIABLE,
    HeldLock,
    Parent,
    RunDir,
    check_claim,
    file_lock,
    take_claim,
)
from game_rl.system.stop_request import StopRequest
from tests.tiny_run import MakeConfig


def fail_half_way(directory: Path) -> None:
    (directory / "a").write_text("new", encoding="utf-8")
    raise RuntimeError("half way")


def test_checkpoints_are_ordered_by_timestep_not_by_name(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    for timesteps in (9, 100, 20):
        run_dir.checkpoint(timesteps).mkdir(parents=True)
    (run_dir.checkpoints / ".000000000200.tmp").mkdir()
    names = [int(path.name) for path in run_dir.checkpoints_newest_first()]
    assert names == [100, 20, 9]


def test_a_run_exists_once_its_config_does(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path / "run")
    assert not run_dir.exists()
    run_dir.root.mkdir()
    write_atomic(run_dir.config, "seed: 0\n")
    assert run_dir.exists()
    run_dir.lake.mkdir()
    (run_dir.lake / "lake.json").write_text("not of the run's own size", encoding="utf-8")
    assert run_dir.size_bytes() == len("seed: 0\n")


def test_a_teachers_files_count_unless_they_are_links_to_another_runs(tmp_path: Path) -> None:
    run_dir, weights = RunDir(tmp_path / "run"), tmp_path / "weights"
    weights.write_bytes(bytes(1000))
    (run_dir.teacher / "checkpoint").mkdir(parents=True)
    (run_dir.teacher / "teacher.json").write_bytes(bytes(10))
    os.link(weights, run_dir.teacher / "checkpoint" / "weights")
    assert run_dir.size_bytes() == 10
    weights.unlink()
    assert run_dir.size_bytes() == 1010


def test_writing_replaces_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", "old")
    write_atomic(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_directory_that_failed_half_way_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="half way"), new_directory(tmp_path / "d"):
        fail_half_way(tmp_path / ".d.tmp")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_never_replaced(tmp_path: Path) -> None:
    with new_directory(tmp_path / "d") as directory:
        (directory / "a").write_text("old", encoding="utf-8")
    with pytest.raises(FileExistsError), new_directory(tmp_path / "d") as directory:
        (directory / "a").write_text("new", encoding="utf-8")
    assert [str(p.relative_to(tmp_path)) for p in sorted(tmp_path.rglob("*"))] == ["d", "d/a"]
    assert (tmp_path / "d" / "a").read_text(encoding="utf-8") == "old"


def test_a_removed_directory_leaves_its_name_before_its_files(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_text("", encoding="utf-8")
    seen: list[bool] = []

    def watch(event: str, _arguments: tuple[object, ...]) -> None:
        if event == "os.remove" and not seen:
            seen.append((tmp_path / "d").exists())

    sys.addaudithook(watch)
    remove_directory(tmp_path / "d")
    assert seen == [False]
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_a_killed_process_are_removed_and_nothing_else(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    (run_dir.checkpoint(8)).mkdir(parents=True)
    (run_dir.checkpoints / ".000000000016.tmp").mkdir()
    (run_dir.checkpoints / ".000000000016.tmp" / "a").write_text("", encoding="utf-8")
    (run_dir.checkpoints / ".000000000004.trash").mkdir()
    (tmp_path / ".config.yaml.tmp").write_text("", encoding="utf-8")
    run_dir.videos.mkdir()
    (run_dir.videos / ".best.gif.tmp").write_text("", encoding="utf-8")
    (tmp_path / ".mine").write_text("", encoding="utf-8")
    run_dir.remove_leftovers()
    assert sorted(p.name for p in tmp_path.rglob("*")) == [
        ".mine",
        "000000000008",
        "checkpoints",
        "videos",
    ]


def test_a_lock_is_for_one_and_ends_with_its_process(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    hold = (
        "import sys, pathlib\n"
        "from game_rl.files.run_dir import Parent, RunDir\n"
        "with RunDir(pathlib.Path(sys.argv[1])).locked():\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(UsageError, match="another training"), run_dir.locked():
            pass
        process.kill()
    with run_dir.locked():
        pass


def test_a_run_keeps_the_identity_that_was_drawn_first(tmp_path: Path) -> None:
    run_dir, other = RunDir(tmp_path / "run"), RunDir(tmp_path / "other")
    run_dir.root.mkdir()
    other.root.mkdir()
    first = run_dir.identity()
    assert run_dir.identity(parent=Parent(id="0" * 32, timesteps=5, sha256="")) == first
    assert other.identity().id != first.id


def test_a_moved_run_is_the_same_and_its_parent_is_kept(tmp_path: Path) -> None:
    run_dir, moved = RunDir(tmp_path / "run"), RunDir(tmp_path / "moved")
    run_dir.root.mkdir()
    parent = Parent(id="0" * 32, timesteps=192, sha256="ab" * 32)
    identity = run_dir.identity(parent=parent)
    run_dir.root.rename(moved.root)
    assert moved.identity() == identity
    assert moved.identity().parent == parent


@pytest.mark.parametrize("text", ["", "{}", '{"id": "me", "created": "2026-01-01T00:00:00Z"}'])
def test_an_identity_that_was_changed_is_refused_with_the_way_out(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "run.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"run\.json does not identify a run.*delete it"):
        RunDir(tmp_path).identity()


def test_a_run_is_continued_with_its_experiment_in_a_job_of_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = RunDir(tmp_path / "an experiment" / "members" / "01")
    monkeypatch.delenv(EXPERIMENT_VARIABLE, raising=False)
    assert run_dir.way_on == f"game-rl train --resume '{run_dir.root}'"
    monkeypatch.setenv(EXPERIMENT_VARIABLE, "runs/population")
    assert run_dir.way_on == "game-rl train --resume runs/population"
    assert run_dir.offline.way_on == "game-rl train --resume runs/population"


def test_each_claim_is_of_a_later_epoch_and_only_the_last_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = RunDir(tmp_path)
    claims = [take_claim(run_dir) for _ in range(12)]
    assert [int(claim.partition("-")[0]) for claim in claims] == list(range(1, 13))
    for claim in claims[:-1]:
        monkeypatch.setenv(CLAIM_VARIABLE, claim)
        with pytest.raises(ExperimentError, match="a newer process"):
            check_claim(run_dir)
    monkeypatch.setenv(CLAIM_VARIABLE, claims[-1])
    check_claim(run_dir)


def test_two_who_take_the_same_epoch_do_not_both_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two controllers that each believe they are the only one."""
    one, other = RunDir(tmp_path / "one"), RunDir(tmp_path / "other")
    for run_dir in (one, other):
        run_dir.root.mkdir()
    monkeypatch.setenv(CLAIM_VARIABLE, take_claim(one))
    take_claim(other)
    (other.root / "claim").replace(one.root / "claim")
    with pytest.raises(ExperimentError):
        check_claim(one)


def test_a_process_without_a_claim_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CLAIM_VARIABLE, raising=False)
    take_claim(RunDir(tmp_path))
    check_claim(RunDir(tmp_path))


def test_a_member_whose_claim_is_taken_writes_no_further_checkpoint_and_no_result(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config("member", "recording.episodes=0")
    run_dir = RunDir(config.run_dir)
    run_dir.root.mkdir()
    write_atomic(run_dir.config, dump_config(config))
    monkeypatch.setenv(CLAIM_VARIABLE, take_claim(run_dir))

    def take_at_first_checkpoint(event: Event) -> None:
        if isinstance(event, CheckpointSaved):
            take_claim(run_dir)

    result = run_dir.root.with_suffix(".json")
    with pytest.raises(ExperimentError, match="without writing"):
        run_stretch(
            StretchRequest(
                root=run_dir.root.parent, run=run_dir.root, until=192, seed=1, result=result
            ),
            StopRequest(),
            [take_at_first_checkpoint],
        )
    assert [path.name for path in run_dir.checkpoints_newest_first()] == ["000000000064"]
    assert not result.exists()


def test_nobody_knows_of_a_lock_that_this_user_cannot_open(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()  # fails as a file of another user does, for root too
    assert RunDir(tmp_path).is_locked is None


@pytest.mark.skipif(sys.platform == "win32", reason="needs flock")
def test_who_may_only_read_a_lock_knows_whether_it_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = RunDir(tmp_path)

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "lock"))

    with place.locked(), monkeypatch.context() as patch:
        patch.setattr(run_dir_module, "FileLock", refused)
        assert place.is_locked is True
    monkeypatch.setattr(run_dir_module, "FileLock", refused)
    assert place.is_locked is False


_HOLDER = """\
import sys, pathlib
from game_rl.files import run_dir
if sys.argv[3] == "slots":
    run_dir.fcntl = None
with run_dir.file_lock(pathlib.Path(sys.argv[1]), shared=sys.argv[2] == "shared"):
    print("held", flush=True)
    sys.stdin.read()
"""


def holds(held: list[bool], wanted: bool) -> bool:
    """Whether a lock can be had: many may share a file, or one has it alone."""
    return not held or (wanted and all(held))


@pytest.mark.parametrize("form", ["fcntl", "slots"])
def test_a_file_is_shared_by_many_or_held_by_one(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By processes that are killed, or by one process."""
    if form == "slots":
        monkeypatch.setattr(run_dir_module, "fcntl", None)
    file = tmp_path / "lake.json"
    file.write_text("{}", encoding="utf-8")
    held: list[tuple[bool, HeldLock]] = []
    for shared in (True, True, False, True, False):
        if holds([one for one, _ in held], shared):
            held.append((shared, file_lock(file, shared=shared)))
        else:
            with pytest.raises(BlockingIOError):
                file_lock(file, shared=shared)
    for _, lock in held:
        with pytest.raises(BlockingIOError):
            file_lock(file, shared=False)
        lock.close()
    file_lock(file, shared=False).close()
    for kind, other_may in (("shared", True), ("alone", False)):
        holder = subprocess.Popen(
            [sys.executable, "-c", _HOLDER, str(file), kind, form],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        with holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(BlockingIOError):
                file_lock(file, shared=False)
            if other_may:
                file_lock(file, shared=True).close()
            else:
                with pytest.raises(BlockingIOError):
                    file_lock(file, shared=True)
            holder.kill()
        file_lock(file, shared=False).close()
    assert file.read_text(encoding="utf-8") == "{}"
