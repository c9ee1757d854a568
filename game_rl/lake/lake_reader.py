"""The view that a run has of a Lake that other runs write."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from game_rl.errors import LakeError
from game_rl.lake.lake import Lake
from game_rl.lake.mark import Mark
from game_rl.lake.sampler import Batch, Sampler
from game_rl.lake.segment import SEALED, SHELVED
from game_rl.lake.stored_view import StoredView
from game_rl.lake.view import EvictedError, Indices, LakeView, stream_of

_MOST_VIEWS = 5  # attempts at one draw while files are being deleted
_FOLLOWING = "following"  # suffix of the pin between checkpoints


class RowsLostError(LakeError):
    """The view has fewer rows than before, so ranks have changed their meaning."""


class LakeReader:
    """One view of a Lake, which changes only when it is renewed. Only pins are written.

    A pin keeps the rows of the view, even if the Lake's writers evict them. In a Lake that is not
    writable, rows can be lost, and `tell` reports it.

    Args:
        table_folder: folder on the disk that keeps the view's table.
        pins: prefix of the names of this run's pins.
        cache_bytes: memory for blocks that are kept decompressed.
        follows: whether the run follows the Lake as it grows. The Lake may then be empty at times,
            when its runs have just started or started again.
        tell: is called with a sentence if rows were lost or pins cannot be written.

    Attributes:
        sealed_at: when the view's newest rows were sealed, by `time.time`; -inf unless the run
            follows the Lake.
    """

    def __init__(
        self,
        path: Path,
        *,
        table_folder: Path,
        pins: str,
        n_step: int,
        gamma: float,
        cache_bytes: int,
        follows: bool = False,
        tell: Callable[[str], None],
    ) -> None:
        self.path = path
        self.sealed_at = -np.inf
        self._follows = follows
        self._listed: list[Path] = []
        self._lake = Lake.open(path, keeps_indices=False)
        self._table_folder = table_folder
        self._pins = pins
        self._n_step, self._gamma, self._cache_bytes = n_step, gamma, cache_bytes
        self._tell = tell
        self._cannot_pin = self._cannot_store = False
        self.mark = Mark((), {})
        self._set_view(LakeView(self._lake.schema, ()))

    @property
    def view(self) -> LakeView:
        return self._view

    def take(self, ranks: Indices) -> Batch:
        """Return the transitions with these ranks in the view.

        Raises:
            RowsLostError: some rows are gone, and the view is smaller now.
            LakeError: a block is damaged, or all rows are gone.
        """
        for _ in range(_MOST_VIEWS):
            try:
                return self._sampler.take(ranks)
            except EvictedError:
                self._find_again(len(self._view))
        raise self._files_go()

    def renew(self, name: str) -> None:
        """Renew the view with all that is sealed now, and pin it under `name`.

        Raises:
            LakeError: the Lake is damaged.
        """
        mark = self._pinned_mark(name)
        if self._follows and self.mark.segments and not mark.segments:
            self._keep(name)  # the Lake's runs started again and will play the same timesteps
        elif mark != self.mark:
            self.mark = mark
            self._set_view(self._view_of(mark))

    def follow(self) -> None:
        """Renew the view and pin it until the next call; cheap if nothing is new.

        Raises:
            LakeError: the Lake is damaged.
        """
        listed = self._lake.files(SEALED)
        if listed and listed != self._listed:
            self.renew(_FOLLOWING)
            self._listed = listed

    def stop_following(self) -> None:
        """Remove the pin of what came after the last checkpoint."""
        self.unpin(_FOLLOWING)

    def unpin(self, name: str) -> None:
        with suppress(OSError, LakeError):  # `keep_pins` does so at the next start
            self._lake.unpin(f"{self._pins}.{name}")

    def keep_pins(self, names: Iterable[str]) -> None:
        """Remove all pins of this run but these."""
        with suppress(OSError, LakeError):
            kept = (f"{self._pins}.{name}" for name in names)
            self._lake.keep_pins(kept, among=f"{self._pins}.")

    def state(self) -> dict[str, Any]:
        """Return the view as JSON-compatible data for a checkpoint."""
        return {"path": str(self.path), "mark": self.mark.to_json(), "n_rows": len(self._view)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the view of a checkpoint without rows that are gone, and report the changes.

        Raises:
            LakeError: the Lake is damaged, or no row of the view is left.
        """
        self.mark = Mark.from_json(state["mark"], source=f"the checkpoint's view of {self.path}")
        if self._follows and not self.mark.segments:
            return
        self._set_view(self._view_of(self.mark))
        self._tell_of_lost(int(state["n_rows"]))
        if not self._follows:
            self._tell_of_grown()

    def _tell_of_grown(self) -> None:
        grown = sum(
            max(0, end - self.mark.sequences.get(name, 0))
            for name, end in self._lake.view().sequences.items()
        )
        if grown:
            self._tell(
                f"{self.path} has {grown:,} timesteps more than at the checkpoint; they are drawn "
                "from the next checkpoint on"
            )

    def _keep(self, name: str) -> None:
        with suppress(OSError):
            self._lake.keep(f"{self._pins}.{name}", self.mark)

    def _pinned_mark(self, name: str) -> Mark:
        try:
            return self._lake.pin(f"{self._pins}.{name}")
        except (OSError, LakeError) as error:
            mark = self._lake.mark()  # raises if the Lake itself is damaged
            if not self._cannot_pin:
                self._cannot_pin = True
                self._tell(
                    f"{self.path} is read without pins ({error}), so this run loses the rows that "
                    "its writers evict; make its folder pins writable, or learn from a copy"
                )
            return mark

    def _view_of(self, mark: Mark) -> LakeView:
        """Return the view at `mark`, from its files or, if some are gone, by its rows."""
        for _ in range(_MOST_VIEWS):
            with suppress(EvictedError):
                return self._stored(self._found(mark))
        raise self._files_go()

    def _found(self, mark: Mark) -> LakeView:
        with suppress(LakeError):
            return self._lake.view(mark)
        return self._lake.rows_of(mark)

    def _stored(self, view: LakeView) -> LakeView:
        try:
            return StoredView(view, self._table_folder)
        except OSError as error:
            if not self._cannot_store:
                self._cannot_store = True
                self._tell(
                    f"the table of {self.path} cannot be written to {self._table_folder} "
                    f"({error}), and is kept in memory instead; free some space there"
                )
            return view

    def _files_go(self) -> LakeError:
        return LakeError(
            f"the files of {self.path} are deleted while they are opened; learn from a copy of it"
        )

    def _find_again(self, n_rows: int) -> None:
        """Make the view again after files were renamed, merged or deleted."""
        self._set_view(self._view_of(self.mark))
        if len(self._view) != n_rows:
            self._tell_of_lost(n_rows)
            raise RowsLostError(f"{self.path} has lost rows")

    def _tell_of_lost(self, n_rows: int) -> None:
        lost = n_rows - len(self._view)
        if not len(self._view):
            raise LakeError(
                f"{self.path}: all {n_rows:,} rows that this run learned from are gone; copy them "
                "back, or take the Lake out of algorithm.learn_from.lakes"
            )
        if lost:
            self._tell(
                f"{self.path} has lost {lost:,} of the {n_rows:,} rows that this run learned from; "
                "it continues with the others, and no longer equals the run without the loss bit "
                "for bit"
            )

    def _set_view(self, view: LakeView) -> None:
        self._view = view
        if self._follows:
            self.sealed_at = _sealed_at(view)
        if len(view):
            self._sampler = Sampler(
                view, n_step=self._n_step, gamma=self._gamma, cache_bytes=self._cache_bytes
            )


def _sealed_at(view: LakeView) -> float:
    """Return when the newest file of the view was sealed; -inf if it has none."""
    newest = {stream_of(segment): segment.path for segment in view.segments}  # the last wins
    found = [-np.inf]
    for path in newest.values():
        for place in (path, path.with_suffix(SHELVED)):
            with suppress(OSError):
                found.append(place.stat().st_mtime)
    return max(found)
