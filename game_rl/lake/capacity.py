"""How much of what was played a Lake keeps."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Capacity:
    """The limits above which the oldest data is evicted.

    Attributes:
        transitions: the most transitions that samples are drawn from; see `horizon`.
        n_bytes: the most bytes on disk, including data that only checkpoints keep.
    """

    transitions: int | None = None
    n_bytes: int | None = None


NO_LIMIT = Capacity()
