"""The one account of a run that programs and people read: `events.jsonl`.

It has one JSON object a line and is only ever appended to. A run that goes on from a checkpoint, or
begins again, says so with an event; what was written after that checkpoint is superseded, and
`read_events` leaves it out.
"""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, TypeAdapter

from game_rl.events import Begun, CheckpointSaved, Event, Listener, Resumed, Warned
from game_rl.json_lines import JsonLines, located_lines, parsed
from game_rl.run_dir import RunDir

_ANY_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


class EventLog:
    """Hands events to listeners and, where it has a file, appends them to it.

    Events may come from any thread; listeners are called one at a time.

    Attributes:
        timesteps: where the training is, for events that do not know it themselves.
    """

    def __init__(self, file: "EventFile | None" = None, listeners: Sequence[Listener] = ()) -> None:
        self.timesteps = 0
        self._file = file
        self._listeners = list(listeners)
        self._lock = threading.RLock()

    def add_listener(self, listener: Listener) -> None:
        """Of the events from now on."""
        with self._lock:
            self._listeners.append(listener)

    def emit(self, event: Event) -> None:
        """Raise OSError if the file cannot be written; the listeners have heard of it then."""
        with self._lock:
            for listener in self._listeners:
                listener(event)
            if self._file is not None and event.is_kept:
                self._file.add(event)

    def warn(self, text: str) -> None:
        self.emit(Warned(timesteps=self.timesteps, text=text))

    def n_bytes(self) -> int:
        """Of the file, after everything so far is on the disk; 0 without one."""
        return 0 if self._file is None else self._file.synced_bytes()


class EventFile(JsonLines):
    """`events.jsonl`, open for appending; close it, or use it as a context manager.

    Raises:
        OSError: everywhere, where the disk fails.
    """

    def add(self, event: BaseModel) -> None:
        self.append(event.model_dump_json(exclude_none=True))

    def synced_bytes(self) -> int:
        """Its length, on the disk."""
        self.sync()
        return self.n_bytes()


def read_events(run_dir: RunDir) -> list[Event]:
    """The account of a run, without what was superseded; empty if there is none.

    A torn line, and an event that this version does not know, are left out.
    """
    kept: list[tuple[int, Event]] = []
    for offset, event in _located_events(run_dir.events):
        match event:
            case Begun():
                kept.clear()
            case Resumed(superseded_from_bytes=end):
                kept = [(at, old) for at, old in kept if at < end or _is_of(event, old)]
        kept.append((offset, event))
    return [event for _, event in kept]


def _is_of(resumed: Resumed, event: Event) -> bool:
    """Whether the event reports the very checkpoint, which is written before the event."""
    return isinstance(event, CheckpointSaved) and event.checkpoint == resumed.checkpoint


def _located_events(path: Path) -> Iterator[tuple[int, Event]]:
    """Each event with the byte at which its line begins."""
    for offset, line in located_lines(path):
        if (event := parse_event(line)) is not None:
            yield offset, event


def parse_event(line: bytes | str) -> Event | None:
    """One line of the file; None if this version does not know it, or it is torn."""
    return parsed(_ANY_EVENT, line)
