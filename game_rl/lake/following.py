"""How a run follows Lakes that other runs write: when it looks again, and what it has seen."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median

_MOST_OF_THE_TIME = 0.05  # largest share of the time that looking may take
_RECENT_DRAWS = 1_000


class Following:
    """Decides when to look into the Lakes again, and counts the rows that were seen.

    A run that writes a Lake may be taken back to its checkpoint, and then plays the same timesteps
    again. A row is counted by its number, so it counts once.

    Args:
        every_s: seconds between two looks; longer if a look takes more than a twentieth of that.
        check: is called when a new stream appears; raises LakeError if it is of another game.
    """

    def __init__(self, every_s: float, *, check: Callable[[], object] = lambda: None) -> None:
        self._every_s, self.check = every_s, check
        self._next_at = 0.0
        self._ends: dict[str, int] = {}
        self._ages_s: deque[float] = deque(maxlen=_RECENT_DRAWS)

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._next_at

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure a look into the Lakes, and decide when the next is due."""
        began = time.monotonic()
        yield
        now = time.monotonic()
        self._next_at = now + max(self._every_s, (now - began) / _MOST_OF_THE_TIME)

    def saw(self, sequences: Mapping[str, int]) -> None:
        """Record the number after the newest row of each sequence, by "stream/env"."""
        for name, end in sequences.items():
            self._ends[name] = max(end, self._ends.get(name, 0))

    def drew(self, sealed_at: float) -> None:
        """Record a draw, and when the newest row available to it was sealed, by `time.time`."""
        self._ages_s.append(max(0.0, time.time() - sealed_at))

    @property
    def n_rows(self) -> int:
        """Rows that the Lakes' runs have played, up to the newest that this run has seen."""
        return sum(self._ends.values())

    @property
    def newest_age_s(self) -> float | None:
        """Median age of the newest available row over the last thousand draws."""
        return median(self._ages_s) if self._ages_s else None

    def state(self) -> dict[str, int]:
        """Return what was seen, as JSON-compatible data."""
        return dict(self._ends)

    def load_state(self, state: Mapping[str, int]) -> None:
        self._ends = dict(state)
