"""The rewards of an episode: what its terms earn at each timestep, and their sums."""

import math
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import Field, JsonValue

from game_rl.envs.episode_ends import CustomEndings
from game_rl.envs.episode_tracker import EpisodeTracker, RunningEpisode, tracker_state
from game_rl.errors import GameFileError
from game_rl.files.saved import Saved
from game_rl.games.custom_reward import CUSTOM_TERM, ENDINGS, TRUNCATIONS, GameReward
from game_rl.games.novelty_term import NoveltyTerm
from game_rl.games.potential import PotentialTerm
from game_rl.games.reward_term import RewardTerm, WatchedTerm, WatchedTermState
from game_rl.games.variables import Values, numbers_of

_ABSURD_REWARD = 10_000.0  # in one timestep; networks learn well from sums of about -10 to 10


class RewardState(Saved):
    """The state that the rewards of later timesteps depend on."""

    before: dict[str, int | float]
    """The variables that are numbers, after the last timestep."""
    sums: dict[str, float]
    spent: tuple[str, ...]
    """Terms with `once` that have been earned."""
    custom: JsonValue = None
    """State of the game's own reward class."""
    terms: dict[str, WatchedTermState] = Field(default={})
    """What terms remember, by name; checkpoints of earlier versions have none."""


class TermReward(NamedTuple):
    """What a term has earned in one timestep."""

    term: str
    reward: float

    @property
    def warning(self) -> str | None:
        """What to do about the reward if it is absurdly large, or else None."""
        if abs(self.reward) <= _ABSURD_REWARD:
            return None
        return (
            f"reward term {self.term} has earned {self.reward:g} in one timestep; agents learn "
            "well while the sum of an episode is between about -10 and 10, so correct the term or "
            "lower its weight"
        )


class EpisodeReward(EpisodeTracker):
    """The reward terms of one running episode.

    Args:
        custom: the game's own reward class.
        makes: the parts of the observation that the class makes.
        known: names of all variables, which the class gets.
        potentials: the terms that have a potential.

    Attributes:
        largest: the largest reward by amount in any timestep of any episode.
        has_endings: whether the game's own reward class has endings.
    """

    def __init__(
        self,
        terms: Mapping[str, RewardTerm],
        custom: GameReward | None,
        makes: Collection[str] = (),
        known: Collection[str] = (),
        potentials: Mapping[str, PotentialTerm] = MappingProxyType({}),
    ) -> None:
        # attributes are looked up once instead of in every timestep
        self._watched: dict[str, WatchedTerm | PotentialTerm] = {
            n: NoveltyTerm(term) if term.per_run else WatchedTerm(term)
            for n, term in terms.items()
            if term.is_watched
        }
        self._watched |= potentials
        self._terms = tuple(
            (name, term, term.variable or "", term.needs_change, self._watched.get(name))
            for name, term in terms.items()
        )
        self._custom = custom
        self._makes = makes
        self.variables = {name for term in terms.values() for _, name in term.references()}
        self.variables.update(*(each.variables for each in potentials.values()))
        if custom is not None:
            self.variables.update(known)
            custom.check_parts(makes)
        self.has_endings = custom is not None and custom.has_endings
        self._before: Values = {}
        self._sums: dict[str, float] = {}
        self._spent: set[str] = set()
        self._knows_all_before = True
        self.largest = TermReward("", 0.0)
        self._gained: list[str] = []

    def reset(self, episode: RunningEpisode) -> None:
        values = episode.values
        self._before = values
        self._sums = {name: 0.0 for name, *_ in self._terms}
        episode.reward_terms = self._sums
        self._spent = set()
        self._knows_all_before = True
        for watched in self._watched.values():
            watched.reset(values)
        if self._custom is not None:
            self._custom.reset(values)

    def step(self, episode: RunningEpisode) -> None:
        """Set the reward of a timestep.

        Raises:
            GameFileError: the game's own reward class failed, or its reward is not finite.
        """
        values = episode.values
        total = 0.0
        self._gained = []
        if not self._knows_all_before:
            self._before = {**values, **self._before}
            self._knows_all_before = True
        for name, term, variable, needs_change, watched in self._terms:
            if watched is None:
                before = self._before[variable]
                now = values[variable]
                if (needs_change and before == now) or name in self._spent:
                    continue
                earned = term.reward(before, now)
            elif name in self._spent:
                continue
            else:
                earned = watched.step(values, self._before)
            if earned:
                total += self._earn(name, earned)
                if term.once:
                    self._spent.add(name)
        self._before = values
        if self._custom is not None:
            found = self._custom.step(values)
            terms = found if isinstance(found, Mapping) else {CUSTOM_TERM: found}
            total += sum(self._earn(name, reward) for name, reward in terms.items())
        episode.reward = total
        episode.gained = self._gained

    def cut_short(self, episode: RunningEpisode) -> Mapping[str, Any]:
        return self.summary(episode)

    def summary(self, episode: RunningEpisode) -> Mapping[str, Any]:  # noqa: ARG002
        return {"reward_terms": dict(self._sums)}

    def save_state(self) -> Mapping[str, JsonValue]:
        state = RewardState(
            before=numbers_of(self._before),
            sums=self._sums,
            spent=tuple(sorted(self._spent)),
            custom=None if self._custom is None else self._custom.save_state(),
            terms={name: watched.save_state() for name, watched in self._watched.items()},
        )
        return {"reward": state.model_dump(mode="json")}

    def load_state(self, saved: Mapping[str, JsonValue], episode: RunningEpisode) -> None:
        state = tracker_state(saved, "reward", RewardState)
        self._before = dict(state.before)
        self._sums = dict(state.sums)
        episode.reward_terms = self._sums
        self._spent = set(state.spent)
        # a state of a run whose game file had other terms may lack variables
        self._knows_all_before = False
        for name, watched in self._watched.items():
            watched.load_state(state.terms.get(name, WatchedTermState()))
        if self._custom is not None:
            self._custom.load_state(state.custom)

    @property
    def novelty_terms(self) -> Mapping[str, NoveltyTerm]:
        """The terms that a whole run has in common, by name."""
        watched = self._watched.items()
        return {name: term for name, term in watched if isinstance(term, NoveltyTerm)}

    @property
    def needs_screen(self) -> bool:
        """Whether the game's own reward class takes the picture, which must be drawn for it."""
        if self._custom is None:
            return False
        return self._custom.needs_screen or bool(self._makes and self._custom.parts_need_screen)

    def endings(self, values: Values) -> CustomEndings:
        """Return the endings of the game's own reward class, which it must have; after `step`."""
        assert self._custom is not None
        return CustomEndings(
            self._custom.ends(ENDINGS, values), self._custom.ends(TRUNCATIONS, values)
        )

    def parts(self, values: Values) -> Mapping[str, Any]:
        """Return the parts of the observation that the class makes; after `reset` or `step`."""
        assert self._custom is not None
        return self._custom.parts(values)

    def check_parts(self, values: Values) -> None:
        """Raise GameFileError if making parts changes what the class remembers."""
        if not self._makes or self._custom is None:
            return
        before = self._custom.save_state()
        self._custom.parts(values)
        if self._custom.save_state() != before:
            raise GameFileError(
                "the reward class changes its attributes in its method parts, which is called more "
                "often than once a timestep; change them in `reset` and `step`"
            )

    def renew_custom(self) -> None:
        """Go on with a copy of the game's own reward class that was saved and loaded, if any.

        Raises:
            GameFileError: it cannot be saved, or a new object cannot load what was saved.
        """
        if self._custom is not None:
            self._custom = self._custom.renewed()

    def _earn(self, name: str, reward: float) -> float:
        if not math.isfinite(reward):
            raise GameFileError(
                f"reward term {name} is {reward}; rewards must be finite, fix the reward class"
            )
        if abs(reward) > abs(self.largest.reward):
            self.largest = TermReward(name, reward)
        self._sums[name] = self._sums.get(name, 0.0) + reward
        if reward > 0:
            self._gained.append(name)
        return reward
