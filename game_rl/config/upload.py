"""Where a run, or an experiment, goes while it trains, so that it outlives the machine."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from game_rl.config.strict_model import StrictModel
from game_rl.config.values import Positive, printable

_SCHEMES = ("s3", "gs", "az", "file")
_EXAMPLES = "s3://bucket/folder, gs://bucket/folder, az://container/folder or file:///mnt/disk"


def checked_address(address: str) -> str:
    """A place in object storage or on a mounted disk, without a slash at its end.

    Raises:
        ValueError: it is none, or has a secret in it, which the message does not repeat.
    """
    scheme, _, rest = printable(address).partition("://")
    bucket, _, folder = rest.partition("/")
    # before anything else: no other message may repeat a secret
    has_user = scheme != "file" and ("@" in address or ":" in bucket)
    if has_user or "?" in address or "#" in address:
        raise ValueError(
            "an address has no user, password, key or signature in it: write only "
            f"{_EXAMPLES}, and give credentials in the environment, as the provider's own tools "
            "take them"
        )
    if scheme not in _SCHEMES:
        raise ValueError(f"is no address of a place to upload to; write one such as {_EXAMPLES}")
    if scheme == "file" and (bucket or not folder.strip("/")):
        raise ValueError("a folder's address has three slashes, as in file:///mnt/disk/runs")
    if scheme != "file" and not bucket:
        raise ValueError(f"names no bucket; write one such as {_EXAMPLES}")
    return address.rstrip("/")


class UploadConfig(StrictModel):
    """Copied to object storage or another disk while it trains: checkpoints, or generations."""

    to: Annotated[
        str, Field(examples=["s3://bucket/folder"], repr=False), AfterValidator(checked_address)
    ]
    """Address of a folder: s3://bucket/folder, gs://…, az://…, file:///…; without credentials."""
    what: Annotated[tuple[Literal["checkpoints", "lake", "videos"], ...], Field(min_length=1)] = (
        "checkpoints",
        "lake",
        "videos",
    )
    """checkpoints; with lake, what they need of the Lake; videos: clips."""
    limit_mb_s: Positive | None = None
    """Send no more than so many 10^6 bytes a second; null: no limit."""
    keep_remote_last: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Keep the newest so many checkpoints of a run there, or generations, and those that
    keep_generations.every keeps; delete older ones; null: keep all."""
    wait_s: Annotated[float, Field(ge=0, le=86_400)] = 60.0
    """At its end it waits so long for what is not there yet; `remote push` sends the rest."""
    backlog_gb: Annotated[float, Field(ge=0, le=1_000_000)] = 5.0
    """While they are being sent, old files stay up to so many 10^9 bytes longer here."""
