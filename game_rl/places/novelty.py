"""What a run has visited, for reward terms with `per_run`: added up over envs, saved with it."""

import json
import zlib
from collections.abc import Iterable, Mapping

from game_rl.envs.custom_wrappers import GameEnv
from game_rl.envs.episode_reward import EpisodeReward
from game_rl.features.feature import Feature, Part, PlannedRun
from game_rl.files.saved import Blob, CheckpointFile, Saved
from game_rl.games.novelty_term import NewVisits, run_visits
from game_rl.games.place import VisitedPlaces


class SavedVisits(Saved):
    """The visits of a run for one reward term."""

    variables: tuple[str, ...]
    places: Blob
    """As `VisitedPlaces` writes them."""

    def visits(self) -> VisitedPlaces:
        """Return what was saved.

        Raises:
            ValueError: it is damaged.
        """
        found = run_visits()
        try:
            found.load_bytes(self.places)
        except (zlib.error, json.JSONDecodeError, TypeError, IndexError) as error:
            raise ValueError(f"its visits cannot be read ({error})") from None
        return found


class SavedNovelty(Saved):
    """The visits of a run, by reward term."""

    terms: dict[str, SavedVisits]


NOVELTY_FILE = CheckpointFile(
    name="novelty.json",
    words="places that the run has visited",
    model=SavedNovelty,
    fork="unless its counters are new",
)


def take_novelty(env: GameEnv) -> Mapping[str, NewVisits]:
    """Return what an env has visited since the last call, by reward term."""
    rewards = env.tracker(EpisodeReward)
    assert rewards is not None
    return {name: term.take() for name, term in rewards.novelty_terms.items()}


def tell_novelty(env: GameEnv, visits: Mapping[str, VisitedPlaces]) -> None:
    """Tell an env what the run has visited, all of it or what is new to the env."""
    rewards = env.tracker(EpisodeReward)
    assert rewards is not None
    for name, term in rewards.novelty_terms.items():
        term.learn(visits[name])


# As in `places`, where they were measured; an env has its own copy of the counts.
_USUAL_PLACES = 40_000
_PLACE_BYTES = 250
_SAVED_PLACE_BYTES = 2.7
_TIMESTEPS_OF_A_NEW_PLACE = 4


class NoveltyFeature(Feature):
    """Reward terms with `per_run`."""

    file = NOVELTY_FILE

    def memory(self, run: PlannedRun) -> Iterable[Part]:
        if run.n_novelty_terms:
            copies = run.n_novelty_terms * (1 + run.config.env.n_envs)
            yield Part("places that the run has visited", copies * _USUAL_PLACES * _PLACE_BYTES)

    def checkpoint_bytes(self, run: PlannedRun, timesteps: int) -> int:
        places = min(timesteps // _TIMESTEPS_OF_A_NEW_PLACE, _USUAL_PLACES)
        return round(run.n_novelty_terms * places * _SAVED_PLACE_BYTES)
