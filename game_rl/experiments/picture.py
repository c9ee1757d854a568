"""A picture: a quickly made snapshot of an experiment's folder that is then uploaded.

Files of checkpoints and Lakes are linked, and files that grow are copied. A picture is taken while
no run trains.
"""

import shutil
from collections.abc import Collection
from pathlib import Path

from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.run_dir import link_file

_NEVER_CHANGE = ("checkpoints", "offline", "lake", "teacher")
_LEFT_OUT = {"lock", "claim", "errands", "superseded", "upload.json", "upload.lock"}
_OPTIONAL = ("lake", "videos")


def picture_of(folder: ExperimentDir) -> Path:
    return folder.root / ".upload"


def take_picture(folder: ExperimentDir, what: Collection[str]) -> None:
    """Snapshot the folder, without files that only concern this machine.

    Args:
        what: the value of `upload.what`; `lake` and `videos` are left out unless it names them.
    """
    picture = picture_of(folder)
    left_out = _LEFT_OUT | {name for name in _OPTIONAL if name not in what}
    forget_picture(folder)
    for path in sorted(folder.root.rglob("*")):
        parts = path.relative_to(folder.root).parts
        if any(part.startswith(".") or part in left_out for part in parts) or not path.is_file():
            continue
        target = picture.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        if parts[0] == "generations" or any(part in _NEVER_CHANGE for part in parts[:-1]):
            link_file(path, target)
        else:
            shutil.copyfile(path, target)


def forget_picture(folder: ExperimentDir) -> None:
    shutil.rmtree(picture_of(folder), ignore_errors=True)


def held_bytes(folder: ExperimentDir) -> int:
    """Return the disk space that the picture alone takes.

    These are its copies, and linked files that the experiment has deleted since.
    """
    total = 0
    for path in picture_of(folder).rglob("*"):
        status = path.lstat()
        total += status.st_size if status.st_nlink == 1 and path.is_file() else 0
    return total
