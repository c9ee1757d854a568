"""How much a Lake keeps: its capacity, and the first visible row of each sequence.

The horizon depends on the rows alone, never on how they were cut into files. Every sequence, that
is every env of every stream, keeps its newest L numbers. L is the largest number for which all
sequences together have at most the capacity, and is at least 1. A shorter sequence keeps all its
rows, so a stream that has ended is not pushed out by one that grows, and envs that write equally
much keep equally much.

Files whose rows are all hidden are deleted. A file stays if any of its rows is visible, so
`horizon.json` records the numbers from which later readers may see it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from game_rl.files.durable_files import write_atomic
from game_rl.files.saved import from_document, to_document

_FILES_IN_CAPACITY = 8


@dataclass(frozen=True)
class Capacity:
    """The limits above which the oldest data is evicted.

    Attributes:
        transitions: the most transitions that samples are drawn from; see `horizon`.
        n_bytes: the most bytes on disk, including data that only checkpoints keep.
    """

    transitions: int | None = None
    n_bytes: int | None = None

    @property
    def file_transitions(self) -> int | None:
        """The most rows of a file, as only whole files are deleted; None if there is no limit."""
        most = self.transitions
        return None if most is None else -(-most // _FILES_IN_CAPACITY)

    @property
    def most_on_disk(self) -> int | None:
        """The most rows on disk, which are more than the capacity; None if there is no limit.

        A file is deleted only when all of its rows are hidden.
        """
        most = self.transitions
        file = self.file_transitions
        return None if most is None or file is None else most + 2 * file


NO_LIMIT = Capacity()

_KIND = "horizon of a lake, format 1"

Firsts = dict[str, int]
"""Number of the first visible row, by "stream/env"; 0 for a sequence without an entry."""


def kept_numbers(ends: Mapping[str, int], most_transitions: int) -> int:
    """Return L: how many of its newest numbers a sequence keeps.

    Args:
        ends: number of the next row of each sequence, by "stream/env".
    """
    left = most_transitions
    for n_before, end in enumerate(sorted(ends.values())):
        share = left // (len(ends) - n_before)
        if end > share:
            return max(1, share)
        left -= end
    return max(1, most_transitions)


def raised(firsts: Mapping[str, int], ends: Mapping[str, int], most_transitions: int) -> Firsts:
    """Return the horizon for this capacity; rows that were hidden before stay hidden."""
    kept = kept_numbers(ends, most_transitions)
    return highest(firsts, {name: end - kept for name, end in ends.items() if end > kept})


class Horizon:
    """The horizon that all readers of a Lake share; many processes may raise it at once."""

    def __init__(self, lake: Path) -> None:
        self._file = lake / "horizon.json"
        self._lock = lake / "horizon.lock"

    def firsts(self) -> Firsts:
        """Read the horizon; raises LakeError if the file is damaged."""
        try:
            text = self._file.read_text(errors="replace", encoding="utf-8")
        except FileNotFoundError:
            return {}
        return dict(from_document(text, _KIND, source=self._file)["firsts"])

    def raise_to(self, firsts: Mapping[str, int]) -> None:
        """Hide the rows before these numbers for good."""
        self._change(lambda known: highest(known, firsts))

    def set_back(self, stream: str | None, firsts: Mapping[str, int]) -> None:
        """Replace the horizon of this stream, or of all streams, by `firsts`."""
        self._change(
            lambda known: {k: n for k, n in known.items() if not is_of(stream, k)} | dict(firsts)
        )

    def _change(self, change: Callable[[Firsts], Firsts]) -> None:
        known = self.firsts()
        if change(known) == known:
            return
        with FileLock(self._lock):
            changed = change(self.firsts())
            write_atomic(self._file, to_document(_KIND, {"firsts": changed}))


def is_of(stream: str | None, sequence: str) -> bool:
    """Whether the sequence "stream/env" belongs to the stream; always True if that is None."""
    return stream is None or sequence.rpartition("/")[0] == stream


def highest(one: Mapping[str, int], other: Mapping[str, int]) -> Firsts:
    """Return the horizon that hides whatever one of the two hides."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
