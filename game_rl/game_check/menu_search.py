"""Gets from power-on through a game's menus: the shortest script after which the player can act.

Some ways of pressing START and A are followed side by side. After each press, each direction is
held for a while (`ButtonTrial`). The first moment at which a pair of opposite directions moves
something smoothly is in play; a cursor moves in steps. Where no way leads to such a moment, the one
counts in which the directions do most, as in a puzzle. The script that led there is then made
shorter: presses that it does not need are left out, and waits are cut down.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.emulator import Button, Emulator
from game_rl.errors import LockUpError
from game_rl.game_check.button_trial import DIRECTIONS, ButtonTrial, answers, try_buttons
from game_rl.game_check.sheets import Moment
from game_rl.games.start_state import ScriptStep, play_script

MOST_PRESSES = 120
"""Presses of each way through the menus: two minutes of play."""

_FIRST_WAIT = 60  # the logo takes longer
_PRESS_FRAMES = 4
_WAIT_FRAMES = 56  # between two presses
_WAYS: tuple[tuple[Button, ...], ...] = (
    ("start",),
    ("a",),
    ("start", "a"),
    ("a", "a", "start"),
)
_AT_RANDOM: tuple[Button, ...] = ("start", "a", "a", "down", "right", "b")
_PATIENCE = 15  # presses, to look for something better than the best that is playable
_STILL_PRESSES = 12  # after which a screen that has never changed will not
_LEAST_DIRECTIONS = 3  # that do different things; a list of a menu has two
_MOST_SCREENS = 24


class Pressed(NamedTuple):
    """A wait, and the button that is pressed after it."""

    wait: int
    button: Button


@dataclass(frozen=True)
class StartWay:
    """Presses from power-on, and a wait at the end."""

    presses: tuple[Pressed, ...]
    wait: int

    @property
    def frames(self) -> int:
        return sum(press.wait + _PRESS_FRAMES for press in self.presses) + self.wait

    @property
    def script(self) -> tuple[ScriptStep, ...]:
        """The way as a start state of game.yaml says it."""
        steps: list[ScriptStep] = []
        for press in self.presses:
            steps.append(ScriptStep(wait=press.wait))
            steps.append(ScriptStep(hold=(press.button,), frames=_PRESS_FRAMES))
        return (*steps, ScriptStep(wait=self.wait))


@dataclass(frozen=True)
class PlayableStart:
    """A way to a moment in which the player can act.

    Attributes:
        trial: what each button does from there.
        state: the emulator's state there.
        menus: states before each of the way's presses, such as that of the title.
    """

    way: StartWay
    trial: ButtonTrial = field(repr=False)
    state: bytes = field(repr=False)
    menus: tuple[bytes, ...] = field(repr=False)

    @property
    def is_smooth(self) -> bool:
        """Whether something moves as long as a direction is held; otherwise it may be a menu."""
        return self.trial.is_smooth


@dataclass(frozen=True)
class MenuSearchResult:
    """What a search has found.

    Attributes:
        start: None if no playable moment was found.
        screens: the screens on the way that got furthest, for a contact sheet.
        presses: how many presses were tried, over all ways.
        is_cut_off: whether the time was up first.
    """

    start: PlayableStart | None
    screens: tuple[Moment, ...] = field(repr=False)
    presses: int
    is_cut_off: bool


class MenuSearch:
    """Searches for a playable start with an emulator that has just been switched on.

    Args:
        emulator: it ends up in any state.
        seed: decides one of the ways, which presses at random.
        limit_s: seconds after which nothing further is tried.
        progress: is called with the presses tried and the most that may be.
    """

    def __init__(
        self,
        emulator: Emulator,
        *,
        seed: int,
        limit_s: float,
        progress: Callable[[int, int], None],
    ) -> None:
        self._emulator = emulator
        self._power_on = emulator.save_state()
        self._seed = seed
        self._ends_s = time.monotonic() + limit_s
        self._progress = progress
        self._presses = 0

    def run(self) -> MenuSearchResult:
        walkers = [_Walker(self._emulator, self._power_on, each) for each in self._buttons()]
        best: _Seen | None = None
        best_walker = walkers[0]
        best_number = 0
        is_smooth = False
        for number in range(MOST_PRESSES):
            for walker in walkers:
                self._presses += 1
                self._progress(self._presses, MOST_PRESSES * len(walkers))
                seen = walker.go_on()
                if seen is not None and (best is None or seen.rank > best.rank):
                    best = seen
                    best_walker = walker
                    best_number = number
                    is_smooth = seen.trial.is_smooth
            is_dead = number == _STILL_PRESSES and all(walker.is_still for walker in walkers)
            is_settled = best is not None and best.is_playable and number > best_number + _PATIENCE
            if is_smooth or is_dead or is_settled or self._is_over:
                break
        screens = best_walker.screens
        if best is None or not best.is_playable:
            return MenuSearchResult(None, screens, self._presses, self._is_over)
        start = self._shortest(best)
        return MenuSearchResult(start, screens, self._presses, self._is_over)

    @property
    def _is_over(self) -> bool:
        return time.monotonic() > self._ends_s

    def _buttons(self) -> Iterator[Iterator[Button]]:
        for way in _WAYS:
            yield itertools.cycle(way)
        rng = np.random.default_rng(self._seed)
        yield (_AT_RANDOM[rng.integers(len(_AT_RANDOM))] for _ in itertools.count())

    # --- a shorter script ---

    def _shortest(self, seen: "_Seen") -> PlayableStart:
        way = self._with_fewer_presses(seen)
        for index in range(len(way.presses)):
            way = self._with_shorter_wait(way, index, seen)
        usual_end = replace(way, wait=_WAIT_FRAMES)
        if seen.trial.is_smooth:
            way = self._with_shorter_end(way, seen)
        elif way.wait > _WAIT_FRAMES and self._leads_to(usual_end, seen):
            way = usual_end  # what a puzzle draws slowly is drawn by then
        menus = []
        for index in range(len(way.presses)):
            before = StartWay(way.presses[:index], way.presses[index].wait)
            menus.append(self._brought(before))
        state = self._brought(way)
        return PlayableStart(way, try_buttons(self._emulator, state), state, tuple(menus))

    def _with_fewer_presses(self, seen: "_Seen") -> StartWay:
        """Leave out presses, many at once at first, as long as the way leads to the same play."""
        way = seen.way
        n = len(way.presses)
        while n >= 1:
            index = len(way.presses) - n
            while index >= 0:
                shorter = _without(way, index, n)
                if self._leads_to(shorter, seen):
                    way = shorter
                index -= n
            n //= 2
        return way

    def _with_shorter_wait(self, way: StartWay, index: int, seen: "_Seen") -> StartWay:
        """Press as early as leads to the same play, found by halving."""
        works = way.presses[index].wait
        fails = 0
        while works - fails > 1:
            wait = (works + fails) // 2
            if self._leads_to(_with_wait(way, index, wait), seen):
                works = wait
            else:
                fails = wait
        return _with_wait(way, index, works)

    def _with_shorter_end(self, way: StartWay, seen: "_Seen") -> StartWay:
        """End the way at the first frame from which buttons are obeyed as soon as later on."""
        usual = max(self._delay(replace(way, wait=way.wait + n), seen) for n in range(3))
        works = way.wait
        fails = 0
        while works - fails > 1:
            wait = (works + fails) // 2
            shorter = replace(way, wait=wait)
            if self._delay(shorter, seen) <= usual and self._leads_to(shorter, seen):
                works = wait
            else:
                fails = wait
        return replace(way, wait=works + self._blank_frames(replace(way, wait=works)))

    def _blank_frames(self, way: StartWay) -> int:
        """Return frames until the screen shows something, which a menu may have cleared."""
        self._brought(way)
        for frames in range(_WAIT_FRAMES):
            if np.ptp(self._emulator.screen()) > 0:
                return frames
            self._emulator.tick(1, render=True)
        return 0

    def _brought(self, way: StartWay) -> bytes:
        self._emulator.load_state(self._power_on)
        play_script(self._emulator, way.script)
        return self._emulator.save_state()

    def _leads_to(self, way: StartWay, seen: "_Seen") -> bool:
        """Whether the way ends where the same bytes obey, and as smoothly."""
        if self._is_over:
            return False
        try:
            trial = try_buttons(self._emulator, self._brought(way))
        except LockUpError:
            return False
        if seen.trial.is_smooth:
            return trial.is_smooth and _smooth(trial) & _smooth(seen.trial) != set()
        shared = len(trial.changed & seen.trial.changed)
        is_same = shared > _LEAST_SHARED * len(trial.changed | seen.trial.changed)
        return is_same and trial.n_directions >= seen.trial.n_directions

    def _delay(self, way: StartWay, seen: "_Seen") -> int:
        """Return frames until a held direction shows in memory where it has an effect later."""
        state = self._brought(way)
        addresses = sorted(_smooth(seen.trial) or seen.trial.changed)
        idle = list(self._memory(state, None, addresses))
        found = _LONGEST_DELAY_FRAMES
        for button in (button for pair in DIRECTIONS for button in pair):
            held = self._memory(state, button, addresses)
            differs = (frame for frame, now in enumerate(held) if now != idle[frame])
            found = min(found, next(differs, found))
        return found

    def _memory(
        self, state: bytes, button: Button | None, addresses: Sequence[int]
    ) -> Iterator[list[int]]:
        self._emulator.load_state(state)
        self._emulator.hold(() if button is None else (button,))
        for _ in range(_LONGEST_DELAY_FRAMES):
            self._emulator.tick(1, render=False)
            yield [self._emulator.read(address) for address in addresses]


_LONGEST_DELAY_FRAMES = 64
_LEAST_SHARED = 0.5  # of the bytes that directions change


@dataclass(frozen=True)
class _Seen:
    """A moment on a way, and what buttons do there."""

    way: StartWay
    trial: ButtonTrial

    @property
    def is_playable(self) -> bool:
        has_pair = any(byte.is_two_way for byte in self.trial.moving)
        return has_pair or self.trial.n_directions >= _LEAST_DIRECTIONS

    @property
    def rank(self) -> tuple[bool, bool, bool, int]:
        """What is larger is rather in play; a moment must be better than one before it."""
        has_pair = any(byte.is_two_way for byte in self.trial.moving)
        n_directions = self.trial.n_directions
        return self.trial.is_smooth, n_directions >= _LEAST_DIRECTIONS, has_pair, n_directions


class _Walker:
    """Follows one way: presses a button, waits, looks, and goes on from there."""

    def __init__(self, emulator: Emulator, power_on: bytes, buttons: Iterator[Button]) -> None:
        self._emulator = emulator
        self._buttons = buttons
        self._way = StartWay((), _FIRST_WAIT)
        self._state = power_on
        self._is_stuck = False
        self._screens: list[Moment] = []

    @property
    def screens(self) -> tuple[Moment, ...]:
        return tuple(self._screens)

    @property
    def is_still(self) -> bool:
        """Whether the game has locked up, or its screen has never changed."""
        first, *others = [moment.screen for moment in self._screens]
        return self._is_stuck or all(np.array_equal(first, other) for other in others)

    def go_on(self) -> _Seen | None:
        """Press the next button and try what all do then; None if the directions do nothing."""
        if self._is_stuck:
            return None
        emulator = self._emulator
        emulator.load_state(self._state)
        press = Pressed(self._way.wait, next(self._buttons))
        is_first = not self._way.presses
        try:
            if is_first:
                emulator.tick(press.wait, render=True)
            emulator.hold((press.button,))
            emulator.tick(_PRESS_FRAMES, render=False)
            emulator.hold(())
            emulator.tick(_WAIT_FRAMES, render=True)
            self._way = StartWay((*self._way.presses, press), _WAIT_FRAMES)
            self._state = emulator.save_state()
            self._look(press.button)
            if not answers(emulator, self._state):
                return None
            return _Seen(self._way, try_buttons(emulator, self._state))
        except LockUpError:
            self._is_stuck = True
            return None

    def _look(self, button: Button) -> None:
        screen: NDArray[np.uint8] = self._emulator.screen().copy()
        if len(self._screens) < _MOST_SCREENS:
            self._screens.append(Moment(f"{self._way.frames:,}: {button}", screen))


def _smooth(trial: ButtonTrial) -> set[int]:
    return {byte.address for byte in trial.moving if byte.is_smooth and byte.is_two_way} or {
        byte.address for byte in trial.moving if byte.is_smooth
    }


def _without(way: StartWay, index: int, n: int) -> StartWay:
    """Return the way without some presses, whose frames are waited for."""
    left_out = way.presses[index : index + n]
    frames = sum(press.wait + _PRESS_FRAMES for press in left_out)
    before = way.presses[:index]
    after = way.presses[index + n :]
    if not after:
        return StartWay(before, way.wait + frames)
    first = Pressed(after[0].wait + frames, after[0].button)
    return StartWay((*before, first, *after[1:]), way.wait)


def _with_wait(way: StartWay, index: int, wait: int) -> StartWay:
    presses = list(way.presses)
    presses[index] = Pressed(wait, presses[index].button)
    return StartWay(tuple(presses), way.wait)
