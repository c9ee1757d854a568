"""The features of a run that have a file in its checkpoints, or a forecast."""

from collections.abc import Sequence

from pydantic import JsonValue

from game_rl.curiosity.curiosity_feature import CuriosityFeature
from game_rl.episodes.episode_files import EpisodesFeature
from game_rl.explore.potentials import PotentialsFeature
from game_rl.features.feature import Feature
from game_rl.features.features_above import (
    RecordingFeature,
    TeacherFeature,
    UploadFeature,
    WandbFeature,
)
from game_rl.files.saved import CheckpointFile, Natural, Saved
from game_rl.lake.lake_feed import LakeFeature
from game_rl.lake.lake_pool import LearningFeature
from game_rl.live.live_writer import LiveFeature
from game_rl.places.novelty import NoveltyFeature
from game_rl.places.place_counts import PlacesFeature
from game_rl.played.played_files import PlayedFeature
from game_rl.pool.pool_feature import PoolFeature


class CustomCallbackState(Saved):
    """The state of a custom callback."""

    callback: str
    """`module:Class`."""
    has_state: bool = False
    """Whether it has `state_dict` and `load_state_dict`; if not, the rest is empty."""
    n_calls: Natural = 0
    """SB3's counter of its calls."""
    state: JsonValue = None
    """What `state_dict` returned."""


class CustomCallbackStates(Saved):
    """The states of all custom callbacks, in the order of the config."""

    callbacks: tuple[CustomCallbackState, ...]

    def matched(self, references: Sequence[str]) -> list[CustomCallbackState | None]:
        """Return the state of each of these callbacks; None if there is none for it.

        Each is for the next callback of its class, so callbacks may be added and removed.
        """
        left = list(self.callbacks)
        found = list[CustomCallbackState | None]()
        for reference in references:
            state = next((each for each in left if each.callback == reference), None)
            if state is not None:
                left.remove(state)
            found.append(state)
        return found


CALLBACKS_FILE = CheckpointFile(
    name="callbacks.json",
    words="callbacks of your own",
    model=CustomCallbackStates,
    fork="unless its counters are new",
)


class CustomCallbacksFeature(Feature):
    """The custom callbacks; nobody can forecast what they keep."""

    file = CALLBACKS_FILE


FEATURES: tuple[Feature, ...] = (
    LearningFeature(),
    LakeFeature(),
    PlayedFeature(),
    CustomCallbacksFeature(),
    PlacesFeature(),
    PoolFeature(),
    PotentialsFeature(),
    NoveltyFeature(),
    CuriosityFeature(),
    EpisodesFeature(),
    LiveFeature(),
    TeacherFeature(),
    RecordingFeature(),
    WandbFeature(),
    UploadFeature(),
)
"""In the order in which a forecast and a checkpoint list them."""

FEATURE_FILES = {each.file.name: each.file for each in FEATURES if each.file is not None}
