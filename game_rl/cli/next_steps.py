"""What to look at once a training has ended, as commands that a shell takes as they stand."""

import shlex
import shutil
import sys
from pathlib import Path


def next_steps(run: Path, video: Path | None) -> list[tuple[str, str]]:
    """Return the places and commands to look at next, each with its name.

    Args:
        run: directory of a run that has ended.
        video: its clip, if one was recorded.
    """
    clip = [] if video is None else [("watch", shlex.quote(str(video)))]
    fights = ["evaluate", str(run), "--episodes", "100", "--seed", "1"]
    return [
        *clip,
        ("record", shell_command("game-rl", "record", str(run), "--output", "clip.mp4")),
        ("evaluate", shell_command("game-rl", *fights)),
        ("curves", shell_command("tensorboard", "--logdir", str(run))),
    ]


def shell_command(program: str, *arguments: str) -> str:
    """Return a command line, with the program's path where the shell does not find its name."""
    return shlex.join([_found(program), *arguments])


def _found(program: str) -> str:
    """Return the program's name, or its path beside this Python, relative to here if it is below.

    `make demo` installs into a virtual environment that the person has not activated.
    """
    beside = Path(sys.executable).parent / program
    if shutil.which(program) is not None or not beside.exists():
        return program
    here = Path.cwd()
    return str(beside.relative_to(here) if beside.is_relative_to(here) else beside)
