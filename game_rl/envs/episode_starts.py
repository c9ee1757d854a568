"""How episodes begin: in which start state, after how many frames, with which luck."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from game_rl.emulator.emulator import Emulator
from game_rl.envs.start_state_cache import StartStateCache
from game_rl.errors import LockUpError, UsageError
from game_rl.games.definition import Game, unknown_name

_MOST_BEGINNINGS = 16  # of one episode: where half of them lock up, 65,535 of 65,536 episodes begin


class EpisodeStarts:
    """Draws the beginning of an episode and brings the emulator there.

    Args:
        emulator: just switched on; it stays its owner's.
        names: start states to begin from, each as often; None for all of the game's.
        max_idle_frames: an episode begins after 0 to this many frames without a button.
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
        self._names = chosen_start_states(names, game)
        self._max_idle_frames = max_idle_frames
        self._states = StartStateCache(emulator, game)
        seed = game.definition.random_seed
        self._seed_variable = next((v for v in game.variables if v.name == seed), None)

    def begin_alive(self, random: np.random.Generator, options: Mapping[str, Any]) -> str:
        """As `begin`, again where the game locks up, with all that `options` leaves open anew.

        Raises:
            LockUpError: all of several beginnings lock up.
        """
        for _ in range(_MOST_BEGINNINGS):
            try:
                return self.begin(random, options)
            except LockUpError as error:
                last = error
        raise LockUpError(
            f"{self._title} locks up before the first timestep, in {_MOST_BEGINNINGS} beginnings "
            f"one after another; look at its start states with game-rl check-game, choose others "
            f"with env.start_states, or lower env.max_idle_frames. The last time: {last}"
        ) from last

    def begin(self, random: np.random.Generator, options: Mapping[str, Any]) -> str:
        """Go to a start state, whose name it returns.

        `options` may fix "start_state" and "idle_frames". All numbers are drawn all the same: an
        option leaves the later episodes as they were.
        """
        drawn = int(random.integers(len(self._names)))
        idle_frames = int(random.integers(self._max_idle_frames + 1))
        game_seed = int(random.integers(2**32))
        idle_frames = int(options.get("idle_frames", idle_frames))
        name = str(options.get("start_state", self._names[drawn]))
        if name not in self._known:
            raise UsageError(unknown_name(name, "start state", self._known, of=self._title))
        self._emulator.load_state(self._states.state(name))
        if self._seed_variable is not None:
            self._seed_variable.write(self._emulator, game_seed)
        if idle_frames:
            self._emulator.tick(idle_frames, render=True)
        return name


def chosen_start_states(names: Sequence[str] | None, game: Game) -> tuple[str, ...]:
    """`names`, or all that the game has; UsageError for one that it has not."""
    known = game.definition.start_states
    if names is None:
        return tuple(known)
    for name in names:
        if name not in known:
            raise UsageError(unknown_name(name, "start state", known, of=game.name))
    if not names:
        raise UsageError("start_states is empty; name at least one, or none to use them all")
    return tuple(names)
