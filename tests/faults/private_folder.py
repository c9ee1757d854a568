"""A folder that has its content for one process and its children, and is empty for all others.

The process runs in its own mount namespace, in which the folder shows the content of `content_of`.
Tasks on a cluster's nodes run outside of it and see an empty folder. Files that they wrote would
stay there.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

_SCRIPT = 'mount --bind "$0" "$1" && shift && exec "$@"'


def is_possible() -> bool:
    """Return whether this user may mount."""
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", tempfile.gettempdir()]
    return (
        bool(shutil.which("unshare"))
        and not subprocess.run(command, check=False, capture_output=True).returncode
    )


def make_private(folder: Path) -> None:
    """Create a folder whose content only commands of `alone` see at this path."""
    folder.mkdir()
    _place(folder).mkdir(parents=True)


def content_of(folder: Path) -> Path:
    """Return where all processes find the files: the folder itself unless it is private."""
    private = _place(folder)
    return private if private.is_dir() else folder


def _place(folder: Path) -> Path:
    return folder.parent / "private" / folder.name


def alone(folder: Path, command: list[str]) -> list[str]:
    """Return a command that sees the folder's content; its process id stays the same."""
    content = content_of(folder)
    if content == folder:
        return command
    return ["unshare", "--mount", "sh", "-c", _SCRIPT, str(content), str(folder), *command]
