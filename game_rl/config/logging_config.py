"""The section `logging`: files and services that get the training's curves and episodes."""

from typing import Annotated, Literal

from pydantic import Field

from game_rl.config.strict_model import StrictModel

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
