"""State files that game.yaml names, and what is kept of those of an older format of PyBoy."""

import hashlib
import stat
from contextlib import suppress
from pathlib import Path

from game_rl.emulator.rom import Rom
from game_rl.emulator.saved_state import unpack_state
from game_rl.errors import EmulatorError
from game_rl.files.durable_files import write_atomic

_LARGEST_STATE_BYTES = 4 * 2**20  # PyBoy's have up to 0.4 MB


def read_limited(path: Path, most_bytes: int, what: str) -> bytes:
    """Read a regular file; raise OSError or ValueError if there is none or it is too large."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"it is larger than {what}")
    return data


def read_state(path: Path, rom: Rom, *, colour: bool, accepts_older: bool) -> bytes:
    """Return what an emulator can load of a state file.

    A state of an older format is converted once. The result is kept beside it, as
    `NAME.converted`, where every later process finds it; if it cannot be written there, each
    process converts for itself. It is converted again when the file, the ROM or PyBoy's format is
    another one.

    Raises:
        OSError, ValueError: the file cannot be read.
        EmulatorError: PyBoy refuses the older state, hangs or crashes.
    """
    from game_rl.emulator import pyboy_emulator  # games are read without PyBoy, which is large

    data = read_limited(path, _LARGEST_STATE_BYTES, "any emulator state")
    if not (accepts_older and pyboy_emulator.is_older_state(data)):
        return data
    kept = path.with_name(f"{path.name}.converted")
    made_from = (
        f"{hashlib.sha256(data).hexdigest()} {rom.sha256} {colour} {pyboy_emulator.STATE_FORMAT}"
    )
    key = hashlib.sha256(made_from.encode()).digest()
    with suppress(OSError, ValueError, EmulatorError):
        found = read_limited(kept, _LARGEST_STATE_BYTES, "any emulator state")
        if found.startswith(key):
            state = found.removeprefix(key)
            unpack_state(state, rom_sha256=rom.sha256, is_colour=colour)
            return state
    state = pyboy_emulator.convert_older_state(rom, data, colour=colour)
    with suppress(OSError):
        write_atomic(kept, key + state)
    return state


def state_file_problem(path: Path, rom: Rom, *, colour: bool, accepts_older: bool) -> str | None:
    """Return why a state file is of the wrong format or cannot be converted; None otherwise.

    What is wrong with a file of today's format is found when it is loaded.
    """
    from game_rl.emulator.pyboy_emulator import state_problem

    try:
        state = read_state(path, rom, colour=colour, accepts_older=accepts_older)
    except EmulatorError as error:
        return f"{path}: {error}"
    except (OSError, ValueError):
        return None
    problem = state_problem(state)
    return None if problem is None else f"{path}: {problem}"
