"""A folder that is at its path for one process and those that it starts, and empty for all others.

A process in a mount namespace of its own sees what `content_of` names at the path; tasks that a
cluster's nodes run, outside of it, see an empty folder there, and whatever they wrote would stay in
it.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

_SCRIPT = 'mount --bind "$0" "$1" && shift && exec "$@"'


def is_possible() -> bool:
    """Whether this user may mount."""
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", tempfile.gettempdir()]
    return (
        bool(shutil.which("unshare"))
        and not subprocess.run(command, check=False, capture_output=True).returncode
    )


def make_private(folder: Path) -> None:
    """Have commands of `alone` see a folder of their own at this path."""
    folder.mkdir()
    _place(folder).mkdir(parents=True)


def content_of(folder: Path) -> Path:
    """Where its files are for everybody: the folder itself, unless it was made private."""
    private = _place(folder)
    return private if private.is_dir() else folder


def _place(folder: Path) -> Path:
    return folder.parent / "private" / folder.name


def alone(folder: Path, command: list[str]) -> list[str]:
    """The command, of the same process id, for which the folder has its content."""
    content = content_of(folder)
    if content == folder:
        return command
    return ["unshare", "--mount", "sh", "-c", _SCRIPT, str(content), str(folder), *command]
