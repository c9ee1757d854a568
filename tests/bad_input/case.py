"""A bad input, and the outcome of an attempt to load it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

LONGEST_MESSAGE = 2_000  # characters that a person still reads; a path alone may have 255


@dataclass(frozen=True)
class Case:
    """A bad or odd input.

    Attributes:
        kind: row of the table in docs/research/reliability.md that counts the case.
        name: name that is unique in its corpus.
        attempt: function that makes the input in an empty folder, loads it like a user's command,
            and uses what was loaded. It raises the error that the user would see.
    """

    kind: str
    name: str
    attempt: Callable[[Path], object]


@dataclass(frozen=True)
class Outcome:
    """The outcome of an attempt.

    Attributes:
        end: `loaded` and `refused` are good. `raised` is an error other than a GameRLError,
            `printed` is text on stdout or stderr, `died` is the death of the process, and `hung`
            is more CPU or wall-clock time than any input may take.
        message: error message, or the printed text.
    """

    name: str
    end: Literal["loaded", "refused", "raised", "printed", "died", "hung"]
    message: str = ""

    @property
    def is_good(self) -> bool:
        return self.end in {"loaded", "refused"}
