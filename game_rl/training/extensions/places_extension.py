"""The map of visited places: counted over all envs of a run, saved with it, restored."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Image, TensorBoardOutputFormat

from game_rl.callbacks.boundary import BoundaryCallback, Interval
from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_files import FileName
from game_rl.checkpoints.checkpoint_folder import CheckpointFolder
from game_rl.config.schema import RunConfig
from game_rl.envs.episode_tracker import TrackerMaker
from game_rl.errors import CheckpointError, TrainingError
from game_rl.events.event_log import read_events
from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Saved
from game_rl.games.definition import Game
from game_rl.places.joined_maps import joined_maps
from game_rl.places.place_counts import (
    DRAWN_BLOCKS,
    PICTURES_OF_A_RUN,
    PLACES_FILE,
    PlaceCounts,
    PlaceTally,
    SavedPlaces,
    parse_place_counts,
    take_visits,
)
from game_rl.places.place_flags import place_flags
from game_rl.places.places_picture import places_picture
from game_rl.places.screen_map import read_screen_map
from game_rl.training.extension import Extension, GivenCallback, RunParts
from game_rl.training.resuming import disk_fault

_PICTURE = "game/places"
_SIDE = 480  # pixels: TensorBoard makes float arrays of the picture, which stay in the heap
_WRITE_EVERY_S = 10.0
_MOST_WRITING = 0.005  # of the time; the largest map takes a second


class PlacesCallback(BoundaryCallback):
    """Adds up what the training's envs have counted since they were last asked.

    Writes `places.npz` at most every ten seconds, a large one less often, and `game/places` to
    TensorBoard after each twentieth of the run. It must come before the callback that saves
    checkpoints, with each of which the file is to be written, too.

    Args:
        counts: what was counted so far; it is updated.
        total_timesteps: timesteps of the run.
        title: title of the pictures.
        names: names of maps.
        every_timesteps: see BoundaryCallback.
    """

    def __init__(
        self,
        counts: PlaceCounts,
        run_dir: RunDir,
        *,
        total_timesteps: int,
        title: str,
        names: Mapping[int, str],
        every_timesteps: Sequence[int] = (),
    ) -> None:
        super().__init__(every_timesteps=every_timesteps)
        self.counts = counts
        self._run_dir = run_dir
        self._title = title
        self._names = names
        self._pictures = Interval(max(1, total_timesteps // PICTURES_OF_A_RUN))
        self._due_s = 0.0

    def collect(self) -> None:
        """Ask the envs, unless they are in the middle of a rollout."""
        if self.num_timesteps == self.boundary_timesteps:
            for visits in self.training_env.env_method("call", take_visits):
                self.counts.add(visits, until=self.num_timesteps)

    def write(self) -> bytes:
        """Write `places.npz` now, and return its content.

        Raises:
            OSError: the disk fails.
        """
        began_s = time.monotonic()
        content = self.counts.to_bytes()
        write_atomic(self._run_dir.places, content)
        ended_s = time.monotonic()
        self._due_s = ended_s + max(_WRITE_EVERY_S, (ended_s - began_s) / _MOST_WRITING)
        return content

    def _on_training_start(self) -> None:
        super()._on_training_start()
        self._pictures.last_timesteps = self.num_timesteps

    def on_boundary(self, *, is_last: bool) -> None:  # noqa: ARG002
        self.collect()
        if time.monotonic() > self._due_s:
            self.write()
        if self._pictures.crossed(self.boundary_timesteps):
            self._draw()

    def _draw(self) -> None:
        """Draw at once, not at the logger's next dump: a checkpoint keeps its numbers only."""
        outputs = self.logger.output_formats
        writers = [each for each in outputs if isinstance(each, TensorBoardOutputFormat)]
        if not writers:
            return
        title = f"{self._title} at timestep {self.boundary_timesteps:,}"
        file = self._run_dir.place_screens  # there if somebody had them joined
        screens = read_screen_map(file, most_blocks=DRAWN_BLOCKS)
        joined = joined_maps(
            self.counts,
            screens,
            pixels=screens.pixels,
            names=self._names,
            most_cells=_SIDE,
        )
        flags = place_flags(read_events(self._run_dir), self.counts.names, self.counts.offsets)
        picture = places_picture(self.counts, title=title, side=_SIDE, joined=joined, flags=flags)
        drawn = Image(np.asarray(picture), "HWC")
        for writer in writers:
            writer.write({_PICTURE: drawn}, {_PICTURE: ()}, self.boundary_timesteps)


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
            names=parts.game.map_names(),
            every_timesteps=parts.rhythm,
        )

    @classmethod
    def of(cls, parts: RunParts) -> Self | None:
        """Return None if the game names no place, or the phase to come plays nothing."""
        place = parts.game.definition.place
        return None if place is None or parts.is_offline else cls(parts, place)

    @classmethod
    def trackers(cls, config: RunConfig, *, is_training: bool) -> Sequence[TrackerMaker]:  # noqa: ARG003
        return (PlaceTally.of,) if is_training else ()

    def callbacks(
        self,
        parts: RunParts,  # noqa: ARG002
        checkpoints: CheckpointCallback,  # noqa: ARG002
    ) -> Sequence[BaseCallback]:
        return (self._callback,)

    def keep(self, model: BaseAlgorithm, name: str) -> Mapping[FileName, Saved]:  # noqa: ARG002
        self._callback.collect()
        return {PLACES_FILE.name: SavedPlaces(npz=self._callback.write())}

    @classmethod
    def not_restored(
        cls,
        config: RunConfig,  # noqa: ARG003
        game: Game,
        checkpoint: Checkpoint,
        given_callbacks: Sequence[GivenCallback],  # noqa: ARG003
    ) -> Iterable[str]:
        saved = saved_places(checkpoint)
        if saved is not None and saved.names != game.definition.place:
            names = ", ".join(saved.names)
            yield f"the map of visited places: `place` of game.yaml was [{names}]"

    def restore(self, checkpoint: Checkpoint) -> int:
        """Go on from the checkpoint's counts, unless they are of other variables or missing."""
        saved = saved_places(checkpoint)
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


def saved_places(checkpoint: CheckpointFolder) -> PlaceCounts | None:
    """Return the counts of visited places in a checkpoint; None if it has none.

    Raises:
        CheckpointError: they are damaged.
    """
    saved = checkpoint.read(PLACES_FILE)
    if saved is None:
        return None
    try:
        return parse_place_counts(saved.npz)
    except ValueError as error:
        file = checkpoint.path / PLACES_FILE.name
        raise CheckpointError(f"{file} cannot be read: {error}") from None
