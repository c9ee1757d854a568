"""A state that PyBoy itself saved, tried in a process of its own.

Such a file has no checksum. A flipped bit in it can be a clock that is wrong by 2^63 cycles, which
PyBoy counts out one by one, or a bank beyond the cartridge, which it reads without looking: the
process hangs for good or dies. So another one plays the state first. What it cannot see is damage
that the game itself can bear, or meets later.
"""

import os
import pickle
import subprocess
import sys

from game_rl.emulator.rom import Rom
from game_rl.errors import EmulatorError

_TIME_LIMIT_S = 30.0  # it takes one second


def try_raw_state(
    rom: Rom, raw: bytes, *, colour: bool, time_limit_s: float = _TIME_LIMIT_S
) -> None:
    """Play `raw` for 300 frames in another process.

    Raises:
        EmulatorError: PyBoy refuses it, or does not survive it.
    """
    try:
        trial = subprocess.run(
            [sys.executable, "-m", "game_rl.emulator.raw_state_trial"],
            input=pickle.dumps((rom, raw, colour)),
            capture_output=True,
            timeout=time_limit_s,
            check=False,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
    except subprocess.TimeoutExpired:
        raise EmulatorError(
            "the state is damaged: PyBoy does not come to an end with it in "
            f"{time_limit_s:.0f} s; save the state again"
        ) from None
    if trial.returncode != 0:
        told = trial.stdout.decode(errors="replace").strip()
        raise EmulatorError(
            told
            or "the state is damaged: PyBoy dies of it "
            f"(exit status {trial.returncode}); save the state again"
        )
