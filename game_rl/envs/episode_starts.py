"""Where an episode begins, and the cache of start states."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from game_rl.emulator.emulator import Emulator
from game_rl.errors import LockUpError, UsageError
from game_rl.games.definition import Game, unknown_name
from game_rl.games.start_states import make_start_state

_MOST_BEGINNINGS = 16  # if half of them lock up, 65,535 of 65,536 episodes still begin


class EpisodeStarts:
    """Draws the beginning of an episode and brings the emulator there.

    Args:
        emulator: an emulator that was just switched on; the caller still owns it.
        names: start states to begin from, all equally likely; None for all of the game's.
        max_idle_frames: an episode begins after 0 to this many frames without a button.

    Attributes:
        names: the start states to begin from.
        seed_variable: the variable that gets a random value; None if there is none.
    """

    def __init__(
        self,
        emulator: Emulator,
        game: Game,
        *,
        names: Sequence[str] | None,
        max_idle_frames: int,
    ) -> None:
        self._emulator = emulator
        self._title = game.name
        self._known = game.definition.start_states
        self.names = chosen_start_states(names, game)
        self.max_idle_frames = max_idle_frames
        self._states = StartStateCache(emulator, game)
        seed = game.definition.random_seed
        self.seed_variable = next((v for v in game.variables if v.name == seed), None)

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

        `options` may fix "start_state" and "idle_frames". All numbers are drawn regardless, so an
        option does not change later episodes.
        """
        drawn = int(random.integers(len(self.names)))
        idle_frames = int(random.integers(self.max_idle_frames + 1))
        game_seed = int(random.integers(2**32))
        idle_frames = int(options.get("idle_frames", idle_frames))
        name = str(options.get("start_state", self.names[drawn]))
        if name not in self._known:
            raise UsageError(unknown_name(name, "start state", self._known, of=self._title))
        self.bring(name, game_seed=game_seed, idle_frames=idle_frames)
        return name

    def bring(self, name: str, *, game_seed: int, idle_frames: int) -> None:
        """Bring the emulator to this beginning."""
        self._emulator.load_state(self._states.state(name))
        if self.seed_variable is not None:
            self.seed_variable.write(self._emulator, game_seed)
        if idle_frames:
            self._emulator.tick(idle_frames, render=True)


def chosen_start_states(names: Sequence[str] | None, game: Game) -> tuple[str, ...]:
    """Return `names`, or all start states of the game; raise UsageError for an unknown name."""
    known = game.definition.start_states
    if names is None:
        return tuple(known)
    for name in names:
        if name not in known:
            raise UsageError(unknown_name(name, "start state", known, of=game.name))
    if not names:
        raise UsageError("start_states is empty; name at least one, or none to use them all")
    return tuple(names)


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
        place = str(self._game.folder.resolve()) if spec.file is not None else ""
        key = (self._game.rom.sha256, self._emulator.is_colour, spec.model_dump_json(), place)

        def make() -> bytes:
            return make_start_state(
                self._emulator, name, spec, power_on=self._power_on, folder=self._game.folder
            )

        return _made_once(key, make)


def _made_once(key: _Key, make: Callable[[], bytes]) -> bytes:
    if key not in _made:
        _made[key] = make()
    return _made[key]
