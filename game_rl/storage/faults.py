"""Faults of object storage, in messages that repeat nothing of what a server said."""

from datetime import UTC, datetime
from typing import Literal, get_args

from game_rl.errors import StorageError

FaultKind = Literal["denied", "missing", "full", "busy", "slow", "unreachable", "refused", "unable"]
ALL_FAULTS: frozenset[FaultKind] = frozenset(get_args(FaultKind))
PASSING_FAULTS: frozenset[FaultKind] = frozenset(("busy", "slow", "unreachable"))
"""The kinds that may pass although nobody changes anything."""

_WORDS: dict[FaultKind, tuple[str, str]] = {
    "denied": (
        "refuses access",
        "check the credentials in the provider's environment variables or files, their permissions "
        "there, and this machine's clock, which says {now}",
    ),
    "missing": (
        "is not there",
        "create the bucket or the folder, or mount the disk, or correct the address",
    ),
    "full": ("is full", "free some space there, or raise its quota"),
    "busy": ("fails or is overloaded", "wait until it works again, or ask the provider"),
    "slow": ("does not answer in time", "check the network; a lower upload.limit_mb_s may help"),
    "unreachable": (
        "cannot be reached",
        "check the network, the address and, for a store of your own, AWS_ENDPOINT_URL",
    ),
    "refused": ("refuses the request", "check the address and the region"),
    "unable": ("does not support a needed operation", "use another kind of storage"),
}


class StoreFault(StorageError):  # noqa: N818 - it may pass
    """The storage refuses, fails or is out of reach; a later attempt may succeed."""

    def __init__(self, kind: FaultKind, address: str, status: int | None = None) -> None:
        self.kind: FaultKind = kind
        what, way_out = _WORDS[kind]
        number = "" if status is None else f" (HTTP {status})"
        now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        super().__init__(f"{address} {what}{number}; {way_out.format(now=now)}")


class SecondWriterError(StorageError):
    """Another machine or copy writes to the run in storage."""


class LostFileError(StorageError):
    """A file that should be sent is gone on this machine, or damaged.

    Attributes:
        is_damaged: whether the file exists, but with other content than was written.
    """

    def __init__(self, message: str, *, is_damaged: bool = False) -> None:
        super().__init__(message)
        self.is_damaged = is_damaged
