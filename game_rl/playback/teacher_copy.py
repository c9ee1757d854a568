"""The copy of its teacher that a run keeps, and which of the two is better.

`teacher/` appears in one rename and is never changed. In it, `checkpoint/` has the teacher's
weights, as links if the file system supports them, and `teacher.json` has the measurements of the
teacher. Next to `teacher/`, `validation.json` says whether the run's best policy is its own or the
teacher's.
"""

from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field

from game_rl.checkpoints.checkpoint_files import MANIFEST, FileName, Manifest, read_manifest
from game_rl.checkpoints.checkpoint_folder import CheckpointFolder
from game_rl.errors import CheckpointError
from game_rl.files.durable_files import (
    link_file,
    new_directory,
    remove_directory,
    write_atomic,
    write_synced,
)
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Natural, NaturalIfAny, Saved, read_saved

_WAY_OUT = "restore it from a copy, or start the run again"
_Share = Annotated[float, Field(ge=0, le=1)]
_Kind = TypeVar("_Kind", bound=Saved)

_RECORD = "teacher.json"
_CHECKPOINT = "checkpoint"
_PLAYED: tuple[FileName, ...] = ("state.json", "policy.safetensors")


class TeacherRecord(Saved):
    """The teacher of a run, measured once, before the run's first timestep."""

    run: str
    """Id of the teacher's run, or empty if that run has none."""
    path: str
    """Directory of the teacher's run at that time."""
    timesteps: Natural
    """Timestep of the teacher's policy in its run."""
    sha256: str
    """Hash of the manifest of the teacher's checkpoint, and so of all files."""
    frame_skip: Natural
    """Emulator frames in each timestep of the teacher."""
    waited_frames: NaturalIfAny = 0
    """Emulator frames beyond these, up to that timestep."""
    temperature: float
    """Temperature of the softmax, from the config or as `auto` was resolved."""
    success_rate: _Share | None
    """Success rate in the evaluation games of the run that it teaches, or None if the game does not
    define success."""
    mean_reward: float
    """Mean reward in the same games."""
    episodes: Natural


class ValidationScore(Saved):
    """The result of student or teacher in the validation's episodes."""

    mean_reward: float
    success_rate: _Share | None


class Validation(Saved):
    """Comparison of student and teacher on episodes that selected nothing before."""

    at_timesteps: Natural
    """Timestep of the run's end at which they played."""
    student_timesteps: Natural
    """Timestep of the student's best policy."""
    episodes: Natural
    student: ValidationScore
    teacher: ValidationScore

    @property
    def teacher_is_best(self) -> bool:
        """Whether the teacher's mean reward is at least the student's."""
        return self.student.mean_reward <= self.teacher.mean_reward


def write_teacher(run_dir: RunDir, source: Path, record: TeacherRecord) -> None:
    """Write the folder, which must not exist, from the checkpoint `source`."""
    manifest = read_manifest(source)
    files: dict[FileName, object] = {name: manifest.files[name] for name in _PLAYED}
    with new_directory(run_dir.teacher) as folder, new_directory(folder / _CHECKPOINT) as copy:
        for name in _PLAYED:
            link_file(source / name, copy / name)
        played = Manifest.model_validate({"format": 2, "files": files})
        write_synced(copy / MANIFEST, played.model_dump_json(indent=2).encode())
        write_synced(folder / _RECORD, record.model_dump_json(indent=2).encode())


def link_teacher(source: RunDir, target: RunDir) -> None:
    """Link the teacher of `source` into `target`.

    Raises:
        OSError: the disk fails.
    """
    with new_directory(target.teacher) as folder, new_directory(folder / _CHECKPOINT) as copy:
        for name in (*_PLAYED, MANIFEST):
            link_file(source.teacher / _CHECKPOINT / name, copy / name)
        link_file(source.teacher / _RECORD, folder / _RECORD)


def has_teacher_copy(run_dir: RunDir) -> bool:
    return (run_dir.teacher / _RECORD).exists()


def forget_teacher(run_dir: RunDir) -> None:
    """Delete the teacher and the validation of a run directory in which a run starts over."""
    if run_dir.teacher.exists():
        remove_directory(run_dir.teacher)
    run_dir.validation.unlink(missing_ok=True)


def read_teacher(run_dir: RunDir) -> tuple[TeacherRecord, CheckpointFolder]:
    """Return the record and the checkpoint, after verifying its files.

    Raises:
        CheckpointError: one of them is missing or damaged.
    """
    checkpoint = CheckpointFolder(run_dir.teacher / _CHECKPOINT).verify()
    return _read(run_dir.teacher / _RECORD, TeacherRecord), checkpoint


def write_validation(run_dir: RunDir, validation: Validation) -> None:
    write_atomic(run_dir.validation, validation.model_dump_json(indent=2))


def read_validation(run_dir: RunDir, *, at_timesteps: int, best: int) -> Validation | None:
    """Return the validation of the run, or None if there is none or it is out of date.

    Args:
        at_timesteps: timestep of the newest checkpoint.
        best: timestep of the student's best policy.

    Raises:
        CheckpointError: the file is damaged.
    """
    if not run_dir.validation.exists():
        return None
    found = _read(run_dir.validation, Validation)
    is_present = (found.at_timesteps, found.student_timesteps) == (at_timesteps, best)
    return found if is_present else None


def _read(path: Path, kind: type[_Kind]) -> _Kind:
    found = read_saved(kind, path, error=CheckpointError, way_out=_WAY_OUT)
    if found is None:
        raise CheckpointError(f"{path} is missing; {_WAY_OUT}")
    return found
