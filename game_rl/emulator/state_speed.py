"""Whether emulator states are saved and loaded fast, which is found without importing PyBoy.

PyBoy makes Python calls for each byte of a state. The extension module `fast_states` does the same
in C, where game_rl was installed with a C compiler.
"""

import os
import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

MODULE = "game_rl.emulator.fast_states"
SWITCH = "GAME_RL_FAST_STATES"
"""Variable of the environment; 0 saves and loads states by PyBoy alone, to compare the two ways."""

_COMPILED_FOR = re.compile(rb"compiled for PyBoy ([^\0]+)\0")


def why_states_are_slow() -> str | None:
    """Return why `fast_states` is not used; None if it is."""
    if os.environ.get(SWITCH) == "0":
        return f"{SWITCH} is 0"
    spec = find_spec(MODULE)
    if spec is None or spec.origin is None:
        return (
            "game_rl was installed without its compiled module; install a C compiler and the "
            "headers of Python, then game_rl again"
        )
    found = _COMPILED_FOR.search(Path(spec.origin).read_bytes())
    compiled_for = "another version" if found is None else found[1].decode()
    if compiled_for != version("pyboy"):
        return (
            f"game_rl's module is compiled for PyBoy {compiled_for}, but {version('pyboy')} is "
            "installed; install game_rl again"
        )
    return None


def describe_states() -> str:
    """Return how states are saved and loaded, in one line."""
    why = why_states_are_slow()
    if why is None:
        return "fast, by the module compiled for the installed PyBoy"
    return f"slow, by PyBoy itself: {why}"
