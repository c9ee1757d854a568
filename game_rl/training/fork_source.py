"""The checkpoint that a fork begins from."""

import json
from dataclasses import dataclass
from pathlib import Path

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_store import kept_checkpoint, newest_valid_checkpoint
from game_rl.checkpoints.named import find_run
from game_rl.config.migration import saved_config
from game_rl.config.schema import ForkConfig, RunConfig
from game_rl.errors import UsageError
from game_rl.run_dir import RunDir, RunIdentity


@dataclass(frozen=True)
class ForkSource:
    """A kept checkpoint of another run; its files were verified."""

    run_dir: RunDir
    checkpoint: Checkpoint
    identity: RunIdentity
    known_as: Path | None = None
    """Path by which the fork's records name the run, or None for its path on this machine."""

    @property
    def place(self) -> Path:
        return self.known_as or self.run_dir.root.absolute()

    @property
    def timesteps(self) -> int:
        return self.checkpoint.state.num_timesteps

    @property
    def config(self) -> RunConfig:
        """The run's config as it was at the checkpoint."""
        saved = saved_config(self.checkpoint.state.config, source=self.checkpoint.path)
        return RunConfig.model_validate_json(json.dumps(saved))

    def fork_section(self, fork: ForkConfig) -> ForkConfig:
        """Return the section with the parent's place and the timestep filled in."""
        return fork.model_copy(update={"run": f"{self.place}@{self.timesteps}"})


def find_source(run: Path, timesteps: int | None) -> ForkSource:
    """Return a run's checkpoint of timestep `timesteps`, or its newest valid one if that is None.

    Raises:
        UsageError: there is no run, it has no identity, or it is still before its first timestep.
        CheckpointError: there is no such checkpoint, or it is damaged.
    """
    run_dir = find_run(run)
    if timesteps is None:
        checkpoint, _ = newest_valid_checkpoint(run_dir)
        _refuse_offline(run_dir, checkpoint)
    else:
        checkpoint = kept_checkpoint(run_dir, timesteps)
    if not run_dir.identity_file.exists():
        raise UsageError(
            f"{run_dir.root} has no {run_dir.identity_file.name}, so its forks could not name it; "
            f"give it one with: {run_dir.way_on} --until "
            f"{max(1, checkpoint.state.num_timesteps)}"
        )
    return ForkSource(run_dir, checkpoint, run_dir.identity())


def _refuse_offline(run_dir: RunDir, checkpoint: Checkpoint) -> None:
    """Refuse a checkpoint of the offline phase: a fork would treat that phase as finished."""
    if checkpoint.is_offline:
        raise UsageError(
            f"{run_dir.root} is still learning before its first timestep: its newest checkpoint is "
            f"{checkpoint.name}; fork it when it has reached timestep 0: "
            f"{run_dir.way_on} --until 0, then --fork {run_dir.root}@0"
        )
