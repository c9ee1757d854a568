"""Which of a run's processes may write to it: the one that was started last.

An experiment starts a member again when it believes that its process is gone. On another machine
that may be wrong: a node that was cut off, or slept, comes back. So each start takes the claim to
the run, and a process that finds another claim in the folder ends without writing.
"""

import os
import uuid
from pathlib import Path

from game_rl.errors import ExperimentError
from game_rl.run_dir import RunDir, write_atomic

CLAIM_VARIABLE = "GAME_RL_CLAIM"
"""In the environment: the claim under which this process writes; without it, nobody is asked."""


def take_claim(run_dir: RunDir) -> str:
    """A new claim to the run, of an epoch after the one that is there, and no other one's."""
    epoch = int(standing_claim(run_dir).partition("-")[0] or 0) + 1
    claim = f"{epoch}-{uuid.uuid4().hex}"
    write_atomic(_file(run_dir), claim)
    return claim


def check_claim(run_dir: RunDir) -> None:
    """Raise ExperimentError if this process has a claim, and another one has been taken since.

    The file is opened anew each time: that makes network file systems ask their server.
    """
    own = os.environ.get(CLAIM_VARIABLE)
    if own is not None and standing_claim(run_dir) != own:
        raise ExperimentError(
            f"another process has been started for {run_dir.root} since this one; this one ends "
            "without writing"
        )


def standing_claim(run_dir: RunDir) -> str:
    """The claim that is there; "": none."""
    try:
        return _file(run_dir).read_text(encoding="ascii")
    except FileNotFoundError:
        return ""


def _file(run_dir: RunDir) -> Path:
    return run_dir.root / "claim"
