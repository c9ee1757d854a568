"""How many checkpoints a run keeps at each moment: upper bounds over all its possible courses."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class KeptCheckpoints:
    """Upper bounds for what a `CheckpointStore` keeps in a run that is not stopped on its way.

    A run saves after each multiple of `every_timesteps`, at its end, and where an evaluation is the
    best so far. The store keeps the best checkpoint, the newest `keep_last` others, and for good
    the first after each multiple of `keep_every_timesteps`. It is unknown which evaluations will be
    the best so far, so these bounds hold for all possibilities. Without `keep_every_timesteps` some
    course of the run reaches them; with it they may be one checkpoint too high. They count every
    evaluation as a save. A course that saves less often has no more checkpoints that are kept for
    good, and its newest ones reach back further, so more of them are those kept for good.

    A signal also saves, and so do updates that are further apart than `checkpoints.deadline_s`.
    Those saves are not counted.

    Attributes:
        rollout: timesteps between two updates; whatever is due is done after the next update.
        updates: number of updates of the whole run.
        most_counted: number of saves that are counted one by one. Where there are more, a coarser
            bound is used, which no course of the run may reach.
    """

    every_timesteps: int
    evaluate_every_timesteps: int
    keep_last: int
    keep_every_timesteps: int | None
    rollout: int
    updates: int
    most_counted: int = 1_000_000

    def after(self, update: int) -> int:
        """Most checkpoints that are kept after `update` updates; it never falls."""
        most = self.keep_last + (update >= self._first_evaluation)
        saves = self.saved(update)
        if update > self._counted_updates:
            timesteps = update * self.rollout
            return min(saves, most + timesteps // (self.keep_every_timesteps or timesteps + 1))
        older = saves - self.keep_last  # the best may be any of these
        return min(saves, most + int(self._for_good[older - 1])) if older > 0 else saves

    def at_once(self, update: int) -> int:
        """As `after`, plus the checkpoint that is written before an old one is deleted."""
        newest = self._newest_save(update)
        return self.after(newest - 1) + 1 if newest else 0

    def saved(self, update: int) -> int:
        """Return the most checkpoints that are written in the first `update` updates."""
        if update > self._counted_updates:
            timesteps = update * self.rollout
            each = (self.every_timesteps, self.evaluate_every_timesteps)
            return 1 + sum(timesteps // every for every in each)
        return int(np.searchsorted(self._saves, update, side="right"))

    def newest(self, update: int, count: int) -> list[int]:
        """Return the updates after which the newest `count` checkpoints were saved, newest first.

        Every evaluation counts as a save. Where saves are not counted one by one, all of them count
        as saved after `update`.
        """
        if update > self._counted_updates:
            return [update] * count
        saves = self.saved(update)
        newest: list[int] = self._saves[max(0, saves - count) : saves][::-1].tolist()
        return newest

    def _newest_save(self, update: int) -> int:
        """Return the update after which the newest save is due; 0 if there is none yet."""
        if update >= self.updates:
            return self.updates
        timesteps = update * self.rollout
        multiples = (
            timesteps // every * every
            for every in (self.every_timesteps, self.evaluate_every_timesteps)
        )
        return -(-max(multiples) // self.rollout)

    @property
    def _first_evaluation(self) -> int:
        """The update after which the first evaluation comes, which is always the best so far."""
        return min(-(-self.evaluate_every_timesteps // self.rollout), self.updates)

    @property
    def _saves(self) -> NDArray[np.int64]:
        every = (self.every_timesteps, self.evaluate_every_timesteps)
        return _saves(every, self.rollout, self.updates, self.most_counted)

    @property
    def _counted_updates(self) -> int:
        """The last update up to which the saves are counted one by one."""
        every = min(self.every_timesteps, self.evaluate_every_timesteps)
        return min(self.updates, self.most_counted * every // self.rollout)

    @cached_property
    def _for_good(self) -> NDArray[np.int64]:
        """For each save, how many of those up to it are the first after a multiple.

        That is a multiple of `keep_every_timesteps`, so these are kept for good.
        """
        if self.keep_every_timesteps is None:
            return np.zeros(len(self._saves), np.int64)
        multiples = self._saves * self.rollout // self.keep_every_timesteps
        return np.cumsum(np.diff(multiples, prepend=0) > 0)


@lru_cache(maxsize=8)
def _saves(every: tuple[int, ...], rollout: int, updates: int, most: int) -> NDArray[np.int64]:
    """Return the updates after which a run saves, ascending; every evaluation counts as a save."""
    due = [
        -(-np.arange(1, min(updates * rollout // each, most) + 1) * each // rollout)
        for each in every
    ]
    return np.unique(np.concatenate([*due, [updates]]))


def offline_checkpoints_at_once(
    gradient_steps: int, *, save_every: int, evaluate_every: int, keep_last: int
) -> int:
    """Return the most checkpoints of an offline phase that are on the disk at once.

    That is the newest ones, the best one, and one that is being written, as the last one is while
    those of the phase are still there.
    """
    before_end = gradient_steps - 1
    rhythms = (save_every, evaluate_every)
    saved = sum(before_end // every for every in rhythms) - before_end // math.lcm(*rhythms)
    return min(saved, keep_last + (before_end >= evaluate_every)) + 1
