"""The map of visited places: counted over all envs of a run, saved with it, restored."""

from collections.abc import Mapping, Sequence
from typing import Self

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.callbacks.places_callback import PlacesCallback
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_files import FileName
from game_rl.errors import TrainingError
from game_rl.files.saved import Saved
from game_rl.places.place_counts import PlaceCounts, SavedPlaces
from game_rl.training.extensions import Extension, RunParts
from game_rl.training.resuming import disk_fault


class PlacesExtension(Extension):
    """Counts the timesteps of a run by the place where they ended, if the game names a `place`."""

    def __init__(self, parts: RunParts, place: tuple[str, ...]) -> None:
        self._run_dir = parts.run_dir
        since = 0 if parts.checkpoint is None else parts.checkpoint.state.num_timesteps
        self._callback = PlacesCallback(
            PlaceCounts(place, parts.game.map_offsets(), since=since),
            parts.run_dir,
            total_timesteps=parts.config.total_timesteps,
            title=parts.game.definition.title,
            every_timesteps=parts.rhythm,
        )

    @classmethod
    def of(cls, parts: RunParts) -> Self | None:
        """Return None if the game names no place, or the phase to come plays nothing."""
        place = parts.game.definition.place
        return None if place is None or parts.is_offline else cls(parts, place)

    def callbacks(
        self,
        parts: RunParts,  # noqa: ARG002
        checkpoints: CheckpointCallback,  # noqa: ARG002
    ) -> Sequence[BaseCallback]:
        return (self._callback,)

    def keep(self, model: BaseAlgorithm, name: str) -> Mapping[FileName, Saved]:  # noqa: ARG002
        self._callback.collect()
        return {"places.json": SavedPlaces(npz=self._callback.write())}

    def restore(self, checkpoint: Checkpoint) -> int:
        """Go on from the checkpoint's counts, unless they are of other variables or missing."""
        saved = checkpoint.places()
        counts = self._callback.counts
        if saved is not None and saved.names == counts.names:
            saved.offsets = counts.offsets
            self._callback.counts = saved
        return 0

    def begin(self) -> None:
        """Write the counts that the run goes on from, over those of a later moment.

        Raises:
            TrainingError: the disk fails.
        """
        try:
            self._callback.write()
        except OSError as error:
            raise TrainingError(disk_fault(error, self._run_dir)) from error
