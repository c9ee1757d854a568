"""The teacher's folder of a run: links of what plays, and nothing else."""

from pathlib import Path

import pytest

from game_rl.checkpoints.checkpoint_files import write_files
from game_rl.checkpoints.checkpoint_state import CheckpointState
from game_rl.errors import CheckpointError
from game_rl.events.lineage import manifest_sha256
from game_rl.files.run_dir import RunDir
from game_rl.playback.teacher_copy import (
    TeacherRecord,
    Validation,
    ValidationScore,
    forget_teacher,
    has_teacher_copy,
    read_teacher,
    read_validation,
    write_teacher,
    write_validation,
)

STATE = CheckpointState(
    num_timesteps=64,
    n_updates=2,
    schedule_timesteps=64,
    best=None,
    rom_sha256="00",
    config={},
    game={},
    versions={},
    computing={},
)
RECORD = TeacherRecord(
    run="a" * 32,
    path="/runs/teacher",
    timesteps=64,
    sha256="b" * 64,
    frame_skip=4,
    temperature=0.1,
    success_rate=None,
    mean_reward=1.5,
    episodes=20,
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    files = {"state.json": STATE.model_dump_json().encode(), "play.json": b"{}"}
    write_files(path, [*((n, (c,)) for n, c in files.items()), ("policy.safetensors", (b"w",))])
    return path


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    (tmp_path / "run").mkdir()
    return RunDir(tmp_path / "run")


def test_what_plays_is_linked_and_read_back_where_its_source_is_gone(
    source: Path, run_dir: RunDir
) -> None:
    assert not has_teacher_copy(run_dir)
    write_teacher(run_dir, source, RECORD)
    kept = run_dir.teacher / "checkpoint"
    assert sorted(path.name for path in kept.iterdir()) == [
        "manifest.json", "policy.safetensors", "state.json",
    ]  # fmt: skip
    assert (kept / "policy.safetensors").samefile(source / "policy.safetensors")
    for path in source.iterdir():
        path.unlink()
    assert has_teacher_copy(run_dir)
    record, checkpoint = read_teacher(run_dir)
    assert record == RECORD
    assert checkpoint.state == STATE


def test_a_teacher_that_rots_is_noticed(source: Path, run_dir: RunDir) -> None:
    write_teacher(run_dir, source, RECORD)
    (run_dir.teacher / "checkpoint" / "policy.safetensors").write_bytes(b"x")
    with pytest.raises(CheckpointError, match="damaged"):
        read_teacher(run_dir)
    forget_teacher(run_dir)
    assert not has_teacher_copy(run_dir)


def test_the_hash_is_of_the_whole_checkpoint(source: Path) -> None:
    before = manifest_sha256(source)
    assert len(before) == 64
    (source / "manifest.json").write_text(
        (source / "manifest.json").read_text(encoding="utf-8") + " ", encoding="utf-8"
    )
    assert manifest_sha256(source) != before


@pytest.mark.parametrize(
    ("student", "teacher", "best"),
    [(1.0, 0.5, "student"), (0.5, 1.0, "teacher"), (1, 1, "teacher")],
)
def test_ties_go_to_the_teacher(student: float, teacher: float, best: str, run_dir: RunDir) -> None:
    scores = [
        ValidationScore(mean_reward=reward, success_rate=None) for reward in (student, teacher)
    ]
    validation = Validation(
        at_timesteps=128, student_timesteps=64, episodes=200, student=scores[0], teacher=scores[1]
    )
    assert read_validation(run_dir, at_timesteps=128, best=64) is None
    write_validation(run_dir, validation)
    assert read_validation(run_dir, at_timesteps=128, best=64) == validation
    assert validation.teacher_is_best == (best == "teacher")
