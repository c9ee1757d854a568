"""The process in which `raw_state` tries a state; on failure it prints the reason to stdout."""

import pickle
import sys
from contextlib import closing

from game_rl.emulator.pyboy_emulator import PyBoyEmulator
from game_rl.emulator.rom import Rom
from game_rl.errors import EmulatorError

_FRAMES = 300


def _play(rom: Rom, raw: bytes, *, colour: bool) -> None:
    with closing(PyBoyEmulator(rom, colour=colour)) as emulator:
        emulator.load_raw_state(raw)
        for button in ("a", "start", "right"):
            emulator.hold([button])
            emulator.tick(_FRAMES // 3, render=True)
        emulator.load_state(emulator.save_state())


def main() -> int:
    rom, raw, colour = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own parent
    try:
        _play(rom, raw, colour=colour)
    except EmulatorError as error:
        sys.stdout.write(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
