"""Sections about what a run writes for people, beside its checkpoints, and where it is copied.

The copy of the section `upload` outlives the machine.
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


class RecordingConfig(StrictModel):
    """The clip of the best policy, recorded when training ends."""

    episodes: Annotated[int, Field(ge=0, le=1_000)] = 2
    """Number of episodes in the clip; 0: no clip."""
    max_s: Annotated[float, Field(gt=0, le=3_600)] | None = 60.0
    """Seconds after which the clip ends, even within an episode; null: it ends with its last
    episode."""
    format: Literal["gif", "mp4"] = "gif"
    """File format of the clip."""


class EpisodesConfig(StrictModel):
    """The actions of every episode, from which game-rl record makes clips later."""

    limit_mb: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    """Largest size of the log on disk, in 10^6 bytes. Above it, the oldest episodes are deleted. A
    timestep takes about half a byte. A state of `env.pool` takes 4 kB, once in each sixteenth of
    this size that has an episode from there."""


_GigaBytes = Annotated[float, Field(ge=0.001, le=1_000_000)]


class MonitoringConfig(StrictModel):
    """Warnings while the run trains, when little disk or RAM is left on the machine."""

    warn_disk_gb: _GigaBytes | None = 1.0
    """Warn when less than this is free on the disk of run_dir, in 10^9 bytes, and again each time
    half of that is left; null: no warnings. The run stops with a checkpoint before the disk is full
    in any case."""
    warn_ram_gb: _GigaBytes | None = 0.5
    """Warn when less than this is free of the machine's RAM, and again in the same way; null: no
    warnings."""


class LiveConfig(StrictModel):
    """Screens of the training's emulators for `game-rl watch`, in the file live.frames of run_dir.

    They are written only while somebody watches, and do not change what is learned.
    """

    fps: Annotated[float, Field(ge=0, le=60)] = 4.0
    """Largest number of screens per second from each emulator; 0: the run cannot be watched."""


_Label = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^/\\#?%:\x00-\x1f]+$")]


class WandbConfig(StrictModel):
    """Curves, config and clips of the run for Weights & Biases.

    A process of its own sends them, so that the training never waits for the service.
    """

    project: Annotated[_Label, Field(examples=["game-boy"])]
    """Project in which the run appears."""
    entity: _Label | None = None
    """User or team that owns the project; null: the default of the account."""
    group: _Label | None = None
    """Group of the run; null: the experiment's name for a member, and none for a single run."""
    mode: Literal["online", "offline"] = "online"
    """online: sent while the run trains. offline: written to run_dir/wandb, for `wandb sync`."""


class LoggingConfig(StrictModel):
    """Files and services that get the training's curves and episodes."""

    tensorboard: bool = True
    """Write the curves for TensorBoard, in run_dir/tensorboard."""
    csv: bool = False
    """Write the curves as a table, run_dir/progress.csv, as Stable-Baselines3 does."""
    monitor: bool = True
    """Write a line for each training episode to run_dir/monitor.csv, as the Monitor of
    Stable-Baselines3 does, for its results_plotter."""
    wandb: WandbConfig | None = None
    """Send the curves, config and clips to Weights & Biases, such as {project: game-boy}, with
    `pip install 'game_rl[wandb]'`; null: nothing is sent."""
