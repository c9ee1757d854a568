"""The pool of a run: states in which episodes begin, and what came of the episodes from each."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from game_rl.envs.episode_starts import PoolBeginning, PoolDraw, pool_draw
from game_rl.files.saved import Blob, CheckpointFile, Natural, Saved

Choice = Literal["rank", "uniform"]
_Kind = TypeVar("_Kind")

RECENT = 20
"""Episodes from a state over which its success rate is: an agent that learns leaves older ones
behind."""


@dataclass(frozen=True, slots=True)
class NewState:
    """A state that may enter the pool; see `PoolBeginning`."""

    state: bytes
    start_state: str
    reward: float
    timesteps: int

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


class SavedPoolState(Saved):
    """A state of the pool, in a checkpoint; see `PoolBeginning`."""

    number: Natural
    state: Blob
    start_state: str
    reward: float
    timesteps: Natural
    tally: EpisodeTally = EpisodeTally()


class SavedPool(Saved):
    """The pool of a run, in a checkpoint."""

    states: tuple[SavedPoolState, ...]
    next_number: Natural
    starts: EpisodeTally = EpisodeTally()
    """Of the episodes that began in start states."""
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
    """A state of the pool with what came of the episodes from it."""

    beginning: PoolBeginning
    tally: EpisodeTally = field(default_factory=EpisodeTally)

    @property
    def progress(self) -> tuple[float, int, int]:
        """How far its way has come; it sorts states, and no two are equal."""
        return self.beginning.reward, self.beginning.timesteps, self.beginning.number


class Pool:
    """The states of a run's pool, in order of progress.

    Args:
        size: the most states.
        next_number: number of the next state; those of earlier pools of the run are below it.

    Attributes:
        states: in order of progress.
        starts: what came of the episodes that began in start states.
    """

    def __init__(self, size: int, *, next_number: int = 0) -> None:
        self._size = size
        self._next_number = next_number
        self.states: list[PooledState] = []
        self.starts = EpisodeTally()

    @classmethod
    def of(cls, saved: SavedPool, size: int) -> "Pool":
        """Return the pool that a checkpoint has; states above `size` are dropped."""
        pool = cls(size, next_number=saved.next_number)
        pool.starts = saved.starts
        for each in saved.states:
            beginning = PoolBeginning(
                each.number, each.state, each.start_state, each.reward, each.timesteps
            )
            pool.states.append(PooledState(beginning, each.tally))
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
            )
            for each in self.states
        )
        return SavedPool(
            states=states,
            next_number=self._next_number,
            starts=self.starts,
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
            self.states.append(PooledState(beginning))
        self._drop_excess()

    def _drop_excess(self) -> None:
        excess = len(self.states) - self._size
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
        """Count the ends of episodes; those from states that are gone are left out."""
        known = {each.beginning.number: each for each in self.states}
        for ending in endings:
            if ending.began is None:
                self.starts = self.starts.with_one(ending)
            elif (found := known.get(ending.began)) is not None:
                found.tally = found.tally.with_one(ending)

    def draw(self, share: float, choose: Choice) -> PoolDraw | None:
        """Return how an env draws from the states as they are; None if there are none."""
        if not self.states:
            return None
        numbers = [each.beginning.number for each in self.states]
        return pool_draw(share, numbers, self.weights(choose))

    def weights(self, choose: Choice) -> Sequence[float]:
        """Return how often each state is drawn, relative to the others."""
        n = len(self.states)
        return [1.0] * n if choose == "uniform" else [float(rank) for rank in range(1, n + 1)]


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
