"""Sections of a run's config about what the run writes for people, beside its checkpoints."""

from typing import Annotated, Literal

from pydantic import Field

from game_rl.config.strict_model import StrictModel


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
    """The most that they take on the disk, in 10^6 bytes. When there are more, the oldest are
    deleted. A timestep takes about half a byte."""


_GigaBytes = Annotated[float, Field(ge=0.001, le=1_000_000)]


class MonitoringConfig(StrictModel):
    """Warnings while the run trains, when little disk or RAM is left on the machine."""

    warn_disk_gb: _GigaBytes | None = 1.0
    """Warn when less than this is free on the disk of run_dir, in 10^9 bytes, and again at each
    half of it; null: no warnings. The run stops with a checkpoint before the disk is full in any
    case."""
    warn_ram_gb: _GigaBytes | None = 0.5
    """Warn when less than this is free of the machine's RAM, likewise; null: no warnings."""


class LiveConfig(StrictModel):
    """Screens of the training's emulators for `game-rl watch`, in the file live.frames of run_dir.

    They are written only while somebody watches, and do not change what is learned.
    """

    fps: Annotated[float, Field(ge=0, le=60)] = 4.0
    """Screens a second of each emulator, at most; 0: nobody can watch."""


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
