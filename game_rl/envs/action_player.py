"""Plays the actions of a game: one timestep's frames with their buttons."""

from collections.abc import Iterator, Sequence
from typing import SupportsInt

from numpy.random import Generator

from game_rl.emulator.emulator import Button, Emulator, Press
from game_rl.errors import UsageError
from game_rl.games.actions import PRESS_FRAMES, StepWait, frame_skip_problem, presses_of
from game_rl.games.definition import Game
from game_rl.games.variables import Values, VariableReader

WAITED_FRAMES = "waited_frames"
"""Key of a timestep's `info`: the frames that it played on after its action, if there were any."""


class ActionPlayer:
    """Plays the timesteps of an env.

    Args:
        frame_skip: frames per timestep, to which those of the game's `step` are added.
        sticky_actions: probability that a timestep repeats the action of the one before.

    Attributes:
        draws: whether each timestep draws its last frame, whatever `render` says.
        instead: buttons that the next timestep plays in place of its action, without the game's
            `step`, as a person held them; empty if they are already played. None: the action.
        n_actions: number of the game's actions.
        frame_skip: frames per timestep.
        last: the action that the last timestep of the episode played; None before the first one,
            and where no action is repeated.
        played: the action that the last timestep played.
        waited_frames: frames that the last timestep has played on after its action.

    Raises:
        UsageError: an action of the game does not fit into a timestep.
    """

    def __init__(
        self, emulator: Emulator, game: Game, frame_skip: int, sticky_actions: float
    ) -> None:
        check_frame_skip(frame_skip, game)
        self._emulator = emulator
        self._game = game
        actions = game.definition.actions.values()
        self.frame_skip = frame_skip
        self._presses = tuple(presses_of(action, frame_skip) for action in actions)
        self.n_actions = len(self._presses)
        self._sticky_actions = sticky_actions
        self.draws = False
        self.instead: Sequence[Press] | None = None
        self.last: int | None = None
        self.played = self.waited_frames = 0
        step = game.definition.step
        self._wait = None if step is None else _Wait(emulator, game, step)

    def play(self, action: SupportsInt, random: Generator, *, render: bool = True) -> None:
        """Play an action, or the last one again, then play on; `render` draws the last frame.

        Raises:
            LockUpError: the game has locked up the CPU.
            UsageError: there is no such action.
        """
        index = int(action)
        if not 0 <= index < self.n_actions:
            raise UsageError(
                f"action {index} does not exist; {self._game.name} has 0 to "
                f"{self.n_actions - 1}: {', '.join(self._game.action_names)}"
            )
        render = render or self.draws
        if self._sticky_actions:  # without, nothing is drawn
            if self.last is not None and random.random() < self._sticky_actions:
                index = self.last
            self.last = index
        self.played = index
        self.waited_frames = 0
        if self.instead is not None:
            presses = self.instead
            self.instead = None
            if presses:
                self._emulator.play(presses, render=render)
            return
        if self._wait is not None:
            self._wait.begin()
        self._emulator.play(self._presses[index], render=render)
        if self._wait is not None:
            for frames in self._wait.play(render=render):
                self.waited_frames += frames


class _Wait:
    """Plays on until the game's condition holds."""

    def __init__(self, emulator: Emulator, game: Game, step: StepWait) -> None:
        self._emulator = emulator
        self._step = step
        names = {name for _, name in step.until.references()}
        specs = game.definition.variables
        self._reader = VariableReader(game.variables, specs, names)
        self._compares = any(part.is_change for _, part in step.until.parts())
        self._before: Values | None = None

    def begin(self) -> None:
        """Begin a timestep."""
        if self._compares:
            self._before = self._reader.read(self._emulator)

    def play(self, *, render: bool) -> Iterator[int]:
        """Play on after the timestep's action, and yield the frames of each part once played."""
        press = self._step.press
        left = self._step.at_most_frames
        up = 0  # frames since a button was held
        until = self._step.until
        while left and not until.holds(self._reader.read(self._emulator), self._before):
            if press and up >= PRESS_FRAMES and left > PRESS_FRAMES:
                yield self._tick(press, PRESS_FRAMES, render=render)
                left = left - PRESS_FRAMES
                up = 0
            yield self._tick((), 1, render=render)
            left = left - 1
            up = up + 1

    def _tick(self, buttons: tuple[Button, ...], frames: int, *, render: bool) -> int:
        self._emulator.hold(buttons)
        self._emulator.tick(frames, render=render)
        return frames


def check_frame_skip(frame_skip: int, game: Game) -> None:
    """Check that the game's actions fit into a timestep.

    Raises:
        UsageError: one does not.
    """
    problem = frame_skip_problem(game.definition.actions, frame_skip)
    if problem is not None:
        raise UsageError(problem)
