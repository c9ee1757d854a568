"""How training and workers talk: messages through a pipe, arrays through shared memory.

Each command takes one message in each direction, however many envs the worker has. A request is a
pickled `Request`. Its answer is a pickled `Reply`, or a `Failure`, after which the worker exits.
The data of every step (observations, actions, rewards) goes through `SharedArrays`, so the messages
of an ordinary step are empty: `STEP` one way, `NOTHING_TO_SAY` the other. While somebody watches, a
few steps a second are shown: they have a message, and their envs write to the live file.
"""

import enum
import itertools
import math
import os
import pickle
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import DTypeLike, NDArray

from game_rl.envs.observation import ObservationFormat
from game_rl.errors import GameRLError
from game_rl.live.live_file import LiveLayout
from game_rl.system.processes import CAN_POLL, poll_of
from game_rl.system.shared_memory import SharedMemory
from game_rl.vec_env.frame_stacks import Arrays, each_part, in_parts, part_items

_LENGTH = struct.Struct("=Q")


class SocketChannel:
    """One end of a pipe that is a socket.

    Args:
        process: sentinel of the process at the other end; without one, the end of that process is
            noticed by the end of its messages.
    """

    def __init__(self, connection: Connection, process: int | None = None) -> None:
        self._descriptor = connection.fileno()
        self._poll = poll_of(self._descriptor, *(() if process is None else (process,)))

    def send(self, message: bytes) -> None:
        """Send a message; raise OSError if the other end is closed."""
        unsent = _LENGTH.pack(len(message)) + message
        while unsent:
            unsent = unsent[os.write(self._descriptor, unsent) :]

    def is_ready(self, timeout_s: float | None = 0) -> bool:
        """Whether there is a message, or the other process has ended; None waits without limit."""
        return bool(self._poll.poll(None if timeout_s is None else timeout_s * 1000))

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the next message, or None if there is none in time.

        Raises:
            EOFError, OSError: the other process has ended, and all its messages have been received.
        """
        events = self._poll.poll(timeout_s * 1000)  # in the order of `poll_of`
        if not events:
            return None
        if events[0][0] != self._descriptor:
            raise EOFError
        return self.take()

    def take(self) -> bytes:
        """Wait for a message; raise OSError or EOFError if the other end is closed."""
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return self._read(length) if length else b""

    def _read(self, n_bytes: int) -> bytes:
        parts = []
        while n_bytes:
            part = os.read(self._descriptor, n_bytes)
            if not part:
                raise EOFError
            parts.append(part)
            n_bytes -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


class ConnectionChannel:
    """A `SocketChannel` for every system."""

    def __init__(self, connection: Connection, process: int | None = None) -> None:
        self._connection = connection
        self._awaited: list[Connection | int] = [connection]
        if process is not None:
            self._awaited.append(process)

    def send(self, message: bytes) -> None:
        self._connection.send_bytes(message)

    def is_ready(self, timeout_s: float | None = 0) -> bool:
        return bool(self._wait(timeout_s))

    def receive(self, timeout_s: float) -> bytes | None:
        ready = self._wait(timeout_s)
        if not ready:
            return None
        if self._connection not in ready:
            raise EOFError
        return self.take()

    def take(self) -> bytes:
        return self._connection.recv_bytes()

    def _wait(self, timeout_s: float | None) -> list[object]:
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_s = None if end_s is None else max(end_s - time.monotonic(), 0)
            try:
                return list(wait(self._awaited, left_s))
            except InterruptedError:  # Ctrl-C on Windows; its handler has been called
                continue


Channel = SocketChannel | ConnectionChannel


def channel_of(connection: Connection, process: int | None = None) -> Channel:
    """Return the channel of a duplex pipe; both ends must use this."""
    return (SocketChannel if CAN_POLL else ConnectionChannel)(connection, process)


class WorkerCommand(enum.Enum):
    """The commands for a worker; the comments give the arguments and the result for each env."""

    START = "start"  # never sent; the greeting of a new worker counts as its answer
    BUILD = "build"  # (pickled list of env functions) -> Spaces of the worker's first env alone
    ATTACH = "attach"  # (Attachment), then the memory's file descriptor if it has no name -> None
    RESET = "reset"  # (seed or None by env, options by env) -> reset info
    STEP = "step"  # all envs; (number of the timestep, if shown) -> StepReport, or None if nothing
    SHOW_IN = "show_in"  # (LiveSlots) -> None
    LOAD_STATE = "load_state"  # (what `save_state` returned, by env) -> None
    RENDER = "render"  # () -> picture
    GET_ATTR = "get_attr"  # (name) -> value
    HAS_ATTR = "has_attr"  # (name) -> bool
    SET_ATTR = "set_attr"  # (name, value) -> None
    CALL = "call"  # (method name, arguments, keyword arguments) -> what it returns
    IS_WRAPPED = "is_wrapped"  # (module and qualified name of a wrapper class) -> bool


@dataclass(frozen=True, slots=True)
class Request:
    command: WorkerCommand
    envs: Sequence[int]  # numbers within the whole vec env; results come in this order
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """`result` is a list with one entry for each env, or None if all entries are None."""

    result: Any


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception as plain strings, which can always be pickled.

    `user_error` is the class of game_rl.errors that the exception is an instance of, if any.
    """

    env: int | None
    exception: str
    message: str
    traceback: str
    user_error: type[GameRLError] | None


@dataclass(frozen=True, slots=True)
class Spaces:
    observation: spaces.Space[Any]
    action: spaces.Space[Any]


@dataclass(frozen=True, slots=True)
class Attachment:
    """The dimensions of the SharedArrays; frames are packed if there is a `packing`.

    `n_rows` has a number for each part of an observation, or a single one. `memory_name` is the
    name of their memory; None for memory that has only a file descriptor.
    """

    n_envs: int
    n_rows: tuple[int, ...]
    spaces: Spaces
    packing: ObservationFormat | None = None
    memory_name: str | None = None


@dataclass(frozen=True, slots=True)
class StepReport:
    """A worker's report on one env's timestep.

    If the episode ended, `info` has "terminal_observation", `reset_info` is the info of the reset
    that followed, and `last_frame` is the terminal observation packed, if the worker packs frames.
    Otherwise the last two are None.
    """

    info: dict[str, Any]
    reset_info: dict[str, Any] | None
    last_frame: NDArray[np.uint8] | None = None


@dataclass(frozen=True, slots=True)
class LiveSlots:
    """The live file of a run, and the slot of a vec env's first env there."""

    path: Path
    layout: LiveLayout
    first: int


STEP = Request(WorkerCommand.STEP, ())
NOTHING_TO_SAY = Reply(None)


def pack(message: Request | Reply | Failure) -> bytes:
    if message is STEP or message is NOTHING_TO_SAY:
        return b""
    return bytes(ForkingPickler.dumps(message))


def unpack_request(message: bytes) -> Request:
    request: Request = pickle.loads(message) if message else STEP  # noqa: S301 - our own parent
    return request


def unpack_answer(message: bytes) -> Reply | Failure:
    answer: Reply | Failure = pickle.loads(message) if message else NOTHING_TO_SAY  # noqa: S301
    return answer


_ALIGNMENT = 64  # bytes of a cache line

_Field = tuple[tuple[int, ...], DTypeLike]


class SharedArrays:
    """Arrays of all envs in one block of memory that the training and all workers map.

    Attributes:
        observations: [n_rows, n_envs, *observation shape], with the observation space's dtype; a
            dict or a tuple of such arrays for a Dict or a Tuple space.
        packed: uint8 [2, n_envs, row_bytes], the newest frames and the ones before, packed.
        rows: int64, the row that workers write next of each array of `observations`, and at last
            that of `packed`.
        actions: [n_envs, *action shape], with the action space's dtype; in parts likewise.
        rewards: float32 [n_envs].
        terminated, truncated: bool [n_envs].
    """

    def __init__(self, memory: SharedMemory, attachment: Attachment) -> None:
        observation = in_parts(attachment.spaces.observation)
        action = in_parts(attachment.spaces.action)
        packing = attachment.packing
        fields = _fields(
            attachment.n_envs,
            attachment.n_rows,
            observations=_forms(observation, "observations"),
            actions=_forms(action, "actions"),
            packed_bytes=0 if packing is None else packing.row_bytes,
        )
        arrays = iter(_map_arrays(memory, fields))
        self.observations: Arrays = each_part(lambda _: next(arrays), observation)
        self.packed = next(arrays)
        self.actions: Arrays = each_part(lambda _: next(arrays), action)
        self.rewards, self.terminated, self.truncated, self.rows = arrays


def shared_bytes(observation_format: ObservationFormat, *, n_envs: int) -> int:
    """Return the size of the SharedArrays of a vec env that packs, with a Discrete action."""
    stacks = observation_format.stacks.values()
    fields = _fields(
        n_envs,
        tuple(stack + 1 for stack in stacks),
        observations=_forms(in_parts(observation_format.frame_space), "observations"),
        actions=[((), np.int64)],
        packed_bytes=observation_format.row_bytes,
    )
    return sum(_padded_bytes(shape, dtype) for shape, dtype in fields)


def _fields(
    n_envs: int,
    n_rows: tuple[int, ...],
    *,
    observations: Sequence[_Field],
    actions: Sequence[_Field],
    packed_bytes: int,
) -> list[_Field]:
    rings = zip(n_rows, observations, strict=True)
    return [
        *(((rows, n_envs, *shape), dtype) for rows, (shape, dtype) in rings),
        ((2, n_envs, packed_bytes), np.uint8),
        *(((n_envs, *shape), dtype) for shape, dtype in actions),
        ((n_envs,), np.float32),
        ((n_envs,), np.bool_),
        ((n_envs,), np.bool_),
        ((len(n_rows) + 1,), np.int64),
    ]


def _map_arrays(memory: SharedMemory, fields: list[_Field]) -> list[NDArray[Any]]:
    sizes = [_padded_bytes(shape, dtype) for shape, dtype in fields]
    mapped = memory.mapped(sum(sizes))
    offsets = itertools.accumulate(sizes, initial=0)
    return [
        np.ndarray(shape, dtype, mapped, offset)
        for (shape, dtype), offset in zip(fields, offsets, strict=False)
    ]


def _forms(parts: Any, what: str) -> list[_Field]:  # noqa: ANN401
    """Return the shape and dtype of each part.

    Raises:
        TypeError: one is not an array of a fixed shape.
    """
    forms: list[_Field] = []
    for key, space in part_items(parts):
        if space.shape is None or space.dtype is None:
            named = what if key is None else f"part {key!r} of the {what}"
            raise TypeError(
                f"{named}, {space}, is not one array of a fixed shape, so it cannot be shared; "
                "use a Dict or a Tuple of Box, Discrete, MultiDiscrete or MultiBinary spaces"
            )
        forms.append((space.shape, space.dtype))
    return forms


def _padded_bytes(shape: tuple[int, ...], dtype: DTypeLike) -> int:
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    return max(1, math.ceil(n_bytes / _ALIGNMENT)) * _ALIGNMENT
