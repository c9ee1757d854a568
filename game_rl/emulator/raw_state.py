"""A trial, in another process, of a state that PyBoy itself saved.

Such a file has no checksum. A flipped bit can put a clock wrong by 2^63 cycles, which PyBoy counts
one by one, or select a bank beyond the cartridge, which it reads without a check. The process then
hangs forever or crashes, so another process plays the state first. This does not detect damage that
the game tolerates or meets only later.
"""

import os
import pickle
import subprocess
import sys

from game_rl.emulator.rom import Rom
from game_rl.errors import EmulatorError

_TIME_LIMIT_S = 30.0  # a trial takes one second


def try_raw_state(
    rom: Rom, raw: bytes, *, colour: bool, time_limit_s: float = _TIME_LIMIT_S
) -> None:
    """Play `raw` for 300 frames in another process.

    Raises:
        EmulatorError: PyBoy refuses the state, hangs or crashes.
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
            "the state is damaged: PyBoy was still busy with it after "
            f"{time_limit_s:.0f} s; save the state again"
        ) from None
    if trial.returncode != 0:
        told = trial.stdout.decode(errors="replace").strip()
        raise EmulatorError(
            told
            or "the state is damaged: PyBoy crashes on it "
            f"(exit status {trial.returncode}); save the state again"
        )
