"""How fast a game takes buttons: when a press shows, and when the next one counts."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from game_rl.emulator.emulator import Button, Emulator
from game_rl.errors import LockUpError
from game_rl.game_check.button_trial import FRAMES_A_SAMPLE, ButtonTrial, screen_digest

_PRESS_FRAMES = 4
_TRIED_AFTER_FRAMES = (4, 8, 12, 16, 20, 24, 32, 48, 64)
LONGEST_BUSY_FRAMES = _TRIED_AFTER_FRAMES[-1]
_LONGEST_REACTION_FRAMES = 16
_LOW = 0.25  # quantile: three quarters of the presses are at least so long


@dataclass(frozen=True)
class ButtonPace:
    """How long single presses of 4 frames occupy a game.

    Attributes:
        shown_after: frames until a press shows, the median; 0 if none has shown anything.
        busy: by button, the frames until another button makes a difference, each from a moment of
            its own; the longest that was tried if none does until then.
    """

    shown_after: int
    busy: dict[Button, tuple[int, ...]]

    @property
    def n_presses(self) -> int:
        return sum(len(each) for each in self.busy.values())

    @property
    def busy_frames(self) -> int:
        """Frames for which the game ignores other buttons after three quarters of all presses."""
        every = [frames for each in self.busy.values() for frames in each]
        return int(np.quantile(every, _LOW, method="lower")) if every else 0


def pace_of(
    emulator: Emulator,
    states: Sequence[bytes],
    trials: Sequence[ButtonTrial],
    buttons: Sequence[Button],
) -> ButtonPace:
    """Press each of the buttons in some moments of play; the emulator ends up in any state.

    Args:
        trials: of the buttons, from whatever moments.
    """
    shown = [frames for trial in trials for button in buttons for frames in _shown(trial, button)]
    shown_after = int(np.median(shown)) if shown else 0
    reaction = min(max(shown, default=0) + FRAMES_A_SAMPLE, _LONGEST_REACTION_FRAMES)
    busy: dict[Button, list[int]] = {button: [] for button in buttons}
    for state in states:
        for button in buttons:
            with suppress(LockUpError):
                busy[button].append(_busy_frames(emulator, state, button, buttons, reaction))
    return ButtonPace(shown_after, {button: tuple(found) for button, found in busy.items()})


def _shown(trial: ButtonTrial, button: Button) -> Iterator[int]:
    """Yield the frames until the button's first effect on the screen, if it has one."""
    pairs = zip(trial.screens[button], trial.screens[None], strict=True)
    for number, (held, idle) in enumerate(pairs, start=1):
        if held != idle:
            yield FRAMES_A_SAMPLE * number
            return


def _busy_frames(
    emulator: Emulator, state: bytes, button: Button, others: Sequence[Button], reaction: int
) -> int:
    emulator.load_state(state)
    emulator.hold((button,))
    emulator.tick(_PRESS_FRAMES, render=False)
    emulator.hold(())
    done = _PRESS_FRAMES
    for after in _TRIED_AFTER_FRAMES:
        if after > done:
            emulator.tick(after - done, render=False)
            done = after
        now = emulator.save_state()
        if _is_taken(emulator, now, others, reaction):
            return after
        emulator.load_state(now)
    return done


def _is_taken(emulator: Emulator, state: bytes, buttons: Sequence[Button], reaction: int) -> bool:
    """Whether one of the buttons, pressed now, makes a difference to the screen."""
    without = _screen_after(emulator, state, (), reaction)
    return any(_screen_after(emulator, state, (b,), reaction) != without for b in buttons)


def _screen_after(
    emulator: Emulator, state: bytes, held: tuple[Button, ...], reaction: int
) -> bytes:
    emulator.load_state(state)
    emulator.hold(held)
    emulator.tick(_PRESS_FRAMES, render=False)
    emulator.hold(())
    emulator.tick(reaction, render=True)
    return screen_digest(emulator)
