"""The append-only event file: writing it, listeners, reading it with superseded events left out.

It has one JSON object a line and is only ever appended to. A run that resumes from a checkpoint, or
begins again, writes an event about it. Events from after that checkpoint are superseded, and
`read_events` leaves them out.

A crash or a full disk tears at most the last line. The torn line stays in the file, and the next
one begins on a line of its own. Readers skip lines that are unfinished or that they do not know.
"""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, Field, TypeAdapter

from game_rl.errors import GameRLError, Interrupted
from game_rl.events import (
    Begun,
    CheckpointSaved,
    Ended,
    Evaluated,
    Event,
    ExperimentEnded,
    ExperimentEvent,
    ExperimentWarned,
    Resumed,
    StillWorking,
    TimedEvent,
    Warned,
    WentBack,
)
from game_rl.events.slow_work import telling_if_slow
from game_rl.files.json_lines import JsonLines, located_lines, parsed
from game_rl.files.run_dir import RunDir

_ANY_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])
_ANY_OF_EXPERIMENT: TypeAdapter[ExperimentEvent] = TypeAdapter(
    Annotated[ExperimentEvent, Field(discriminator="event")]
)


_AnyEvent = TypeVar("_AnyEvent", bound=TimedEvent)


class _Log(ABC, Generic[_AnyEvent]):
    """Hands events to listeners and, where it has a file, appends them to it.

    Events may come from any thread; listeners are called one at a time.
    """

    def __init__(
        self,
        file: "EventFile | None" = None,
        listeners: Sequence[Callable[[_AnyEvent], None]] = (),
    ) -> None:
        self._file = file
        self._listeners = list(listeners)
        self._lock = threading.RLock()

    def add_listener(self, listener: Callable[[_AnyEvent], None]) -> None:
        """Call a listener with all events from now on."""
        with self._lock:
            self._listeners.append(listener)

    @contextmanager
    def heard_by(self, listener: Callable[[_AnyEvent], None]) -> Iterator[None]:
        """Call a listener inside the block; after it, the log holds nothing of it in memory."""
        self.add_listener(listener)
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)

    def emit(self, event: _AnyEvent) -> None:
        """Pass an event to the listeners, then write it; raise OSError if the write fails."""
        with self._lock:
            for listener in self._listeners:
                listener(event)
            if self._file is not None and event.is_kept:
                self._file.add(event)

    @contextmanager
    def recording_failure(self) -> Iterator[None]:
        """Emit how it ends for an exception that is raised inside the block, and re-raise it."""
        try:
            yield
        except (Interrupted, KeyboardInterrupt) as error:
            code = error.exit_code if isinstance(error, Interrupted) else Interrupted("").exit_code
            self._record_end("stopped", code, str(error))
            raise
        except Exception as error:
            code = error.exit_code if isinstance(error, GameRLError) else GameRLError.exit_code
            self._record_end("failed", code, str(error))
            raise

    def _record_end(self, reason: Literal["stopped", "failed"], exit_code: int, text: str) -> None:
        with suppress(OSError):  # a failing disk may be what has ended it
            self.emit(self._end(reason, exit_code, text))

    @abstractmethod
    def _end(self, reason: Literal["stopped", "failed"], exit_code: int, text: str) -> _AnyEvent:
        """Return the event that says how it ended."""


class EventLog(_Log[Event]):
    """The log of a run.

    Attributes:
        timesteps: current timesteps of the training, for events that carry none themselves.
        waited_frames: the run's waited frames by timestep, for events of these timesteps; empty
            if the game has no `step`.
    """

    timesteps = 0
    waited_frames: Mapping[int, int] = MappingProxyType({})

    def emit(self, event: Event) -> None:
        if event.waited_frames is None and event.timesteps in self.waited_frames:
            waited = self.waited_frames[event.timesteps]
            event = event.model_copy(update={"waited_frames": waited})
        super().emit(event)

    def warn(self, text: str) -> None:
        self.emit(Warned(timesteps=self.timesteps, text=text))

    def telling_if_slow(self, text: str) -> AbstractContextManager[None]:
        """Emit `StillWorking` while the block takes more than two seconds."""
        return telling_if_slow(
            lambda seconds: self.emit(
                StillWorking(timesteps=self.timesteps, text=text, seconds=round(seconds, 1))
            )
        )

    def n_bytes(self) -> int:
        """Sync the file and return its length in bytes, or 0 if there is no file."""
        return 0 if self._file is None else self._file.synced_bytes()

    def _end(self, reason: Literal["stopped", "failed"], exit_code: int, text: str) -> Event:
        return Ended(timesteps=self.timesteps, reason=reason, exit_code=exit_code, text=text)


class ExperimentEventLog(_Log[ExperimentEvent]):
    """The log of an experiment."""

    def warn(self, text: str) -> None:
        self.emit(ExperimentWarned(text=text))

    def _end(
        self, reason: Literal["stopped", "failed"], exit_code: int, text: str
    ) -> ExperimentEvent:
        return ExperimentEnded(reason=reason, exit_code=exit_code, text=text)


class EventFile(JsonLines):
    """`events.jsonl`, open for appending; close it, or use it as a context manager.

    Raises:
        OSError: from every method, if the disk fails.
    """

    def add(self, event: BaseModel) -> None:
        self.append(event.model_dump_json(exclude_none=True))

    def synced_bytes(self) -> int:
        """Sync the file and return its length in bytes."""
        self.sync()
        return self.n_bytes()


class EventFollower:
    """The events of a run that are not superseded, read as they are written.

    Torn lines and events that this version does not know are left out.

    Args:
        last_bytes: how much of what is there already is read; None means all.

    Attributes:
        events: the events so far, each with the offset of its line.
        cuts: how often events were superseded, so that `events` did not just grow.
        replacements: how often another file has taken the place of the one that was read.
    """

    def __init__(self, run_dir: RunDir, *, last_bytes: int | None = None) -> None:
        self._path = run_dir.events
        self._end = 0
        if last_bytes is not None:
            self._end = max(0, self._length_and_head()[0] - last_bytes)
        self._head = b""
        self.events: list[tuple[int, Event]] = []
        self.cuts = 0
        self.replacements = 0

    def read(self) -> list[tuple[int, Event]]:
        """Read what was written since the last call; return its events that are not superseded."""
        new: list[tuple[int, Event]] = []
        length, head = self._length_and_head()
        if length < self._end or not head.startswith(self._head):
            self._end = 0
            self._head = b""
            self.events = []
            self.cuts += 1
            self.replacements += 1
        for offset, line in located_lines(self._path, start=self._end):
            self._end = offset + len(line)
            event = parse_event(line)
            if event is None:
                continue
            if isinstance(event, Begun | Resumed):
                self.events = _kept_by(event, self.events)
                new = _kept_by(event, new)
                self.cuts += 1
            self.events.append((offset, event))
            new.append((offset, event))
        self._head = max(self._head, head[: self._end], key=len)
        return new

    def _length_and_head(self) -> tuple[int, bytes]:
        """Return the file's length, and its first bytes, which tell it from another run's."""
        try:
            with self._path.open("rb") as file:
                return os.fstat(file.fileno()).st_size, file.read(_HEAD_BYTES)
        except FileNotFoundError:
            return 0, b""


_HEAD_BYTES = 512  # with time and id of the run, which no other one has


def _kept_by(start: Begun | Resumed, events: list[tuple[int, Event]]) -> list[tuple[int, Event]]:
    """Return the events that a start of the run leaves standing.

    One that reports the checkpoint resumed from is written after that checkpoint.
    """
    if isinstance(start, Begun):
        return []
    return [
        (at, old)
        for at, old in events
        if at < start.superseded_from_bytes
        or (isinstance(old, CheckpointSaved) and old.checkpoint == start.checkpoint)
    ]


def read_events(run_dir: RunDir) -> list[Event]:
    """Return the events of a run that are not superseded; an empty list if there is no file.

    Torn lines and events that this version does not know are left out.
    """
    return [event for _, event in EventFollower(run_dir).read()]


def checkpoint_times(events: Sequence[Event]) -> dict[int, datetime]:
    """Return when each checkpoint was written, by its timesteps; a copy of the run keeps it."""
    return {
        int(event.checkpoint): event.time
        for event in events
        if isinstance(event, CheckpointSaved)
        and event.offline_gradient_steps is None
        and event.checkpoint.isdecimal()
    }


def final_evaluation(events: Sequence[Event]) -> Evaluated | None:
    """Return the final evaluation of a run that is complete, or None if it is not complete."""
    finals = [event for event in events if isinstance(event, Evaluated) and event.is_final]
    ends = [event for event in events if isinstance(event, Ended)]
    return finals[-1] if finals and ends and ends[-1].reason == "completed" else None


def parse_event(line: bytes | str) -> Event | None:
    """Parse one line of the file; return None if it is torn, or unknown to this version."""
    return parsed(_ANY_EVENT, line)


def read_experiment_events(path: Path) -> list[ExperimentEvent]:
    """Return the events of a file, without generations that the population went back from.

    Torn lines and events that this version does not know are left out.
    """
    kept: list[ExperimentEvent] = []
    for _, line in located_lines(path):
        event = parsed(_ANY_OF_EXPERIMENT, line)
        if event is None:
            continue
        if isinstance(event, WentBack):
            kept = [old for old in kept if old.generation <= event.generation]
        kept.append(event)
    return kept
