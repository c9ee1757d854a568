"""Claims: only the process that was started last for a run may write to it.

An experiment restarts a member when it believes that the member's process is gone. On another
machine that may be wrong: a node that was cut off or asleep comes back. So each start takes the
claim to the run, and a process that finds another claim in the folder ends without writing.
"""

import os
import uuid
from pathlib import Path

from game_rl.errors import ExperimentError
from game_rl.run_dir import RunDir, write_atomic

CLAIM_VARIABLE = "GAME_RL_CLAIM"
"""Environment variable with the claim of this process. If it is not set, claims are not checked."""


def take_claim(run_dir: RunDir) -> str:
    """Write a new, unique claim to the run, one epoch after the standing one, and return it."""
    epoch = int(standing_claim(run_dir).partition("-")[0] or 0) + 1
    claim = f"{epoch}-{uuid.uuid4().hex}"
    write_atomic(_file(run_dir), claim)
    return claim


def check_claim(run_dir: RunDir) -> None:
    """Raise ExperimentError if this process has a claim and a newer one has been taken.

    The file is opened afresh each time, which makes network file systems ask their server.
    """
    own = os.environ.get(CLAIM_VARIABLE)
    if own is not None and standing_claim(run_dir) != own:
        raise ExperimentError(
            f"a newer process has been started for {run_dir.root}; this one ends without writing"
        )


def standing_claim(run_dir: RunDir) -> str:
    """Return the claim in the run directory, or "" if there is none."""
    try:
        return _file(run_dir).read_text(encoding="ascii")
    except FileNotFoundError:
        return ""


def _file(run_dir: RunDir) -> Path:
    return run_dir.root / "claim"
