"""Attempts that fail in every way that the trials must detect."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

from game_rl.errors import GameRLError
from tests.bad_input.case import Case


def _refuse(_: Path) -> None:
    raise GameRLError("no")


def _fail(_: Path) -> None:
    raise KeyError("no")


def _fill_memory(_: Path) -> None:
    bytes(2**30)


def _loop(_: Path) -> None:
    signal.setitimer(signal.ITIMER_PROF, 0.2)  # sooner than the child's own limit
    while True:
        pass


_ATTEMPTS: dict[str, Callable[[Path], object]] = {
    "nothing": lambda _: None,
    "a user's error": _refuse,
    "another error": _fail,
    "much memory": _fill_memory,
    "a print": lambda _: print("text"),  # noqa: T201
    "a print in C": lambda _: os.write(1, b"text"),
    "an exit": lambda _: os._exit(3),
    "a crash": lambda _: os.kill(os.getpid(), signal.SIGSEGV),
    "an endless loop": _loop,
    "nothing again": lambda _: None,
}

CASES = tuple(Case("mishaps", name, attempt) for name, attempt in _ATTEMPTS.items())
