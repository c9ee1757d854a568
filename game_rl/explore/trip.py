"""A trip of an exploration: return to a cell, then play on at random, and note what is found."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from game_rl.envs.episode_reward import EpisodeReward
from game_rl.envs.episode_tracker import EpisodeTracker
from game_rl.envs.make_env import make_game_env
from game_rl.envs.observer import Observer
from game_rl.errors import LockUpError, ReplayError, UsageError
from game_rl.explore.archive import ENDED, CellRecord, CellScore, Find, Trip, packed, unpacked
from game_rl.explore.explore_dir import ExploreSettings
from game_rl.games.cell import Cell, cell_reader
from game_rl.games.definition import Game
from game_rl.games.place import whole
from game_rl.games.variables import as_tuple

_TRIPS_FOR_PACE = 8
_COLUMNS = 11
_ROWS = 8
_SHADES = 4


def screen_cell(screen: NDArray[np.uint8]) -> Cell:
    """Return the cell of a screen: 11 x 8 means (Ecoffet et al. 2021, Methods) in four shades.

    Args:
        screen: uint8 [144, 160, 3].
    """
    grey = Image.fromarray(screen).convert("L").resize((_COLUMNS, _ROWS), Image.Resampling.BOX)
    shades = np.asarray(grey, dtype=np.uint8) // (256 // _SHADES)
    return tuple(shades.ravel().tolist())


Screen = NDArray[np.uint8]
"""A picture of the whole screen, uint8 [144, 160, 3]."""


class Gain(NamedTuple):
    """A moment of a way at which it earns a reward, or its end.

    Attributes:
        timesteps: of the episode until then.
        terms: the reward terms that are earned.
    """

    timesteps: int
    terms: tuple[str, ...]
    screen: Screen


class MapScreen(NamedTuple):
    """What a state shows of a map, as `ScreenMap.add` takes it."""

    map_id: tuple[int, ...]
    x: int
    y: int
    part: Screen


class Pace(NamedTuple):
    """What a moment of play from the beginning says.

    Attributes:
        state_bytes: size of the largest packed state.
        per_s: timesteps a second.
        finds: share of the timesteps that find a cell which their trip does not know.
    """

    state_bytes: int
    per_s: float
    finds: float


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
        env = settings.env.model_copy(update={"rewards": {}})
        own = game.without_potentials()  # which may be of this very exploration
        self.env = make_game_env(env, own, trackers=[lambda _: _Watch(names)])
        reward = self.env.tracker(EpisodeReward)
        needs_screen = reward is not None and reward.needs_screen
        self.env.draws = not settings.cell or needs_screen
        observer = self.env.tracker(Observer)
        assert observer is not None
        observer.is_read = False
        self._values_of = cell_reader(settings.cell)
        self.env.reset(seed=settings.seed, options={"start_state": settings.start_state})

    def beginning(self) -> Find:
        """Begin the episode; return its first cell."""
        settings = self._settings
        self.env.reset(seed=settings.seed, options={"start_state": settings.start_state})
        state = packed(self.env.save_state())
        return Find(self._cell(), 0, self._score(), state)

    def trip(
        self,
        state: bytes,
        seed: Sequence[int],
        known: Mapping[Cell, CellScore],
        *,
        has_lost: bool = False,
    ) -> Trip:
        """Play on from a state.

        What is lost on entering a cell, such as a life, may throw the player out of it and far
        away, so neither the step into it nor the next one belongs to the graph.

        Args:
            state: the packed state of the cell from which the trip begins.
            has_lost: whether something was lost in the step into that cell.
            seed: of the random buttons.
            known: the score of each cell that is known; what is no better is no find.
        """
        env = self.env
        env.load_state(unpacked(state))
        random = np.random.default_rng(seed)
        n_actions = env.player.n_actions
        actions = bytearray()
        cell = self._cell()
        trip = Trip(b"")
        seen = {cell: None}  # in order
        found: dict[Cell, CellScore] = {}
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
            before = cell
            cell = self._cell()
            if has_ended:
                cell = (*cell, ENDED)
            if cell != before:
                kept_before = kept
                kept = self._kept()
                had_lost = has_lost
                has_lost = any(now < then for now, then in zip(kept, kept_before, strict=True))
                if not (has_lost or had_lost):
                    timesteps = after - entered
                    edge = (before, cell)
                    trip.steps[edge] = min(timesteps, trip.steps.get(edge, timesteps))
                entered = after
                seen[cell] = None
                best = found.get(cell) or known.get(cell)
                score = self._score()
                if best is None or score > best:
                    found[cell] = score
                    trip.finds.append(
                        self._find(cell, after, info, has_ended=has_ended, has_lost=has_lost)
                    )
            if has_ended:
                break
        trip.actions = bytes(actions)
        trip.seen = list(seen)
        trip.earned = self._earned()
        return trip

    def _find(
        self, cell: Cell, after: int, info: Mapping[str, Any], *, has_ended: bool, has_lost: bool
    ) -> Find:
        state = b"" if has_ended else packed(self.env.save_state())
        is_success = bool(info.get("is_success", False))
        terms = tuple(self._earned())
        return Find(cell, after, self._score(), state, is_success, terms, has_lost)

    def pace(self, seed: int) -> Pace:
        """Play some trips from the beginning, as the rounds do."""
        state = self.beginning().state
        began_s = time.perf_counter()
        trips = [self.trip(state, (seed, number), {}) for number in range(_TRIPS_FOR_PACE)]
        seconds = time.perf_counter() - began_s
        timesteps = sum(len(trip.actions) for trip in trips)
        finds = [find for trip in trips for find in trip.finds]
        largest = max([len(state), *(len(find.state) for find in finds)])
        return Pace(largest, timesteps / seconds, len(finds) / timesteps)

    def gains(self, actions: bytes) -> list[Gain]:
        """Play a way from the beginning; return its end, and the moments at which it is rewarded.

        Raises:
            ReplayError: the episode ends before the way does.
        """
        self.beginning()
        found = []
        before = self.env.reward_terms
        for timesteps, action in enumerate(actions, 1):
            if not self.env.episode.running:
                raise ReplayError(
                    f"the route of {len(actions):,} timesteps ends after {timesteps - 1:,}; the "
                    "game file, game_rl or PyBoy has changed since it was found: explore again"
                )
            self.env.step(action)
            terms = self.env.reward_terms
            gained = tuple(name for name, sum_ in terms.items() if sum_ > before.get(name, 0.0))
            before = terms
            if gained or timesteps == len(actions):
                found.append(Gain(timesteps, gained, self._seen()))
        return found

    def emulator_state(self, record: CellRecord) -> bytes:
        """Return the emulator's state at the end of the way to a cell, with a picture.

        Raises:
            UsageError: the episode ends there.
            ReplayError: the way does not lead there.
        """
        if record.state:
            self.env.load_state(unpacked(record.state))
        else:  # it was dropped
            self.gains(record.way.whole())
        if not self.env.episode.running:
            raise UsageError(
                f"in cell {record.number:,}, the episode has ended, so none can start there; "
                "choose another cell"
            )
        if self._cell() != record.cell:
            raise ReplayError(
                f"the route to cell {record.number:,} no longer leads there; the game file, "
                "game_rl or PyBoy has changed since it was found: explore again"
            )
        return self.env.emulator.save_state()

    def screen(self, state: bytes) -> Screen:
        """Return what a packed state shows."""
        self.env.load_state(unpacked(state))
        return self._seen()

    def map_screen(self, state: bytes) -> MapScreen | None:
        """Return what a packed state shows of a map; None if it shows none."""
        definition = self.env.game.definition
        shown = definition.place_screen
        assert shown is not None
        assert definition.place is not None
        self.env.load_state(unpacked(state))
        emulator = self.env.emulator
        try:
            emulator.tick(1, render=True)
        except LockUpError:
            return None
        values = self.env.read_variables()  # of the moment that is drawn
        place = tuple(as_tuple(values[name])[0] for name in definition.place)
        at = shown.shown_at(place, values)
        if at is None:
            return None
        crop = shown.crop
        screen = emulator.screen()
        part = screen[crop.top : crop.top + crop.height, crop.left : crop.left + crop.width]
        return MapScreen(tuple(map(whole, place[:-2])), *at, part.copy())

    def _seen(self) -> Screen:
        draws = self.env.draws
        self.env.draws = False
        picture = self.env.render()
        self.env.draws = draws
        return picture

    def _cell(self) -> Cell:
        if not self._settings.cell:
            return screen_cell(self.env.emulator.screen())
        return self._values_of(self.env.episode.values)

    def _kept(self) -> tuple[float, ...]:
        values = self.env.episode.values
        return tuple(float(values[name]) for name in self._settings.prefer)

    def _earned(self) -> dict[str, float]:
        """Return the sum of each reward term that the episode has earned; pictures earn none."""
        if not self._settings.cell:
            return {}
        return {name: total for name, total in self.env.reward_terms.items() if total > 0}

    def _score(self) -> CellScore:
        reward = sum(self.env.reward_terms.values()) if self._settings.cell else 0.0
        return CellScore(reward, self._kept(), -self.env.episode.timesteps)

    def close(self) -> None:
        self.env.close()
