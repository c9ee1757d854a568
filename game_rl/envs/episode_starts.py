"""Where an episode begins, with a cache of start states."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from gymnasium.utils.seeding import np_random
from numpy.typing import NDArray

from game_rl.config.schema import EnvConfig
from game_rl.emulator.emulator import Emulator
from game_rl.errors import LockUpError, UsageError
from game_rl.files.saved import Blob
from game_rl.games.definition import Game, unknown_name
from game_rl.games.start_state import make_start_state, set_variable
from game_rl.games.variables import Variable

ChosenStarts = Sequence[str] | Mapping[str, float]
"""Names of start states, or the names with the weights by which they are drawn."""

_OPTIONS = ("start_state", "idle_frames", "game_seed")  # of a reset
MOST_IDLE_FRAMES = 100_000
"""Of a beginning: half an hour of the game."""
_MOST_BEGINNINGS = 16  # if half of them lock up, 65,535 of 65,536 episodes still begin


@dataclass(frozen=True, slots=True)
class PoolBeginning:
    """A state of a pool, in which an episode may begin.

    Attributes:
        number: its number, which no other state of the pool ever has.
        state: the emulator's state.
        start_state: the start state from which it was reached; what that holds stays held.
        reward, timesteps: earned and played on the way to it.
    """

    number: int
    state: Blob
    start_state: str
    reward: float
    timesteps: int


@dataclass(frozen=True, slots=True)
class PoolDraw:
    """How episodes begin in a pool.

    Attributes:
        share: probability that an episode begins in it.
        numbers: its states.
        bounds: where the part of each state of 0..1 ends; float64, the last one is 1.
        furthest: states in one of which the next episode begins, whatever is drawn, unless one has
            begun in a state with as high a reward; empty: there is no such rule.
    """

    share: float
    numbers: Sequence[int]
    bounds: NDArray[np.float64]
    furthest: Sequence[int] = ()


def pool_draw(
    share: float,
    numbers: Sequence[int],
    weights: Sequence[float],
    furthest: Sequence[int] = (),
) -> PoolDraw:
    """Return the draw of these states, each with a weight that is not negative, one above 0."""
    sums = np.cumsum(np.asarray(weights, np.float64))
    return PoolDraw(share, tuple(numbers), sums / sums[-1], tuple(furthest))


@dataclass(slots=True)
class StartPool:
    """The pool from which an env draws, beside its start states.

    Attributes:
        draw: how it draws; None: it does not.
        states: by number.
        reached: the highest reward of a state in which an episode has begun; None: there was none.
    """

    draw: PoolDraw | None = None
    states: dict[int, PoolBeginning] = field(default_factory=dict)
    reached: float | None = None

    def drawn(self, random: np.random.Generator) -> PoolBeginning | None:
        """Draw a state; None for a start state. Two numbers are drawn, or none without `draw`."""
        draw = self.draw
        if draw is None:
            return None
        is_from_pool = random.random() < draw.share
        point = random.random()
        if draw.furthest:
            first = self.states[draw.furthest[0]]
            if self.reached is None or self.reached < first.reward:
                return self.states[draw.furthest[int(point * len(draw.furthest))]]
        if not is_from_pool:
            return None
        return self.states[draw.numbers[int(np.searchsorted(draw.bounds, point, side="right"))]]

    def begin(self, state: PoolBeginning) -> None:
        """Note that an episode begins in a state."""
        self.reached = state.reward if self.reached is None else max(self.reached, state.reward)


class EpisodeStarts:
    """Draws the beginning of an episode and brings the emulator there.

    Args:
        emulator: an emulator that was just switched on; the caller still owns it.
        config: the start states to begin from, and the most frames without a button.

    Attributes:
        emulator: the emulator, which the caller owns.
        names: the start states to begin from.
        draws: whether the last frame of the beginning is drawn.
        idle_frames, game_seed: those of the last beginning.
        seed_variable: the variable that gets a random value; None if there is none.
        pool: states in which episodes begin, too; empty unless somebody fills it.
        begun: the state of the pool in which the last episode began; None: in a start state.
    """

    def __init__(self, emulator: Emulator, game: Game, config: EnvConfig) -> None:
        chosen = config.start_states
        self.emulator = emulator
        self.draws = True
        self._title = game.name
        self._known = game.definition.start_states
        self.names = chosen_start_states(chosen, game)
        self._bounds = _bounds(chosen, self.names)
        self.max_idle_frames = config.max_idle_frames
        self._states = StartStateCache(emulator, game)
        seed = game.definition.random_seed
        numbers = (v for v in game.variables if isinstance(v, Variable))
        self.seed_variable = next((v for v in numbers if v.name == seed), None)
        self._written = _values_by_start(game, "write")
        self._held = _values_by_start(game, "hold_values")
        self._written_in_pool = pool_values(game, config)
        self.idle_frames = self.game_seed = 0
        self.pool = StartPool()
        self.begun: PoolBeginning | None = None

    def begin_alive(self, random: np.random.Generator, options: Mapping[str, Any]) -> str:
        """Call `begin`, again with new draws for what `options` leave open if the game locks up.

        Raises:
            LockUpError: the game locked up at every attempt.
        """
        for _ in range(_MOST_BEGINNINGS):
            try:
                return self.begin(random, options)
            except LockUpError as error:
                last = error
        raise LockUpError(
            f"{self._title} locks up before the first timestep: it did so at {_MOST_BEGINNINGS} "
            f"attempts in a row; look at its start states with game-rl check-game, choose others "
            f"with env.start_states, or lower env.max_idle_frames. The last error: {last}"
        ) from last

    def begin(self, random: np.random.Generator, options: Mapping[str, Any]) -> str:
        """Bring the emulator to the beginning of an episode; return the start state's name.

        If it begins in a state of the pool, the name is of the start state that led there. With
        "start_state" in `options`, it does not. They may also fix "idle_frames" and "game_seed".
        All numbers are drawn regardless, so an option does not change later episodes.

        Raises:
            UsageError: an option is unknown, or cannot have its value.
        """
        drawn = _draw(random, len(self.names), self._bounds, self.max_idle_frames)
        pooled = self.pool.drawn(random)
        for option in options:
            if option not in _OPTIONS:
                raise UsageError(unknown_name(str(option), "option", _OPTIONS, of="reset"))
        idle_frames = _whole(options, "idle_frames", drawn.idle_frames, most=MOST_IDLE_FRAMES)
        game_seed = _whole(options, "game_seed", drawn.game_seed, most=2**32 - 1)
        self.begun = None
        if pooled is not None and "start_state" not in options:
            self.begun = pooled
            self.pool.begin(pooled)
            name = pooled.start_state
            self.bring_to(pooled, game_seed=game_seed, idle_frames=idle_frames)
        else:
            name = str(options.get("start_state", self.names[drawn.start]))
            if name not in self._known:
                raise UsageError(unknown_name(name, "start state", self._known, of=self._title))
            self.bring(name, game_seed=game_seed, idle_frames=idle_frames)
        self.idle_frames = idle_frames
        self.game_seed = game_seed
        return name

    def bring(self, name: str, *, game_seed: int, idle_frames: int) -> None:
        """Bring the emulator to this beginning."""
        self.emulator.load_state(self._states.state(name))
        for variable, value in self._written.get(name, ()):
            set_variable(self.emulator, variable, value)
        self._begin_from(name, game_seed=game_seed, idle_frames=idle_frames)

    def bring_to(self, state: PoolBeginning, *, game_seed: int, idle_frames: int) -> None:
        """Bring the emulator to a beginning in a state of a pool, at least one frame after it.

        The picture of a state is black if nothing was drawn where it was saved.
        """
        self.emulator.load_state(state.state)
        for variable, value in self._written_in_pool:
            set_variable(self.emulator, variable, value)
        self._begin_from(state.start_state, game_seed=game_seed, idle_frames=max(1, idle_frames))

    def _begin_from(self, name: str, *, game_seed: int, idle_frames: int) -> None:
        if self.seed_variable is not None:
            self.seed_variable.write(self.emulator, game_seed)
        self.hold_values(name)
        if idle_frames:
            self.emulator.tick(idle_frames, render=self.draws)
            self.hold_values(name)

    def hold_values(self, name: str) -> None:
        """Set the variables that this start state holds; called after each timestep."""
        for variable, value in self._held.get(name, ()):
            set_variable(self.emulator, variable, value)

    def unkept(self, name: str) -> Iterator[str]:
        """Bring the emulator to this start state; yield what is set there and does not stay."""
        self.emulator.load_state(self._states.state(name))
        for section, values in (("write", self._written), ("hold_values", self._held)):
            for variable, value in values.get(name, ()):
                set_variable(self.emulator, variable, value)
                found = variable.read(self.emulator)
                if found != value:
                    yield (
                        f"start_states.{name}.{section}.{variable.name}: 0x{variable.address:04X} "
                        f"does not keep {value:,}, it is {found:,} immediately; choose a variable "
                        "that the game keeps in RAM"
                    )


class DrawnBeginning(NamedTuple):
    """Numbers that are drawn for a beginning.

    Attributes:
        start: index among the start states to begin from.
    """

    start: int
    idle_frames: int
    game_seed: int


def first_beginning(game: Game, config: EnvConfig, *, seed: int) -> DrawnBeginning:
    """Return what an env draws at a reset with this seed."""
    names = chosen_start_states(config.start_states, game)
    random, _ = np_random(seed)
    return _draw(random, len(names), _bounds(config.start_states, names), config.max_idle_frames)


def _draw(
    random: np.random.Generator,
    n_starts: int,
    bounds: NDArray[np.float64] | None,
    max_idle_frames: int,
) -> DrawnBeginning:
    if bounds is None:
        start = int(random.integers(n_starts))
    else:
        start = int(np.searchsorted(bounds, random.random(), side="right"))
    idle_frames = int(random.integers(max_idle_frames + 1))
    game_seed = int(random.integers(2**32))
    return DrawnBeginning(start, idle_frames, game_seed)


def _bounds(chosen: ChosenStarts | None, names: Sequence[str]) -> NDArray[np.float64] | None:
    """Return where each start state's part of 0..1 ends, but the last; None: all are equal."""
    if not isinstance(chosen, Mapping):
        return None
    sums = np.cumsum([chosen[name] for name in names], dtype=np.float64)
    bounds: NDArray[np.float64] = sums[:-1] / sums[-1]
    return bounds


def _whole(options: Mapping[str, Any], name: str, default: int, *, most: int) -> int:
    """Return an option of a reset that is a whole number from 0 to `most`."""
    found = options.get(name, default)
    value = -1
    if not isinstance(found, bool | np.bool_):
        with suppress(TypeError):
            value = operator.index(found)
    if not 0 <= value <= most:
        raise UsageError(
            f"option {name} of reset is {found!r}; give a whole number from 0 to {most:,}"
        )
    return value


def chosen_start_states(chosen: ChosenStarts | None, game: Game) -> tuple[str, ...]:
    """Return the names of `chosen`, or of all start states of the game.

    Names with weights come sorted: two mappings that are equal draw the same.

    Raises:
        UsageError: the game has no such start state, or none is chosen.
    """
    known = game.definition.start_states
    if chosen is None:
        return tuple(known)
    for name in chosen:
        if name not in known:
            raise UsageError(unknown_name(name, "start state", known, of=game.name))
    if not chosen:
        raise UsageError("start_states is empty; name at least one, or none to use them all")
    return tuple(sorted(chosen)) if isinstance(chosen, Mapping) else tuple(chosen)


def game_changes(game: Game, config: EnvConfig) -> tuple[str, ...]:
    """Say in words how the start states of a run change the game: `write` and `hold_values`."""
    words = {name: spec.in_words for name, spec in game.starts_of(config).items()}
    return tuple(f"start state {name}: {text}" for name, text in words.items() if text)


_Values = tuple[tuple[Variable, int], ...]


def _values_by_start(game: Game, section: Literal["write", "hold_values"]) -> Mapping[str, _Values]:
    """Return the variables that each start state sets, if it sets any, with their values."""
    found = {
        name: _values(game, getattr(spec, section))
        for name, spec in game.definition.start_states.items()
    }
    return {name: values for name, values in found.items() if values}


def pool_values(game: Game, config: EnvConfig) -> _Values:
    """Return the variables that are set when an episode begins in the pool, with their values.

    Raises:
        UsageError: there is no such variable in memory, or it cannot have the value.
    """
    if config.pool is None:
        return ()
    known = [v.name for v in game.variables if isinstance(v, Variable)]
    for name in config.pool.write:
        if name not in known:
            fault = unknown_name(name, "variable in memory", known, of=game.name)
            raise UsageError(f"env.pool.write: {fault}")
    values = _values(game, config.pool.write)
    for variable, value in values:
        try:
            variable.encode(value)
        except ValueError as error:
            raise UsageError(f"env.pool.write.{variable.name}: {error}") from None
    return values


def _values(game: Game, values: Mapping[str, int]) -> _Values:
    variables = {v.name: v for v in game.variables if isinstance(v, Variable)}
    return tuple((variables[name], value) for name, value in values.items())


_Key = tuple[str, bool, str, str]
_made: dict[_Key, bytes] = {}


class StartStateCache:
    """The start states of a game, each made on first use.

    Playing a script from power-on takes 0.1 s or more. The resulting state is a pure function of
    the ROM, the hardware and the start state, so all envs of a process share it, and the state at
    power-on as well.
    """

    def __init__(self, emulator: Emulator, game: Game) -> None:
        """Make a cache for an emulator just switched on; scripts begin from its present state."""
        self._emulator = emulator
        self._game = game
        key = (game.rom.sha256, emulator.is_colour, "", "")
        self._power_on = _made_once(key, emulator.save_state)

    def state(self, name: str) -> bytes:
        """Return the state to load; the emulator may end up in any state."""
        spec = self._game.definition.start_states[name]
        has_file = spec.file is not None or spec.battery is not None
        place = str(self._game.folder.resolve()) if has_file else ""
        made_from = spec.model_dump_json(exclude={"write", "hold_values"})
        key = (self._game.rom.sha256, self._emulator.is_colour, made_from, place)

        def make() -> bytes:
            return make_start_state(
                self._emulator,
                name,
                spec,
                rom=self._game.rom,
                power_on=self._power_on,
                folder=self._game.folder,
            )

        return _made_once(key, make)


def _made_once(key: _Key, make: Callable[[], bytes]) -> bytes:
    if key not in _made:
        _made[key] = make()
    return _made[key]
