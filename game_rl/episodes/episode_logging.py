"""Logging of every episode that ends, in the training and in evaluations.

A disk that fails does not end the training here, where only a record would be lost: episodes are
left out, with a warning, until a checkpoint finds the disk well again.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from game_rl.episodes.button_log import (
    BY_WRAPPER,
    EPISODE_LOG,
    LIMIT,
    LOCKED_UP,
    WORKER_DIED,
    EpisodeLog,
)
from game_rl.episodes.episode_files import (
    EndedEpisode,
    EpisodeWriter,
    Kind,
)
from game_rl.errors import system_fault

_WRITE_EVERY_S = 10.0  # so that the newest episodes can be looked at while the run trains
_LOST = "its worker process died, and the actions with it"
_NEWEST_EPISODES = 100  # among which one is looked for that shows what a curve says


def is_logged(info: dict[str, Any]) -> bool:
    """Whether the info of an episode's end is of an env that logs, or of one whose worker died."""
    return EPISODE_LOG in info or "worker_restarted" in info


def ended_episode(env: int, info: dict[str, Any]) -> EndedEpisode:
    """Return what the info of an episode's end says, which a VecMonitor has added to."""
    log = info.get(EPISODE_LOG) or EpisodeLog("", 0, 0, 0, b"", b"", 0.0, _LOST)
    terminated = not info.get("TimeLimit.truncated", False)
    success = info.get("is_success")
    return EndedEpisode(
        env=env,
        length=int(info["episode"]["l"]),
        reward=float(info["episode"]["r"]),
        success=None if success is None else bool(success),
        terminated=terminated,
        ending=_ending(info, terminated=terminated),
        log=log,
    )


def _ending(info: dict[str, Any], *, terminated: bool) -> str:
    if "worker_restarted" in info:
        return WORKER_DIED
    if "lock_up" in info:
        return LOCKED_UP
    if "ending" in info:
        return str(info["ending"])
    return BY_WRAPPER if terminated else LIMIT


class EpisodeLogger:
    """Writes episodes, and reports a disk that fails instead of raising.

    Args:
        open_writer: opens the writer, and begins its first segment; may raise OSError.
        warn: receives what a person should know.
    """

    def __init__(
        self, open_writer: Callable[[], EpisodeWriter], warn: Callable[[str], None]
    ) -> None:
        self._open = open_writer
        self._warn = warn
        self._writer: EpisodeWriter | None = None
        self._is_failing = False
        self._unopened = 0
        self._written_s = time.monotonic()
        # numbers and values of the newest episodes that can be played again
        self._newest: deque[tuple[int, Mapping[str, float]]] = deque(maxlen=_NEWEST_EPISODES)

    def begin(self) -> None:
        self._guarded(self._begin)

    def add(
        self,
        episode: EndedEpisode,
        *,
        timesteps: int,
        kind: Kind,
        deterministic: bool,
        values: Mapping[str, float] | None = None,
    ) -> None:
        """Add an episode; see `EpisodeWriter.add`.

        Args:
            values: what it adds to curves, by their names, for `showing`.
        """
        if self._writer is None:
            self._unopened += 1
            return
        number = self._writer.add(
            episode, timesteps=timesteps, kind=kind, deterministic=deterministic
        )
        if values and not (episode.log.fault or self._writer.is_failing):
            self._newest.append((number, values))
        if self._writer.is_full:
            self._guarded(self._writer.write)

    def add_evaluation(
        self, ended: Iterable[EndedEpisode], *, timesteps: int, kind: Kind, deterministic: bool
    ) -> None:
        for episode in ended:
            self.add(episode, timesteps=timesteps, kind=kind, deterministic=deterministic)

    def showing(self, curve: str) -> int | None:
        """Return the number of a recent episode that shows what a curve says, or None.

        It is the one with the highest value above 0, of equals the newest. It is written, so it can
        be played again from now on.
        """
        if self._writer is not None:
            self._guarded(self._writer.write)  # forgets the newest ones if the disk fails
        found = [(values.get(curve, 0.0), number) for number, values in self._newest]
        value, number = max(found, default=(0.0, 0))
        return number if value > 0 else None

    def write_if_due(self) -> None:
        """Write, if the last time is long ago."""
        now = time.monotonic()
        if self._writer is not None and now - self._written_s > _WRITE_EVERY_S:
            self._written_s = now
            self._guarded(self._writer.write)

    def sync(self) -> None:
        """Write all, also after a failure, and wait until it is on the disk."""
        self._guarded(self._begin if self._writer is None else self._writer.sync)

    def close(self) -> None:
        if self._writer is not None:
            self._guarded(self._writer.close)

    def _begin(self) -> None:
        self._writer = self._open()

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except OSError as error:
            self._newest.clear()  # some of them are lost
            if not self._is_failing:
                self._is_failing = True
                self._warn(
                    f"episodes are not logged: {system_fault(error, 'the disk')}; the training "
                    "continues, and logs episodes again once a checkpoint finds that the disk works"
                )
            return
        dropped = self._unopened + (0 if self._writer is None else self._writer.dropped)
        is_well = self._writer is not None and not self._writer.is_failing
        if self._is_failing and is_well:
            self._is_failing = False
            self._warn(f"episodes are logged again; {dropped:,} are missing")
