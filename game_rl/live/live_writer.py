"""The writers of `live.frames`: of an env's slot, and of the policy's values.

Neither raises an error when the disk fails: nobody who watches a training may end it.
"""

import json
import os
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.envs.game_boy_env import ShownStep
from game_rl.envs.observation import Observation
from game_rl.files.durable_files import rename
from game_rl.games.variables import Values
from game_rl.live.live_layout import CHECKED_FROM, MOST_OWN_TERMS_BYTES, WANTED_AT, LiveLayout
from game_rl.system.file_positions import BINARY, read_at, write_at

_SEQUENCE_BYTES = 8
_WATCHED_FOR_S = 10.0


class GuardedRecord:
    """A record of the file that readers never see half written; one process writes it.

    Attributes:
        fields: the record, to be filled in before `write`.
    """

    def __init__(self, file: int, at: int, dtype: np.dtype[Any]) -> None:
        whole = np.zeros(1, dtype)
        self.fields: Any = whole[0]  # a view
        self._bytes = whole.view(np.uint8).data
        self._file = file
        self._at = at
        before = read_at(file, _SEQUENCE_BYTES, at)
        self._sequence = int.from_bytes(before, "little")

    @property
    def is_new(self) -> bool:
        """Whether nothing has been written here."""
        return self._sequence == 0

    def write(self) -> None:
        """Write the record: an odd sequence number, all else, the next even number."""
        odd = self._sequence + 1 + self._sequence % 2  # a killed writer may have left an odd one
        self.fields["crc"] = zlib.crc32(self._bytes[CHECKED_FROM:])
        with suppress(OSError):
            write_at(self._file, odd.to_bytes(_SEQUENCE_BYTES, "little"), self._at)
            write_at(self._file, self._bytes[_SEQUENCE_BYTES:], self._at + _SEQUENCE_BYTES)
            self._sequence = odd + 1
            write_at(self._file, self._sequence.to_bytes(_SEQUENCE_BYTES, "little"), self._at)


class SlotWriter:
    """Writes what one env shows; each env has one writer.

    Attributes:
        episode: number of the env's episode, counted by the owner.
    """

    def __init__(self, file: int, layout: LiveLayout, env: int) -> None:
        self._layout = layout
        at = layout.slot_at(env)
        self._record = GuardedRecord(file, at, layout.slot_dtype)
        self._start_states = {name: index for index, name in enumerate(layout.start_states)}
        self.episode = 0
        if not self._record.is_new:  # the worker before has died
            whole = read_at(file, layout.slot_bytes, at)
            self.episode = int(np.frombuffer(whole, layout.slot_dtype)[0]["episode"]) + 1

    def write(
        self, step: ShownStep, observation: Observation, *, action: int, timestep: int
    ) -> None:
        """Write a timestep.

        Args:
            observation: the env's own, not stacked.
            timestep: number of the timestep in the session.
        """
        fields = self._record.fields
        layout = self._layout
        fields["timestep"] = timestep
        fields["episode"] = self.episode
        fields["episode_timestep"] = step.episode_timestep
        fields["action"] = action
        fields["start_state"] = self._start_states.get(step.start_state, -1)
        terms = step.reward_terms
        fields["reward_terms"] = [terms.get(name, 0.0) for name in layout.reward_terms]
        fields["episode_reward"] = sum(terms.values())
        if len(fields["own_terms"]):
            fields["own_terms"] = _own_terms(terms, layout)
        fields["variables"] = _numbers(step.variables, layout, are_bits=False)
        if len(fields["flags"]):
            fields["flags"] = _numbers(step.variables, layout, are_bits=True)
        fields["pixels"] = _pixels(step.screen, layout)
        for part in layout.parts:
            values = observation[part.name] if isinstance(observation, Mapping) else observation
            layout.part_of(fields, part.name)[...] = values
        self._record.write()


def open_live_file(path: Path) -> int:
    """Return a descriptor of the file, for a worker."""
    return os.open(path, os.O_RDWR | BINARY)


class LiveFile:
    """The live file of a session: it makes it, and removes it when it is closed.

    Args:
        clock: in seconds.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(
        self, path: Path, layout: LiveLayout, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.path = path
        self.layout = layout
        self._clock = clock
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            # all bytes are written, so that later writes need no space on the disk
            temporary.write_bytes(layout.header.ljust(layout.file_bytes, b"\0"))
            rename(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        self._file = open_live_file(path)
        size = layout.values_bytes
        self._blocks = [
            GuardedRecord(self._file, layout.values_at + n * size, layout.values_dtype)
            for n in (0, 1)
        ]
        self._wanted = self._read_wanted()
        self._wanted_until = 0.0

    def is_watched(self) -> bool:
        """Whether somebody has said so in the last ten seconds; reads eight bytes."""
        wanted = self._read_wanted()
        now = self._clock()
        if wanted != self._wanted:
            self._wanted = wanted
            self._wanted_until = now + _WATCHED_FOR_S
        return now < self._wanted_until

    def write_values(self, timestep: int, rows: NDArray[np.float32]) -> None:
        """Write the policy's values: for each env its value, then that of each action.

        The two blocks take turns, so that the values of the timestep before stay readable.
        """
        block = self._blocks[0]
        block.fields["timestep"] = timestep
        block.fields["rows"] = rows
        block.write()
        self._blocks.reverse()

    def close(self) -> None:
        """Remove the file; may be called twice."""
        if self._file < 0:
            return
        os.close(self._file)
        self._file = -1
        with suppress(OSError):  # on Windows, somebody may read it
            self.path.unlink(missing_ok=True)

    def _read_wanted(self) -> bytes:
        with suppress(OSError):
            return read_at(self._file, 8, WANTED_AT)
        return b""


def _own_terms(terms: Mapping[str, float], layout: LiveLayout) -> NDArray[np.uint8]:
    """Return the terms of the game's own reward class as JSON, as many as there is room for."""
    own = {name: earned for name, earned in terms.items() if name not in layout.reward_terms}
    while len(text := json.dumps(own).encode()) > MOST_OWN_TERMS_BYTES:
        own.popitem()
    return np.frombuffer(text.ljust(MOST_OWN_TERMS_BYTES, b"\0"), np.uint8)


def _numbers(values: Values, layout: LiveLayout, *, are_bits: bool) -> list[float]:
    numbers: list[float] = []
    for variable in layout.variables:
        if variable.is_bits != are_bits:
            continue
        value = values[variable.name]
        numbers += [value] if variable.size is None else value
    return numbers


def _pixels(screen: NDArray[np.uint8], layout: LiveLayout) -> NDArray[np.uint8]:
    if layout.channels == 3:
        return layout.packing.pack(np.ascontiguousarray(screen.transpose(2, 0, 1)))
    shades = screen[None, :, :, 0]
    try:
        return layout.packing.pack(shades)
    except ValueError:  # a screen with more shades, which the agent may not look at
        return layout.packing.pack(shades // 85 * 85)
