"""Plays the actions of a game: one timestep's frames with their buttons."""

from typing import SupportsInt

from numpy.random import Generator

from game_rl.emulator.emulator import Emulator
from game_rl.errors import UsageError
from game_rl.games.actions import frame_skip_problem, presses_of
from game_rl.games.definition import Game


class ActionPlayer:
    """Plays the timesteps of an env.

    Args:
        frame_skip: frames per timestep.
        sticky_actions: probability that a timestep repeats the action of the one before.

    Attributes:
        n_actions: number of the game's actions.
        last: the action that the last timestep of the episode played; None before the first one,
            and where no action is repeated.

    Raises:
        UsageError: an action of the game does not fit into a timestep.
    """

    def __init__(
        self, emulator: Emulator, game: Game, frame_skip: int, sticky_actions: float
    ) -> None:
        check_frame_skip(frame_skip, game)
        self._emulator, self._game = emulator, game
        actions = game.definition.actions.values()
        self._presses = tuple(presses_of(action, frame_skip) for action in actions)
        self.n_actions = len(self._presses)
        self._sticky_actions = sticky_actions
        self.last: int | None = None

    def play(self, action: SupportsInt, random: Generator, *, render: bool = True) -> None:
        """Play an action, or the last one again; `render` draws the last frame.

        Raises:
            LockUpError: the game has locked up the CPU.
            UsageError: there is no such action.
        """
        index = self._valid(action)
        if self._sticky_actions:  # without, nothing is drawn
            if self.last is not None and random.random() < self._sticky_actions:
                index = self.last
            self.last = index
        self._emulator.play(self._presses[index], render=render)

    def _valid(self, action: SupportsInt) -> int:
        index = int(action)
        if not 0 <= index < self.n_actions:
            raise UsageError(
                f"action {index} does not exist; {self._game.name} has 0 to "
                f"{self.n_actions - 1}: {', '.join(self._game.action_names)}"
            )
        return index


def check_frame_skip(frame_skip: int, game: Game) -> None:
    """Check that the game's actions fit into a timestep.

    Raises:
        UsageError: one does not.
    """
    problem = frame_skip_problem(game.definition.actions, frame_skip)
    if problem is not None:
        raise UsageError(problem)
