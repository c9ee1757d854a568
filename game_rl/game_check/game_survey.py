"""What is found out about an unknown game from its start on: buttons, places, an ending, a bar.

Random play is sampled and, every few seconds, it is tried whether a direction still changes the
screen. Where none does for a long time, the episode is over.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.emulator import SCREEN_HEIGHT, SCREEN_WIDTH, Button, Emulator
from game_rl.errors import LockUpError
from game_rl.game_check.button_pace import ButtonPace, pace_of
from game_rl.game_check.button_trial import (
    ADDRESSES,
    DIRECTIONS,
    TRIED,
    USUAL_STACK,
    ButtonTrial,
    MovingByte,
    answers,
    read_memory,
    screen_digest,
    try_buttons,
)
from game_rl.game_check.menu_search import PlayableStart
from game_rl.game_check.sheets import Moment

_EPISODES = 6
_EPISODE_FRAMES = 14_400  # four minutes
_FRAMES_A_SAMPLE = 48
_PRESSES = (12, 28, 8)  # frames of the buttons between two samples
_SAMPLES_A_LOOK = 6  # every five seconds: whether a direction does anything
_LOOKS_WITHOUT_ANSWER = 3
_TRIALS = 10  # of single buttons, in later moments
_TAP_FRAMES = 4
_LONG_PRESS_FRAMES = 40
_TAP_TRIAL_FRAMES = 60
_BANKED = range(0xD000, 0xE000)  # in a colour game
_PACED_STATES = 3  # besides the start
_LEAST_SILENT = 3
_SILENT_SHARE = 0.1
_MENU_FRAMES = 240
_SHOWN_MOMENTS = 11

_MOST_ENDING_VALUES = 3  # won, lost, drawn
_HIGHEST_FLAG = 8
_BESIDE = 8  # bytes

_LEAST_BAR_ROWS = 8
_MOST_BAR_ROWS = 48
_QUIET = 0.25  # of the change of other rows


@dataclass(frozen=True)
class PlacePart:
    """A variable that says where the player is, on one axis.

    Attributes:
        bank: of work RAM in a colour game; None for memory without banks.
        type: u8, or u16 if the next byte counts its overflows.
    """

    address: int
    bank: int | None
    type: str
    byte: MovingByte


@dataclass(frozen=True)
class FoundEnding:
    """A byte that has few values where no direction does anything any more, and others in play.

    Attributes:
        values: those of the byte when it is over.
        is_flag: whether it was 0 in play, so that any other value may be an ending.
        episodes: of random play, so many of which ended there.
        others: how many more bytes do the same.
        is_title: whether a screen from before the start came back.
    """

    address: int
    bank: int | None
    values: tuple[int, ...]
    is_flag: bool
    episodes: int
    others: int
    is_title: bool


@dataclass(frozen=True)
class StatusBar:
    """A band of rows of the screen that changes little while the others do."""

    top: int
    rows: int

    @property
    def rest(self) -> tuple[int, int]:
        """First row and number of rows of the rest of the screen."""
        return (self.rows, SCREEN_HEIGHT - self.rows) if self.top == 0 else (0, self.top)


@dataclass(frozen=True)
class Stretches:
    """Moments of random play, before the end, in which no direction did anything for 0.8 s.

    Attributes:
        n_silent: how many, of `n_looks` that were looked at.
        address, bank: of a byte that has `value` in all other moments and never in these; None if
            there is none.
        others: how many more bytes do the same.
    """

    n_looks: int
    n_silent: int
    address: int | None = None
    bank: int | None = None
    value: int = 0
    others: int = 0

    @property
    def are_long(self) -> bool:
        """Whether they take enough of the time that playing on over them would pay."""
        return self.n_silent >= _LEAST_SILENT and self.n_silent >= _SILENT_SHARE * self.n_looks


@dataclass(frozen=True)
class GameSurvey:
    """What is known of a game after some minutes of play.

    Attributes:
        buttons: those that change the screen, in the order of `TRIED`.
        taps: those of them that do the same held as pressed for 4 frames.
        place: where the player is, at most one part for each axis: what both opposites move.
        pace: how long a press occupies the game.
        n_episodes, n_ended: of random play.
        median_frames: of these, as long as they lasted.
        moments: screens of the start and of play.
    """

    buttons: tuple[Button, ...]
    taps: tuple[Button, ...]
    place: tuple[PlacePart, ...]
    ending: FoundEnding | None
    bar: StatusBar | None
    pace: ButtonPace
    stretches: Stretches
    n_episodes: int
    n_ended: int
    median_frames: int
    moments: tuple[Moment, ...] = field(repr=False)


@dataclass(frozen=True)
class _Played:
    """One episode of random play.

    Attributes:
        memory: uint8 [n_samples, n_bytes].
        screens: uint8 [n_samples, 144, 160], one channel.
        n_in_play: samples before the last moment in which a direction did something.
        over_from: sample from which no direction does anything; n_samples if there is none.
        surely_over_from: sample from which it is over.
        looks: samples at which the directions were tried, and whether one did something.
        saved: states of moments in play.
    """

    memory: NDArray[np.uint8]
    screens: NDArray[np.uint8]
    n_in_play: int
    over_from: int
    surely_over_from: int
    is_title: bool
    looks: tuple[tuple[int, bool], ...]
    saved: tuple[bytes, ...]

    @property
    def has_ended(self) -> bool:
        return self.over_from < len(self.memory)


def survey_game(
    emulator: Emulator,
    start: PlayableStart,
    *,
    seed: int,
    progress: Callable[[int, int], None],
) -> GameSurvey:
    """Play from the start; the emulator ends up in any state.

    Args:
        progress: is called with the episodes played and all of them.
    """
    rng = np.random.default_rng(seed)
    menus = {digest for state in start.menus for digest in _screens_of(emulator, state)}
    carries = _Carries(emulator, start.trial.moving)
    played = []
    for number in range(_EPISODES):
        progress(number, _EPISODES)
        played.append(_play(emulator, start.state, rng, menus, carries))
    trials = [start.trial, *_later_trials(emulator, played)]
    buttons = tuple(_effective(trials))
    lengths = [episode.over_from * _FRAMES_A_SAMPLE for episode in played]
    return GameSurvey(
        buttons=buttons,
        taps=tuple(b for b in buttons if _is_tap(emulator, start.state, b)),
        place=tuple(carries.place()),
        ending=_ending(emulator, played),
        pace=pace_of(emulator, _some_states(start, played), trials, buttons),
        stretches=_stretches(emulator, played),
        bar=_status_bar(np.concatenate([e.screens[: e.n_in_play] for e in played])),
        n_episodes=len(played),
        n_ended=sum(episode.has_ended for episode in played),
        median_frames=int(np.median(lengths)),
        moments=tuple(_moments(emulator, start, played)),
    )


def _play(
    emulator: Emulator,
    state: bytes,
    rng: np.random.Generator,
    menus: set[bytes],
    carries: "_Carries",
) -> _Played:
    """Play at random until the time is up, or until it is over."""
    emulator.load_state(state)
    memory: list[NDArray[np.uint8]] = []
    screens: list[NDArray[np.uint8]] = []
    saved: list[bytes] = []
    looks: list[tuple[int, bool]] = []
    silent = 0
    is_title = False
    choices: tuple[tuple[Button, ...], ...] = ((), *((b,) for b in TRIED), ("right", "a"))
    for number in range(_EPISODE_FRAMES // _FRAMES_A_SAMPLE):
        try:
            for frames in _PRESSES:
                emulator.hold(choices[rng.integers(len(choices))])
                carries.tick(emulator, frames)
        except LockUpError:
            break
        memory.append(read_memory(emulator))
        screens.append(emulator.screen()[:, :, 0].copy())
        if screen_digest(emulator) in menus:
            is_title = True
            silent = _LOOKS_WITHOUT_ANSWER
            break
        if number % _SAMPLES_A_LOOK == 0:
            now = emulator.save_state()
            has_answer = answers(emulator, now)
            looks.append((number, has_answer))
            if has_answer:
                silent = 0
                saved.append(now)
            else:
                silent += 1
            emulator.load_state(now)
            if silent == _LOOKS_WITHOUT_ANSWER:
                break
    n = len(memory)
    is_over = silent == _LOOKS_WITHOUT_ANSWER
    over_from = n
    n_in_play = n
    surely = n
    if is_title:
        over_from = n - 1
        surely = n - 1
        n_in_play = max(1, n - _SAMPLES_A_LOOK)
    elif is_over:
        over_from = n - 1 - (_LOOKS_WITHOUT_ANSWER - 1) * _SAMPLES_A_LOOK
        surely = over_from + _SAMPLES_A_LOOK  # a last blow is shown before the game says so
        n_in_play = max(1, over_from - _SAMPLES_A_LOOK)
    return _Played(
        memory=np.array(memory, np.uint8).reshape(n, len(ADDRESSES)),
        screens=np.array(screens, np.uint8).reshape(n, SCREEN_HEIGHT, SCREEN_WIDTH),
        n_in_play=n_in_play,
        over_from=over_from,
        surely_over_from=surely,
        is_title=is_title,
        looks=tuple(look for look in looks if look[0] < n_in_play),
        saved=tuple(saved),
    )


def _screens_of(emulator: Emulator, state: bytes) -> Iterator[bytes]:
    """Yield what the screen shows for a while if nothing is pressed."""
    emulator.load_state(state)
    for _ in range(_MENU_FRAMES):
        emulator.tick(1, render=True)
        if np.ptp(emulator.screen()) > 0:
            yield screen_digest(emulator)


def _later_trials(emulator: Emulator, played: Sequence[_Played]) -> Iterator[ButtonTrial]:
    states = [state for episode in played for state in episode.saved]
    shown = min(_TRIALS, len(states))
    for index in range(shown):
        with suppress(LockUpError):
            yield try_buttons(emulator, states[index * len(states) // shown])


def _effective(trials: Sequence[ButtonTrial]) -> Iterator[Button]:
    """Yield the buttons that change the screen in some trial as no button before them does."""
    found: list[Button] = []
    for button in TRIED:
        for trial in trials:
            others = [None, *found]
            if all(trial.screens[button] != trial.screens[other] for other in others):
                found.append(button)
                yield button
                break


def _is_tap(emulator: Emulator, state: bytes, button: Button) -> bool:
    """Whether it makes no difference how long the button is held."""
    courses = []
    for frames in (_TAP_FRAMES, _LONG_PRESS_FRAMES):
        emulator.load_state(state)
        emulator.hold((button,))
        course = []
        try:
            for done in range(0, _TAP_TRIAL_FRAMES, _TAP_FRAMES):
                if done >= frames:
                    emulator.hold(())
                emulator.tick(_TAP_FRAMES, render=True)
                course.append(screen_digest(emulator))
        except LockUpError:
            return False
        courses.append(course)
    return courses[0] == courses[1]


def _some_states(start: PlayableStart, played: Sequence[_Played]) -> list[bytes]:
    states = [state for episode in played for state in episode.saved]
    n = min(_PACED_STATES, len(states))
    return [start.state, *(states[index * len(states) // n] for index in range(n))]


def _stretches(emulator: Emulator, played: Sequence[_Played]) -> Stretches:
    both: dict[bool, list[NDArray[np.uint8]]] = {True: [], False: []}
    for episode in played:
        for sample, has_answer in episode.looks:
            both[has_answer].append(episode.memory[sample])
    n_silent = len(both[False])
    found = Stretches(n_silent + len(both[True]), n_silent)
    if not (found.are_long and both[True]):
        return found
    answering = np.array(both[True])
    is_one = (answering == answering[0]).all(axis=0)
    tells = is_one & (np.array(both[False]) != answering[0]).all(axis=0)
    indices = np.flatnonzero(tells & ~np.isin(ADDRESSES, USUAL_STACK))
    if not len(indices):
        return found
    address = int(ADDRESSES[indices[0]])
    return replace(
        found,
        address=address,
        bank=_mapped_bank(emulator) if address in _BANKED else None,
        value=int(answering[0, indices[0]]),
        others=len(indices) - 1,
    )


# --- the place of the player ---


class _Carries:
    """Watches whether the byte after one that moves counts its overflows."""

    def __init__(self, emulator: Emulator, moving: Sequence[MovingByte]) -> None:
        best = {b.buttons: b for b in reversed(moving) if b.is_smooth and b.is_two_way}
        self._bytes = [best[pair] for pair in DIRECTIONS if pair in best]
        self._bank = _mapped_bank(emulator)
        self._overflows = dict.fromkeys(self._bytes, 0)
        self._carried = dict.fromkeys(self._bytes, 0)
        self._others = dict.fromkeys(self._bytes, 0)

    def tick(self, emulator: Emulator, frames: int) -> None:
        before = [self._read(emulator, byte) for byte in self._bytes]
        for done in range(0, frames, 4):
            emulator.tick(4, render=done + 4 >= frames)
            for index, byte in enumerate(self._bytes):
                low, high = self._read(emulator, byte)
                old_low, old_high = before[index]
                before[index] = (low, high)
                turns = (low - old_low > 128) - (old_low - low > 128)
                if turns:
                    self._overflows[byte] += 1
                    self._carried[byte] += (high - old_high + turns) % 256 == 0
                elif high != old_high:
                    self._others[byte] += 1

    def place(self) -> Iterator[PlacePart]:
        for byte in self._bytes:
            carried = self._carried[byte]
            is_wide = carried > 0 and carried >= self._overflows[byte] - 1
            if is_wide and self._others[byte] > carried:
                is_wide = False
            bank = self._bank if byte.address in _BANKED else None
            yield PlacePart(byte.address, bank, "u16" if is_wide else "u8", byte)

    def _read(self, emulator: Emulator, byte: MovingByte) -> tuple[int, int]:
        return emulator.read(byte.address), emulator.read(min(byte.address + 1, 0xFFFF))


def _mapped_bank(emulator: Emulator) -> int | None:
    """Return the bank of work RAM that a colour game has mapped to 0xD000; None without banks."""
    return max(1, emulator.read(0xFF70) & 7) if emulator.is_colour else None


# --- the end of an episode ---


def _ending(emulator: Emulator, played: Sequence[_Played]) -> FoundEnding | None:
    ended = [episode for episode in played if episode.has_ended]
    if not ended:
        return None
    over = np.concatenate([episode.memory[episode.surely_over_from :] for episode in ended])
    in_play = np.concatenate([episode.memory[: episode.n_in_play] for episode in played])
    found = np.flatnonzero(_tells(over, in_play) & _stays_over(ended))
    if not len(found):
        return None
    best = min(found.tolist(), key=lambda index: _unlikelihood(index, found, over, in_play))
    address = int(ADDRESSES[best])
    return FoundEnding(
        address=address,
        bank=_mapped_bank(emulator) if address in _BANKED else None,
        values=tuple(np.unique(over[:, best]).tolist()),
        is_flag=_is_flag(over[:, best], in_play[:, best]),
        episodes=len(ended),
        others=len(found) - 1,
        is_title=any(episode.is_title for episode in ended),
    )


def _tells(over: NDArray[np.uint8], in_play: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return the bytes that have few values when it is over, all of which they lack in play."""
    found = np.zeros(len(ADDRESSES), np.bool_)
    for index in range(len(ADDRESSES)):
        values = np.unique(over[:, index])
        if len(values) <= _MOST_ENDING_VALUES:
            found[index] = not np.isin(in_play[:, index], values).any()
    return found


def _stays_over(ended: Sequence[_Played]) -> NDArray[np.bool_]:
    """Return the bytes that have one value from each end on, as a clock has not."""
    found = np.ones(len(ADDRESSES), np.bool_)
    for episode in ended:
        over = episode.memory[episode.surely_over_from :]
        found &= (over == over[0]).all(axis=0)
    return found


def _unlikelihood(
    index: int, found: NDArray[np.int64], over: NDArray[np.uint8], in_play: NDArray[np.uint8]
) -> tuple[bool, int, bool, int, int]:
    """Rank a byte among those that tell an ending, the likeliest lowest.

    A game keeps its result in a byte of its own, which is 0 in play. What is cleared or filled at
    the end lies side by side.
    """
    n_values = len(np.unique(in_play[:, index]))
    is_flag = _is_flag(over[:, index], in_play[:, index])
    n_beside = int(np.count_nonzero(np.abs(found - index) <= _BESIDE))
    is_of_stack = int(ADDRESSES[index]) in USUAL_STACK
    return is_of_stack, n_values, not is_flag, n_beside, index


def _is_flag(over: NDArray[np.uint8], in_play: NDArray[np.uint8]) -> bool:
    return not in_play.any() and int(over.max()) <= _HIGHEST_FLAG


# --- the screen ---


def _status_bar(screens: NDArray[np.uint8]) -> StatusBar | None:
    """Return the band at the top or bottom that changes least, if other rows change much.

    Args:
        screens: uint8 [n_samples, 144, 160].
    """
    if len(screens) < 2:
        return None
    changes = (np.diff(screens.astype(np.int16), axis=0) != 0).mean(axis=(0, 2))
    busy = float(np.median(changes))
    for rows in range(_MOST_BAR_ROWS, _LEAST_BAR_ROWS - 1, -8):
        for top in (0, SCREEN_HEIGHT - rows):
            band = changes[top : top + rows]
            if 0 < band.max() < _QUIET * busy:  # what never changes is the ground or a frame
                return StatusBar(top, rows)
    return None


def _moments(
    emulator: Emulator, start: PlayableStart, played: Sequence[_Played]
) -> Iterator[Moment]:
    emulator.load_state(start.state)
    yield Moment("start: beginning", emulator.screen().copy())
    states = [state for episode in played for state in episode.saved]
    shown = min(_SHOWN_MOMENTS, len(states))
    for index in range(shown):
        emulator.load_state(states[index * len(states) // shown])
        yield Moment(f"random play {index + 1}", emulator.screen().copy())
