"""How a run follows Lakes that others write: when it looks again, and what it has seen."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median

_MOST_OF_THE_TIME = 0.05  # that looking takes
_RECENT_DRAWS = 1_000


class Following:
    """When to look, and the books of what was seen.

    A run of a Lake may be taken back to its checkpoint, and plays the same timesteps again. A row
    is counted by its number, so it counts once.

    Args:
        every_s: seconds between two looks, more where a look takes longer than a twentieth of it.
        check: raises LakeError where a stream that has come is of another game.
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
        """Around a look."""
        began = time.monotonic()
        yield
        now = time.monotonic()
        self._next_at = now + max(self._every_s, (now - began) / _MOST_OF_THE_TIME)

    def saw(self, sequences: Mapping[str, int]) -> None:
        """Args: sequences: number after the newest row of each, by "stream/env"."""
        for name, end in sequences.items():
            self._ends[name] = max(end, self._ends.get(name, 0))

    def drew(self, sealed_at: float) -> None:
        """Args: sealed_at: when the newest row that could be drawn was sealed, by `time.time`."""
        self._ages_s.append(max(0.0, time.time() - sealed_at))

    @property
    def n_rows(self) -> int:
        """That the Lakes' runs have played and that were seen at some time."""
        return sum(self._ends.values())

    @property
    def newest_age_s(self) -> float | None:
        """Of the newest row that could be drawn, the median over the last thousand draws."""
        return median(self._ages_s) if self._ages_s else None

    def state(self) -> dict[str, int]:
        """The books; JSON holds them."""
        return dict(self._ends)

    def load_state(self, state: Mapping[str, int]) -> None:
        self._ends = dict(state)
