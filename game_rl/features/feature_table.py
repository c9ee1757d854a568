"""The features of a run that have a file in its checkpoints, or a forecast."""

from game_rl.episodes.episode_files import EpisodesFeature
from game_rl.features.callback_states import CustomCallbacksFeature
from game_rl.features.feature import Feature
from game_rl.lake.lake_feed import LakeFeature
from game_rl.lake.lake_pool import LearningFeature
from game_rl.live.live_writer import LiveFeature
from game_rl.places.place_counts import PlacesFeature

FEATURES: tuple[Feature, ...] = (
    LearningFeature(),
    LakeFeature(),
    CustomCallbacksFeature(),
    PlacesFeature(),
    EpisodesFeature(),
    LiveFeature(),
)
"""In the order in which a forecast and a checkpoint list them."""

FEATURE_FILES = {each.file.name: each.file for each in FEATURES if each.file is not None}
