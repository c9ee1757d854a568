"""One bad input, and what became of it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

LONGEST_MESSAGE = 2_000  # characters: what a person reads; a path alone may have 255


@dataclass(frozen=True)
class Case:
    """A bad or odd input.

    Attributes:
        kind: the row of the table in docs/reliability.md that counts it.
        name: unlike that of any other case of its corpus.
        attempt: makes the input in an empty folder, loads it as a user's command does, and uses
            what was loaded; raises what the user would see.
    """

    kind: str
    name: str
    attempt: Callable[[Path], None]


@dataclass(frozen=True)
class Outcome:
    """What one attempt came to.

    Attributes:
        end: `loaded` and `refused` are good. `raised` is an error that is no GameRLError,
            `printed` is text on stdout or stderr, `died` a crash in native code, `hung` more CPU
            or wall clock than any input may take.
        message: of the error, or what was printed.
    """

    name: str
    end: Literal["loaded", "refused", "raised", "printed", "died", "hung"]
    message: str = ""

    @property
    def is_good(self) -> bool:
        return self.end in {"loaded", "refused"}
