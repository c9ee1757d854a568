"""How far back a Lake is seen: of each sequence, the rows from a number on.

Which rows those are follows from the rows alone, never from how they were cut into files: every
sequence, that is every env of every stream, keeps its newest L numbers, and L is the largest for
which all together have at most the capacity. A sequence that is shorter keeps all, so a stream that
has ended is not pushed out by one that grows, and envs that write as much keep as much. L is at
least 1.

Files whose rows are all hidden are deleted. So that nobody who comes later sees more of a file that
stayed because of some of its rows, `horizon.json` has the numbers.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from game_rl.lake.checked_json import from_document, to_document
from game_rl.lake.lock import in_turns
from game_rl.run_dir import write_atomic

_KIND = "horizon of a lake, format 1"

Firsts = dict[str, int]
"""Number of the first row that is seen, by "stream/env"; 0 where there is none."""


def kept_numbers(ends: Mapping[str, int], most_transitions: int) -> int:
    """L: how many of its newest numbers a sequence keeps.

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
    """What is seen at this capacity, and nothing that was hidden before."""
    kept = kept_numbers(ends, most_transitions)
    return _highest(firsts, {name: end - kept for name, end in ends.items() if end > kept})


class Horizon:
    """What all who look into a Lake know to be hidden; many processes may raise it at once."""

    def __init__(self, lake: Path) -> None:
        self._file = lake / "horizon.json"
        self._lock = lake / "horizon.lock"

    def firsts(self) -> Firsts:
        """Raise LakeError if the file was changed."""
        try:
            text = self._file.read_text(errors="replace")
        except FileNotFoundError:
            return {}
        return dict(from_document(text, _KIND, source=self._file)["firsts"])

    def raise_to(self, firsts: Mapping[str, int]) -> None:
        """Hide what is before these numbers, for good."""
        self._change(lambda known: _highest(known, firsts))

    def set_back(self, stream: str | None, firsts: Mapping[str, int]) -> None:
        """Forget what was hidden of this stream, or of all, but for this."""
        self._change(
            lambda known: {k: n for k, n in known.items() if not is_of(stream, k)} | dict(firsts)
        )

    def _change(self, change: Callable[[Firsts], Firsts]) -> None:
        known = self.firsts()
        if change(known) == known:
            return
        with in_turns(self._lock):
            changed = change(self.firsts())
            write_atomic(self._file, to_document(_KIND, {"firsts": changed}))


def is_of(stream: str | None, sequence: str) -> bool:
    """Whether "stream/env" is of the stream; of None, everything is."""
    return stream is None or sequence.rpartition("/")[0] == stream


def _highest(one: Mapping[str, int], other: Mapping[str, int]) -> Firsts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
