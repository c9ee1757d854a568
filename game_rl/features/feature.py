"""What a feature of a run declares without torch: its file in checkpoints, and what it costs.

Its other half is an extension (`training.extension`), which acts in the training.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from game_rl.files.run_dir import RunDir
from game_rl.files.saved import CheckpointFile, Saved

if TYPE_CHECKING:  # processes that only read or send a room's files do without the config
    from game_rl.config.schema import RunConfig
    from game_rl.envs.observation import ObservationFormat

LOGS = "curves, events and tables"
"""Name of the part of a run directory that small files count to."""


@dataclass(frozen=True)
class Part:
    """A named share of memory or disk."""

    name: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A run that has not begun, as the forecast of a feature needs it.

    Attributes:
        has_places: whether the game names a `place`.
        n_potentials: number of reward terms with a potential.
        n_novelty_terms: number of reward terms with `per_run`.
        n_processes: the training's own process and the workers of training and evaluations.
        n_workers: processes with emulators of the training.
        has_waits: whether the game's `step` makes timesteps longer.
        episode_timesteps: usual length of an episode.
        learned_blocks: blocks of the Lakes that it learns from.
        demonstrated_rows: timesteps and last frames of the played episodes that it learns from.
        played_bytes: bytes of their files.
        played_timesteps: timesteps that it plays, without those of a fork's parent.
        final_timesteps: timestep at which it ends.
        boundaries: how often its callbacks act.
        evaluations: how often it evaluates, without the last time.
        checkpoints: periodic checkpoints, and the last one.
        curve_numbers: numbers that all its curves have at the end.
        policy_bytes: weights of its policy.
        acting_bytes: weights of a network like its own, with their copies for inference.
    """

    config: "RunConfig"
    observation_format: "ObservationFormat"
    n_actions: int
    four_shades: bool
    n_workers: int
    has_places: bool
    n_potentials: int
    n_novelty_terms: int
    n_processes: int
    has_waits: bool
    episode_timesteps: int
    learned_blocks: int
    demonstrated_rows: int
    played_bytes: int
    played_timesteps: int
    final_timesteps: int
    boundaries: int
    evaluations: int
    checkpoints: int
    curve_numbers: int
    policy_bytes: int
    acting_bytes: int


class Feature:
    """A feature of a run. What it does not override costs nothing."""

    file: CheckpointFile[Saved] | None = None
    """What it adds to checkpoints, if it has a state."""

    def fetched(self, run_dir: RunDir, checkpoint: Path, paths: Collection[str]) -> None:
        """Restore elsewhere what its file in a checkpoint stands for, once a run was fetched.

        Args:
            checkpoint: the checkpoint, in `run_dir`.
            paths: paths of the fetched files, below `run_dir`.
        """

    def memory(self, run: PlannedRun) -> Iterable[Part]:  # noqa: ARG002
        """Return its memory while the run trains."""
        return ()

    def pause_memory(self, run: PlannedRun) -> Iterable[Part]:  # noqa: ARG002
        """Return what it takes for a moment between two updates, and frees at once."""
        return ()

    def process_memory(self, run: PlannedRun) -> Iterable[Part]:  # noqa: ARG002
        """Return the memory of processes of its own."""
        return ()

    def last_memory(self, run: PlannedRun) -> Iterable[Part]:  # noqa: ARG002
        """Return its memory once the training has closed, while the best policy plays."""
        return ()

    def network_memory(self, run: PlannedRun) -> Iterable[Part]:  # noqa: ARG002
        """Return its memory on the device that the run's network is on."""
        return ()

    def checkpoint_bytes(self, run: PlannedRun, timesteps: int) -> int:  # noqa: ARG002
        """Return the bytes of its file in the checkpoint of a timestep; they never shrink."""
        return 0

    def logs(self, run: PlannedRun) -> Iterable[Part]:  # noqa: ARG002
        """Return what it has written to the run directory at the end, growing all the time."""
        return ()

    def standing_files(self, run: PlannedRun) -> Iterable[Part]:  # noqa: ARG002
        """Return what it has in the run directory from the start."""
        return ()

    def last_files(self, run: PlannedRun) -> Iterable[Part]:  # noqa: ARG002
        """Return what it writes to the run directory at the end."""
        return ()

    def held_bytes(self, run: PlannedRun, *, pruned: int, each: int) -> int:  # noqa: ARG002
        """Return the bytes of checkpoints that would be deleted but for it.

        Args:
            pruned: number of checkpoints that the run itself no longer needs.
            each: bytes of a checkpoint.
        """
        return 0

    def removed_bytes(self, run: PlannedRun, *, plays: bool) -> int:  # noqa: ARG002
        """Return the bytes of files that it removes when the training closes.

        Args:
            plays: whether the run plays, or is in the phase before its first timestep.
        """
        return 0
