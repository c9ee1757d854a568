"""A trip of an exploration: return to a cell, then play on at random, and note what is found."""

from collections.abc import Mapping, Sequence

import numpy as np

from game_rl.config.schema import EnvConfig
from game_rl.config.strict_model import StrictModel
from game_rl.envs.episode_tracker import EpisodeTracker
from game_rl.envs.make_env import make_game_env
from game_rl.explore.archive import Find, Score, Trip, packed, unpacked
from game_rl.games.cell import Cell, CoarseVariable, cell_reader
from game_rl.games.definition import Game

ENDED = 1
"""Last number of the cell of an episode's end, which no other cell has: its tuple is longer."""


class ExploreSettings(StrictModel):
    """What an exploration depends on, besides the game."""

    start_state: str
    seed: int
    cell: tuple[CoarseVariable, ...]
    prefer: tuple[str, ...]
    """Variables of which more is better where two ways to a cell have the same reward."""
    env: EnvConfig
    trips: int
    """Trips of a round."""
    trip_timesteps: int
    """Timesteps of a trip, unless the episode ends before."""
    repeat: float
    """Probability that a timestep repeats the button of the one before."""
    most_bytes: int
    """Limit of the size of all states, in memory; the file has at most twice as many."""


class _Watch(EpisodeTracker):
    """Has the env read the variables of cells at each timestep."""

    def __init__(self, names: Sequence[str]) -> None:
        self.variables = frozenset(names)


class Explorer:
    """Plays trips in an env of its own, which draws nothing.

    Args:
        settings: as for the other explorers of the exploration.
    """

    def __init__(self, game: Game, settings: ExploreSettings) -> None:
        self._settings = settings
        names = [*(entry.variable for entry in settings.cell), *settings.prefer]
        self.env = make_game_env(settings.env, game, trackers=[lambda _: _Watch(names)])
        self.env.draws = False  # nobody looks at the observations
        self._cell_of = cell_reader(settings.cell)
        self.env.reset(seed=settings.seed, options={"start_state": settings.start_state})

    def beginning(self) -> Find:
        """Begin the episode; return its first cell."""
        settings = self._settings
        self.env.reset(seed=settings.seed, options={"start_state": settings.start_state})
        state = packed(self.env.save_state())
        return Find(self._cell_of(self.env.episode.values), 0, self._score(), state)

    def trip(self, state: bytes, seed: Sequence[int], known: Mapping[Cell, Score]) -> Trip:
        """Play on from a state.

        Args:
            state: the packed state of the cell from which the trip begins.
            seed: of the random buttons.
            known: the score of each cell that is known; what is no better is no find.
        """
        env = self.env
        env.load_state(unpacked(state))
        random = np.random.default_rng(seed)
        n_actions = env.player.n_actions
        actions = bytearray()
        cell = self._cell_of(env.episode.values)
        trip = Trip(b"", seen=[cell])
        seen = {cell}
        found: dict[Cell, Score] = {}
        entered = 0
        kept = self._kept()
        action = int(random.integers(n_actions))
        for after in range(1, self._settings.trip_timesteps + 1):
            if random.random() >= self._settings.repeat:
                action = int(random.integers(n_actions))
            actions.append(action)
            *_, terminated, truncated, info = env.step(action)
            has_ended = terminated or truncated
            if "lock_up" in info:
                break
            before, cell = cell, self._cell_of(env.episode.values)
            if has_ended:
                cell = (*cell, ENDED)
            if cell != before:
                kept_before, kept = kept, self._kept()
                if all(now >= then for now, then in zip(kept, kept_before, strict=True)):
                    timesteps = after - entered
                    edge = (before, cell)
                    trip.steps[edge] = min(timesteps, trip.steps.get(edge, timesteps))
                entered = after
                if cell not in seen:
                    seen.add(cell)
                    trip.seen.append(cell)
                score = self._score()
                best = max(filter(None, (known.get(cell), found.get(cell))), default=None)
                if best is None or score > best:
                    found[cell] = score
                    packed_state = b"" if has_ended else packed(env.save_state())
                    is_success = bool(info.get("is_success", False))
                    trip.finds.append(Find(cell, after, score, packed_state, is_success))
            if has_ended:
                break
        trip.actions = bytes(actions)
        trip.earned = {name: total for name, total in env.reward_terms.items() if total > 0}
        return trip

    def _kept(self) -> tuple[float, ...]:
        values = self.env.episode.values
        return tuple(float(values[name]) for name in self._settings.prefer)

    def _score(self) -> Score:
        reward = sum(self.env.reward_terms.values())
        return Score(reward, self._kept(), -self.env.episode.timesteps)

    def close(self) -> None:
        self.env.close()
