"""From the Lake into memory: blocks in random order or the newest, read ahead in a thread."""

import queue
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Literal, Self

import numpy as np

from game_rl.lake.block import Block
from game_rl.lake.sampler import UNIFORM, Weights
from game_rl.lake.view import Indices, LakeView

Order = Literal["random", "recent"]


def block_order(
    view: LakeView,
    *,
    n_transitions: int,
    order: Order = "random",
    rng: np.random.Generator | None = None,
    weights: Weights = UNIFORM,
) -> Indices:
    """Which blocks to read, one after the other, for at least so many transitions.

    `random` draws blocks without replacement: each next one of those that are left, by its weight
    and its length. So every transition is as likely as its weight says, but comes with its block's
    neighbours: shuffle what was read before learning from it. `recent` takes the last blocks of
    each sequence in turns, the newest first. A view with fewer transitions gives all its blocks.
    """
    chances = weights.of_blocks(view)
    wanted = np.flatnonzero(chances)
    if order == "recent":
        sequences = view.block_sequences[wanted]
        ends = np.searchsorted(sequences, sequences, side="right")
        age = ends - np.arange(len(wanted))  # in blocks of the sequence, 1 for its last
        wanted = wanted[np.lexsort((sequences, age))]
    else:
        assert rng is not None
        # The smallest of exponential variables with rates w comes first with chance w / sum w.
        wanted = wanted[np.argsort(rng.exponential(size=len(wanted)) / chances[wanted])]
    enough = np.searchsorted(np.cumsum(view.n_transitions[wanted]), n_transitions) + 1
    return wanted[:enough]


class Refill:
    """Blocks of a view, read and decompressed ahead in a thread, at most `ahead` of them.

    Iterate over it: each `Block` has packed frames and columns as they are stored, ready to be
    copied into a ring. Close it if it is not read to its end.

    Raises:
        EvictedError: while iterating: a segment is gone.
        LakeError: while iterating: a block is damaged.
    """

    def __init__(self, view: LakeView, numbers: Indices, *, ahead: int = 8) -> None:
        self._ready: queue.Queue[Block | BaseException | None] = queue.Queue(ahead)
        self._is_closed = threading.Event()
        self._thread = threading.Thread(
            target=self._work, args=(view, numbers.tolist()), name="lake refill", daemon=True
        )
        self._thread.start()

    def __iter__(self) -> Iterator[Block]:
        while (item := self._ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def close(self) -> None:
        """End the thread; what was read ahead is forgotten."""
        self._is_closed.set()
        while self._thread.is_alive():
            self._forget()
            self._thread.join(0.01)  # it may have put one more
        self._forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _work(self, view: LakeView, numbers: list[int]) -> None:
        last: BaseException | None = None
        try:
            for number in numbers:
                if self._is_closed.is_set():
                    return
                self._ready.put(view.block(number))
        except BaseException as error:  # noqa: BLE001 - raised by the iteration
            last = error
        self._ready.put(last)
        if last is not None:
            self._ready.put(None)

    def _forget(self) -> None:
        try:
            while True:
                self._ready.get_nowait()
        except queue.Empty:
            pass
