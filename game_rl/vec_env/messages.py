"""What the training process and an environment process say to each other.

One message each way for each command, however many envs the worker has. A request is a pickled
`Request`; its answer is a pickled `Reply`, or a `Failure`, after which the worker leaves. What
every step moves (observations, actions, rewards) goes through `SharedArrays`, so that the messages
of a usual step are empty: "step" one way, "nothing to say" the other. On the wire a message has its
length before it; `multiprocessing.Connection` would do the same in three times the time.
"""

import enum
import os
import pickle
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from game_rl.envs.packing import FramePacking
from game_rl.errors import GameRLError

_LENGTH = struct.Struct("=Q")


class Command(enum.Enum):
    """What a worker can be asked for; the arguments of each, and its result for each env."""

    START = "start"  # never sent: what the greeting of a new worker answers
    BUILD = "build"  # (pickled list of env functions) -> Spaces of the worker's first env alone
    ATTACH = "attach"  # (Attachment), then the file descriptor -> None
    RESET = "reset"  # (seed or None by env, options by env) -> reset info
    STEP = "step"  # all envs of the worker -> StepReport, or None if there is nothing to say
    LOAD_STATE = "load_state"  # (what `save_state` returned, by env) -> None
    RENDER = "render"  # () -> picture
    GET_ATTR = "get_attr"  # (name) -> value
    HAS_ATTR = "has_attr"  # (name) -> bool
    SET_ATTR = "set_attr"  # (name, value) -> None
    CALL = "call"  # (method name, arguments, keyword arguments) -> what it returns
    IS_WRAPPED = "is_wrapped"  # (module and qualified name of a wrapper class) -> bool


@dataclass(frozen=True, slots=True)
class Request:
    command: Command
    envs: Sequence[int]  # numbers within the whole vec env; results come in this order
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """`result` is a list with one entry for each env, or None if all entries are None."""

    result: Any


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception, in plain strings, so that it can always be pickled.

    `user_error` is the class of game_rl.errors that the exception belongs to, if any.
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
    """What the SharedArrays are made for; frames are packed if there is a `packing`."""

    n_envs: int
    n_rows: int
    spaces: Spaces
    packing: FramePacking | None = None


@dataclass(frozen=True, slots=True)
class StepReport:
    """`info` has terminal_observation if the episode ended; `reset_info` is None if it did not.

    `last_frame` is that observation, packed.
    """

    info: dict[str, Any]
    reset_info: dict[str, Any] | None
    last_frame: NDArray[np.uint8] | None = None


STEP = Request(Command.STEP, ())
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


def send(descriptor: int, message: bytes) -> None:
    """Write to a socket; OSError if the other end is closed."""
    unsent = _LENGTH.pack(len(message)) + message
    while unsent:
        unsent = unsent[os.write(descriptor, unsent) :]


def receive(descriptor: int) -> bytes:
    """Read from a socket; OSError or EOFError if the other end is closed."""
    (length,) = _LENGTH.unpack(_read(descriptor, _LENGTH.size))
    return _read(descriptor, length) if length else b""


def _read(descriptor: int, n_bytes: int) -> bytes:
    parts = []
    while n_bytes:
        part = os.read(descriptor, n_bytes)
        if not part:
            raise EOFError
        parts.append(part)
        n_bytes -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
