"""The teacher that a run keeps in its own folder, so that it goes on where the teacher's is gone.

`teacher/` appears in one rename and is never changed: `checkpoint/` has the teacher's weights, as
links where the file system has them, and `teacher.json` what was found out about it once. Beside
the folder, `validation.json` says whether the run's best policy is its own or the teacher's.
"""

from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field, ValidationError

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.files import MANIFEST, FileName, Manifest, read_manifest
from game_rl.config.saved import Saved
from game_rl.errors import CheckpointError
from game_rl.run_dir import (
    RunDir,
    link_file,
    new_directory,
    remove_directory,
    write_atomic,
    write_synced,
)

_Count = Annotated[int, Field(ge=0)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Kind = TypeVar("_Kind", bound=Saved)

_RECORD, _CHECKPOINT = "teacher.json", "checkpoint"
_PLAYED: tuple[FileName, ...] = ("state.json", "policy.safetensors")


class TeacherRecord(Saved):
    """Which teacher a run has; measured once, before the run's first timestep."""

    run: str
    """Its run's id; empty: that run has none."""
    path: str
    """Where its run was then."""
    timesteps: _Count
    """At which its policy was learned."""
    sha256: str
    """Of its checkpoint's manifest, and so of all its files."""
    frame_skip: _Count
    """Emulator frames in each of its timesteps."""
    temperature: float
    """As `auto` was resolved, or as the config said."""
    success_rate: _Share | None
    """In the evaluation's games of the run that it teaches; None: the game knows no success."""
    mean_reward: float
    """In the same games."""
    episodes: _Count


class Score(Saved):
    """What one of the two made of the validation's episodes."""

    mean_reward: float
    success_rate: _Share | None


class Validation(Saved):
    """Student and teacher on episodes that decided nothing before."""

    at_timesteps: _Count
    """The end of the run at which they played."""
    student_timesteps: _Count
    """At which the student's best policy was learned."""
    episodes: _Count
    student: Score
    teacher: Score

    @property
    def teacher_is_best(self) -> bool:
        """Ties go to the teacher."""
        return self.student.mean_reward <= self.teacher.mean_reward


def write_teacher(run_dir: RunDir, source: Path, record: TeacherRecord) -> None:
    """Make the folder, which must not exist, of the checkpoint `source`."""
    manifest = read_manifest(source)
    files: dict[FileName, object] = {name: manifest.files[name] for name in _PLAYED}
    with new_directory(run_dir.teacher) as folder, new_directory(folder / _CHECKPOINT) as copy:
        for name in _PLAYED:
            link_file(source / name, copy / name)
        played = Manifest.model_validate({"format": 2, "files": files})
        write_synced(copy / MANIFEST, played.model_dump_json(indent=2).encode())
        write_synced(folder / _RECORD, record.model_dump_json(indent=2).encode())


def link_teacher(source: RunDir, target: RunDir) -> None:
    """Give `target` the teacher of `source`, which stays as it is.

    Raises:
        OSError: the disk fails.
    """
    with new_directory(target.teacher) as folder, new_directory(folder / _CHECKPOINT) as copy:
        for name in (*_PLAYED, MANIFEST):
            link_file(source.teacher / _CHECKPOINT / name, copy / name)
        link_file(source.teacher / _RECORD, folder / _RECORD)


def has_teacher(run_dir: RunDir) -> bool:
    return (run_dir.teacher / _RECORD).exists()


def forget_teacher(run_dir: RunDir) -> None:
    """That of a run which was ended here before its first update."""
    if run_dir.teacher.exists():
        remove_directory(run_dir.teacher)
    run_dir.validation.unlink(missing_ok=True)


def read_teacher(run_dir: RunDir) -> tuple[TeacherRecord, Checkpoint]:
    """The record, and the checkpoint, whose files were verified.

    Raises:
        CheckpointError: they are damaged.
    """
    checkpoint = Checkpoint(run_dir.teacher / _CHECKPOINT)
    checkpoint.verify()
    return _read(run_dir.teacher / _RECORD, TeacherRecord), checkpoint


def write_validation(run_dir: RunDir, validation: Validation) -> None:
    write_atomic(run_dir.validation, validation.model_dump_json(indent=2))


def read_validation(run_dir: RunDir, *, at_timesteps: int, best: int) -> Validation | None:
    """That of the run as it is now; None if there is none, or the run has gone on since.

    Args:
        at_timesteps: of the newest checkpoint.
        best: timesteps of the student's best.
    """
    if not run_dir.validation.exists():
        return None
    found = _read(run_dir.validation, Validation)
    is_present = (found.at_timesteps, found.student_timesteps) == (at_timesteps, best)
    return found if is_present else None


def _read(path: Path, kind: type[_Kind]) -> _Kind:
    try:
        return kind.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise CheckpointError(
            f"{path} cannot be read: {error}; restore it from a copy, or begin the run again"
        ) from None
