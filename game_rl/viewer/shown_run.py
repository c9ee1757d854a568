"""A run as plots and reports show it: what its directory tells, read without torch."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from game_rl.checkpoints.checkpoint_state import CheckpointState
from game_rl.checkpoints.named import open_run, saved_state
from game_rl.config.schema import RunConfig
from game_rl.errors import NoCheckpointError
from game_rl.events.event_log import read_events
from game_rl.events.run_view import RunClock, RunView, run_clock
from game_rl.files.run_dir import RunDir
from game_rl.files.saved_forecast import (
    MeasuredResource,
    SavedForecast,
    read_footprint,
    read_forecast,
)


@dataclass(frozen=True)
class ShownRun(RunView):
    """A run and what its files tell.

    Attributes:
        forecast: content of `preflight.json`; None if there is none that can be read.
        footprint: content of `footprint.json`; empty, likewise.
    """

    run_dir: RunDir
    config: RunConfig
    forecast: SavedForecast | None
    footprint: Mapping[str, MeasuredResource]

    @property
    def name(self) -> str:
        """Name of the run's folder."""
        return self.run_dir.root.absolute().name

    @cached_property
    def clock(self) -> RunClock:
        return run_clock(self.events, self.config.env.frame_skip)

    @cached_property
    def checkpoint_state(self) -> CheckpointState | None:
        """Description of the newest checkpoint that is valid; None if there is none."""
        with suppress(NoCheckpointError):
            found = saved_state(self.run_dir)
            return None if found is None else found[1]
        return None


def read_run(root: Path) -> ShownRun:
    """Read a run.

    Raises:
        UsageError: there is no run at `root`.
        ConfigError: its config cannot be read.
    """
    run_dir, config = open_run(root)
    return ShownRun(
        events=read_events(run_dir),
        is_training=run_dir.is_locked,
        run_dir=run_dir,
        config=config,
        forecast=read_forecast(run_dir.preflight),
        footprint=read_footprint(run_dir.footprint),
    )
