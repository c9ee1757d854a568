"""The pool of a run: states in which episodes begin, and what came of the episodes from each."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, TypeVar

from pydantic import Field

from game_rl.config.pool_config import PoolConfig
from game_rl.envs.episode_starts import PoolBeginning, PoolDraw, pool_draw
from game_rl.events import PoolLevel
from game_rl.files.saved import Blob, CheckpointFile, Natural, Saved

_Kind = TypeVar("_Kind")

RECENT = 30
"""Episodes from a state over which its success rate is: an agent that learns leaves older ones
behind."""

MOST_LEVELS = 12
"""Most levels of reward in `status`, on the page and in the report."""

LEAST_EPISODES = 8
"""Episodes from a beginning on a route, before the one before it may follow."""


class RoutePlace(Saved):
    """Where a state is on a route.

    Attributes:
        route: number of the route.
        left: timesteps from there to its end.
    """

    route: Natural
    left: Natural


@dataclass(frozen=True, slots=True)
class NewState:
    """A state that may enter the pool; see `PoolBeginning`."""

    state: bytes
    start_state: str
    reward: float
    timesteps: int
    place: RoutePlace | None = None

    @property
    def progress(self) -> tuple[float, int]:
        """How far its way has come."""
        return self.reward, self.timesteps


class PoolEnding(Saved):
    """The end of an episode of the training.

    Attributes:
        began: number of the state in which it began; None: in a start state.
        reward: the sum of its rewards.
    """

    began: int | None
    success: bool
    reward: float


class EpisodeTally(Saved):
    """What came of the episodes that began somewhere."""

    episodes: Natural = 0
    successes: Natural = 0
    reward: float = 0.0
    """Sum of their rewards."""
    recent: Annotated[str, Field(pattern=r"^[01]*$", max_length=RECENT)] = ""
    """Whether each of the last ones succeeded, the newest last."""

    def with_one(self, ending: PoolEnding) -> "EpisodeTally":
        """Return the tally with one more episode."""
        recent = self.recent + str(int(ending.success))
        return EpisodeTally(
            episodes=self.episodes + 1,
            successes=self.successes + ending.success,
            reward=self.reward + ending.reward,
            recent=recent[-RECENT:],
        )

    @property
    def learnability(self) -> float:
        """The mean of p (1 - p), where p is the success rate, as far as it is known.

        With s successes and f failures among the recent episodes and Jeffreys' prior, p has the
        distribution Beta(a, b), a = s + 1/2, b = f + 1/2, so that the mean is
        a b / ((a + b) (a + b + 1)): 1/8 before the first episode, less the longer all fail or all
        succeed, and close to 1/4 where every second one succeeds. Rutherford et al. 2024 ("No
        Regrets") draw levels by p (1 - p), Florensa et al. 2017 ("Reverse Curriculum Generation")
        begin where p is neither near 0 nor near 1.
        """
        successes = self.recent.count("1") + 0.5
        failures = self.recent.count("0") + 0.5
        both = successes + failures
        return successes * failures / (both * (both + 1))


class SavedPoolState(Saved):
    """A state of the pool, in a checkpoint; see `PoolBeginning` and `PooledState`."""

    number: Natural
    state: Blob
    start_state: str
    reward: float
    timesteps: Natural
    tally: EpisodeTally = EpisodeTally()
    place: RoutePlace | None = None
    passed: bool = False


class SavedPool(Saved):
    """The pool of a run, in a checkpoint."""

    source: str | None = None
    """What `env.pool.from` was when it was filled."""
    states: tuple[SavedPoolState, ...]
    next_number: Natural
    starts: EpisodeTally = EpisodeTally()
    """Of the episodes that began in start states."""
    highest: int | float | None = None
    """Highest value of the variable of `save_on` in a state that was saved in training."""
    waiting: tuple[PoolEnding, ...] = ()
    """Ends of episodes that are not counted yet."""


POOL_FILE = CheckpointFile(
    name="pool.json",
    words="pool of states",
    model=SavedPool,
    fork="unless its counters are new",
)


@dataclass(slots=True)
class PooledState:
    """A state of the pool with what came of the episodes from it.

    Attributes:
        place: where it is on a route; None: it is on none.
        passed: whether episodes from there succeeded often enough, so that the beginning before it
            on the route was next.
    """

    beginning: PoolBeginning
    tally: EpisodeTally = field(default_factory=EpisodeTally)
    place: RoutePlace | None = None
    passed: bool = False

    @property
    def progress(self) -> tuple[float, int, int]:
        """How far its way has come; it sorts states, and no two are equal."""
        return self.beginning.reward, self.beginning.timesteps, self.beginning.number


class Pool:
    """The states of a run's pool.

    Args:
        settings: `env.pool` of the run's config.
        next_number: number of the next state; those of earlier pools of the run are below it.

    Attributes:
        states: in order of progress.
        starts: what came of the episodes that began in start states.
        highest: see `SavedPool`.
    """

    def __init__(self, settings: PoolConfig, *, next_number: int = 0) -> None:
        self._settings = settings
        self._next_number = next_number
        self.states: list[PooledState] = []
        self.starts = EpisodeTally()
        self.highest: int | float | None = None

    @classmethod
    def of(cls, saved: SavedPool, settings: PoolConfig) -> "Pool":
        """Return the pool that a checkpoint has; states above its size are dropped."""
        pool = cls(settings, next_number=saved.next_number)
        pool.starts = saved.starts
        pool.highest = saved.highest
        for each in saved.states:
            beginning = PoolBeginning(
                each.number, each.state, each.start_state, each.reward, each.timesteps
            )
            pool.states.append(PooledState(beginning, each.tally, each.place, each.passed))
        pool._drop_excess()
        return pool

    def saved(self, waiting: Iterable[PoolEnding] = ()) -> SavedPool:
        """Return what a checkpoint keeps.

        Args:
            waiting: ends of episodes that are not counted yet.
        """
        states = tuple(
            SavedPoolState(
                number=each.beginning.number,
                state=each.beginning.state,
                start_state=each.beginning.start_state,
                reward=each.beginning.reward,
                timesteps=each.beginning.timesteps,
                tally=each.tally,
                place=each.place,
                passed=each.passed,
            )
            for each in self.states
        )
        return SavedPool(
            source=self._settings.from_,
            states=states,
            next_number=self._next_number,
            starts=self.starts,
            highest=self.highest,
            waiting=tuple(waiting),
        )

    def add(self, new: Iterable[NewState]) -> None:
        """Add states in this order, and drop those above the size.

        Of the states whose ways have earned the same reward, as many stay as of every other
        reward. Of a reward with too many, the oldest go first.
        """
        for each in new:
            beginning = PoolBeginning(
                self._next_number, each.state, each.start_state, each.reward, each.timesteps
            )
            self._next_number += 1
            self.states.append(PooledState(beginning, place=each.place))
        self._drop_excess()

    def _drop_excess(self) -> None:
        excess = len(self.states) - self._settings.size
        if excess > 0:
            levels: dict[float, list[PooledState]] = {}
            for each in sorted(self.states, key=lambda each: each.beginning.number, reverse=True):
                levels.setdefault(each.beginning.reward, []).append(each)  # the oldest come last
            for _ in range(excess):
                # of two levels with as many states, the one with the lower reward
                most = max(levels, key=lambda reward: (len(levels[reward]), -reward))
                levels[most].pop()
                if not levels[most]:
                    del levels[most]
            self.states = [each for level in levels.values() for each in level]
        self.states.sort(key=lambda each: each.progress)

    def count(self, endings: Iterable[PoolEnding]) -> None:
        """Count the ends of episodes; those from states that are gone are left out.

        Then let each route's beginnings move back by one where episodes succeed often enough.
        """
        known = {each.beginning.number: each for each in self.states}
        for ending in endings:
            if ending.began is None:
                self.starts = self.starts.with_one(ending)
            elif (found := known.get(ending.began)) is not None:
                found.tally = found.tally.with_one(ending)
        for stretch in self._stretches():
            frontier = next((each for each in stretch if not each.passed), None)
            if frontier is not None:
                recent = frontier.tally.recent
                needed = self._settings.backward.success_rate * len(recent)
                is_enough = len(recent) >= LEAST_EPISODES and recent.count("1") >= needed
                frontier.passed = is_enough

    def _stretches(self) -> Iterator[list[PooledState]]:
        """Yield the states of each stretch of a route, the last one first.

        With `goal: reward`, a stretch goes from one reward to the next; else it is the route.
        """
        found: dict[tuple[int, float], list[PooledState]] = {}
        is_split = self._settings.goal == "reward"
        for each in self.states:
            if each.place is not None:
                level = each.beginning.reward if is_split else 0.0
                found.setdefault((each.place.route, level), []).append(each)
        for stretch in found.values():
            yield sorted(stretch, key=lambda each: each.place.left if each.place else 0)

    def draw(self) -> PoolDraw | None:
        """Return how an env draws from the states as they are; None if there are none."""
        if not self.states:
            return None
        numbers = [each.beginning.number for each in self.states]
        furthest: Sequence[int] = ()
        if self._settings.migrate == "furthest":
            most = self.states[-1].beginning.reward
            of_most = [each.beginning for each in self.states if each.beginning.reward == most]
            furthest = [each.number for each in of_most]
        return pool_draw(self._settings.share, numbers, self.weights(), furthest)

    def weights(self) -> list[float]:
        """Return how often each state is drawn, relative to the others."""
        n = len(self.states)
        match self._settings.choose:
            case "uniform":
                return [1.0] * n
            case "rank":
                return [float(rank) for rank in range(1, n + 1)]
            case "success":
                return [each.tally.learnability for each in self.states]
            case "backward":
                return self._backward_weights()

    def _backward_weights(self) -> list[float]:
        """Return 1 for each stretch: half at its frontier, half evenly behind it.

        The frontier is the last beginning that was not passed. So what was learned is not
        forgotten; Salimans and Chen (2018) draw from a window that moves instead.
        """
        weights: dict[int, float] = {}
        for stretch in self._stretches():
            passed = [each for each in stretch if each.passed]
            frontier = [each for each in stretch if not each.passed][:1]
            share = 0.5 if passed and frontier else 1.0
            for group in (passed, frontier):
                for each in group:
                    weights[each.beginning.number] = share / len(group)
        return [weights.get(each.beginning.number, 0.0) for each in self.states]

    def levels(self) -> tuple[PoolLevel, ...]:
        """Return the states by their reward; neighbours are together if there are too many."""
        by_reward: dict[float, list[PooledState]] = {}
        for each in self.states:  # in order of their reward
            by_reward.setdefault(round(each.beginning.reward, 6), []).append(each)
        rewards = list(by_reward)
        n = min(len(rewards), MOST_LEVELS)
        bounds = [index * len(rewards) // n for index in range(n)] + [len(rewards)]
        found = []
        for start, stop in pairwise(bounds):
            states = [each for reward in rewards[start:stop] for each in by_reward[reward]]
            episodes = sum(each.tally.episodes for each in states)
            earned = sum(each.tally.reward for each in states)
            level = PoolLevel(
                least_reward=rewards[start],
                most_reward=rewards[stop - 1],
                states=len(states),
                episodes=episodes,
                successes=sum(each.tally.successes for each in states),
                mean_reward=earned / episodes if episodes else None,
            )
            found.append(level)
        return tuple(found)

    @property
    def share_passed(self) -> float:
        """Share of the beginnings on routes that were passed; 0 if there are no routes."""
        on_routes = [each for each in self.states if each.place is not None]
        return sum(each.passed for each in on_routes) / max(1, len(on_routes))


def spread(
    found: Sequence[_Kind], size: int, *, progress: Callable[[_Kind], tuple[float, int]]
) -> list[_Kind]:
    """Choose at most `size`: of each reward as many as of every other, evenly by their timesteps.

    Args:
        progress: returns the reward of the way to a state, and its timesteps.
    """
    levels: dict[float, list[_Kind]] = {}
    for each in sorted(found, key=progress):
        levels.setdefault(progress(each)[0], []).append(each)
    quotas = dict.fromkeys(levels, 0)
    left = min(size, len(found))
    while left:
        unfilled = [reward for reward in levels if quotas[reward] < len(levels[reward])]
        share = max(1, left // len(unfilled))
        for reward in reversed(unfilled):  # what cannot be divided goes to those far ahead
            more = min(share, len(levels[reward]) - quotas[reward])
            quotas[reward] += more
            left -= more
            if not left:
                break
    chosen: list[_Kind] = []
    for reward, states in levels.items():
        n = quotas[reward]
        chosen += [states[index * len(states) // n] for index in range(n)]
    return chosen
