"""A tracker of any room follows the episodes of an env, and is saved with it."""

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Self

from pydantic import JsonValue

from game_rl.envs.episode_tracker import EnvParts, EpisodeTracker, RunningEpisode
from game_rl.envs.game_boy_env import EnvState
from tests.envs.example import fake_env, fake_game
from tests.envs.test_game_boy_env import LocksUp


class Presses(EpisodeTracker):
    """Counts how often each action was played in the episode."""

    variables = frozenset({"level"})

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.levels = set[object]()

    @classmethod
    def of(cls, parts: EnvParts) -> Self:
        assert parts.config.max_episode_timesteps
        return cls()

    def reset(self, episode: RunningEpisode) -> None:
        assert episode.values.keys() == {"frames", "x", "health", "result", "seed", "level"}
        self.counts.clear()

    def step(self, episode: RunningEpisode) -> None:
        self.levels.add(episode.values["level"])
        self.counts[str(episode.played)] += 1

    def cut_short(self, episode: RunningEpisode) -> Mapping[str, Any]:
        self.counts[str(episode.played)] += 1
        return self.summary(episode)

    def summary(self, episode: RunningEpisode) -> Mapping[str, Any]:
        return {"presses": {episode.start_state: dict(self.counts)}}

    def save_state(self) -> Mapping[str, JsonValue]:
        return {"presses": dict(self.counts)}

    def load_state(self, saved: Mapping[str, JsonValue], episode: RunningEpisode) -> None:  # noqa: ARG002
        found = saved.get("presses", {})
        assert isinstance(found, dict)
        self.counts = Counter(found)  # they are whole numbers


def test_a_tracker_follows_each_episode_also_over_a_saved_state() -> None:
    actions = [0, 1, 2, 2, 3, 1, 2]
    settings: dict[str, Any] = {"max_episode_timesteps": len(actions), "trackers": [Presses.of]}
    for saved_at in (None, 0, 3):
        env = fake_env(**settings)
        start_state = env.reset(seed=4)[1]["start_state"]
        for number, action in enumerate(actions):
            if number == saved_at:
                state = env.save_state().model_dump_json()
                env.close()
                env = fake_env(**settings)
                env.load_state(EnvState.model_validate_json(state))
            info = env.step(action)[4]
            assert ("presses" in info) == (number == len(actions) - 1)
        tracker = env.tracker(Presses)
        assert tracker is not None
        assert tracker.levels == {env.read_variables()["level"]}
        env.close()
        assert info["presses"] == {start_state: {"0": 1, "1": 2, "2": 3, "3": 1}}


def test_a_state_without_a_tracker_or_with_one_more_can_be_loaded() -> None:
    with closing(fake_env()) as plain, closing(fake_env(trackers=[Presses.of])) as more:
        plain.reset(seed=0)
        more.reset(seed=0)
        more.load_state(plain.save_state())
        more.step(2)
        plain.load_state(EnvState.model_validate(json.loads(more.save_state().model_dump_json())))
        assert plain.save_state().trackers.items() < more.save_state().trackers.items()


def test_a_tracker_hears_of_a_timestep_in_which_the_game_locks_up() -> None:
    with closing(fake_env(emulator=LocksUp(), trackers=[Presses.of])) as env:
        n_timesteps = 0
        info: dict[str, Any] = env.reset(seed=0)[1]
        while "lock_up" not in info:
            info = env.step(0)[4]
            n_timesteps += 1
        assert info["presses"] == {info["start_state"]: {"0": n_timesteps}}


def test_an_env_has_no_tracker_that_its_game_does_not_need() -> None:
    def none_of(_: EnvParts) -> EpisodeTracker | None:
        return None

    with closing(fake_env(fake_game(), trackers=[none_of])) as env:
        assert env.tracker(Presses) is None
        assert len(env.trackers) == 6
