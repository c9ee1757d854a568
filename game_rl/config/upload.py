"""The section `upload`: where a run or an experiment is copied while it trains.

The copy outlives the machine.
"""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from game_rl.config.strict_model import StrictModel
from game_rl.config.values import Positive, printable

_SCHEMES = ("s3", "gs", "az", "file")
_EXAMPLES = "s3://bucket/folder, gs://bucket/folder, az://container/folder or file:///mnt/disk"


def checked_address(address: str) -> str:
    """Return the address of a folder in object storage or on a mounted disk, without a final slash.

    Raises:
        ValueError: it is no such address, or it has a secret in it. The message does not repeat it.
    """
    scheme, _, rest = printable(address).partition("://")
    bucket, _, folder = rest.partition("/")
    # the first check, as no other message may repeat a secret
    has_user = scheme != "file" and ("@" in address or ":" in bucket)
    if has_user or "?" in address or "#" in address:
        raise ValueError(
            "an address must have no user, password, key or signature in it: write only "
            f"{_EXAMPLES}, and set credentials in the environment, as for the provider's own tools"
        )
    if scheme not in _SCHEMES:
        raise ValueError(f"no storage has such an address; write one such as {_EXAMPLES}")
    if scheme == "file" and (bucket or not folder.strip("/")):
        raise ValueError("a folder's address has three slashes, as in file:///mnt/disk/runs")
    if scheme != "file" and not bucket:
        raise ValueError(f"the address names no bucket; write one such as {_EXAMPLES}")
    return address.rstrip("/")


class UploadConfig(StrictModel):
    """Upload of a run's checkpoints, or of an experiment's generations, while it trains.

    It goes to object storage or to another disk.
    """

    to: Annotated[
        str, Field(examples=["s3://bucket/folder"], repr=False), AfterValidator(checked_address)
    ]
    """Address of a folder, without credentials: s3://bucket/folder, gs://…, az://… or file:///…"""
    what: Annotated[tuple[Literal["checkpoints", "lake", "videos"], ...], Field(min_length=1)] = (
        "checkpoints",
        "lake",
        "videos",
    )
    """Kinds of files that are sent. checkpoints: the checkpoints. lake: the files of the Lake that
    they need. videos: the clips."""
    limit_mb_s: Positive | None = None
    """Limit of the upload speed, in 10^6 bytes a second; null: no limit."""
    keep_remote_last: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Number of newest checkpoints of a run, or generations of an experiment, that are kept at the
    address, in addition to those that keep_generations.every keeps. Older ones are deleted there;
    null: all are kept."""
    wait_s: Annotated[float, Field(ge=0, le=86_400)] = 60.0
    """Longest time in seconds that the run waits at its end for what is not sent yet. `game-rl
    remote push` sends the rest."""
    backlog_gb: Annotated[float, Field(ge=0, le=1_000_000)] = 5.0
    """Largest disk space, in 10^9 bytes, that old files take on this machine only because they are
    being sent. Above it, they are deleted unsent."""


_SECRETS = (
    re.compile(r"(://)\S*(?=@)"),  # to the last @: a key may have slashes
    re.compile(r"(://[^/\s@:]*:)\S+"),
    re.compile(r"(://[^?#\s]*[?#])\S+"),
)


def without_secrets(text: str) -> str:
    """Return the text without the user, password and signature of addresses, so it may be shown.

    An address with any of these is refused, and the message about it must not repeat them.
    """
    for pattern in _SECRETS:
        text = pattern.sub(r"\1…", text)
    return text
