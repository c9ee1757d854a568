"""How fast games take buttons, against games whose rules are known; and what that proposes."""

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from game_rl.emulator.emulator import Button, Emulator
from game_rl.game_check.button_pace import ButtonPace, pace_of
from game_rl.game_check.button_trial import ButtonTrial, screen_digest
from game_rl.game_check.game_survey import GameSurvey, Stretches
from game_rl.game_check.menu_search import PlayableStart, StartWay
from game_rl.game_check.proposed_game import proposed_run, proposed_sections
from tests.ram_search.scripted_memory import Rule, ScriptedMemory

BUTTONS: tuple[Button, ...] = ("left", "right", "a")
X, Y, LEFT, DELAY, WANTED = range(5)


def walks(frames: int, *, delay: int = 0) -> Rule:
    """A game of steps that take so many frames, in which it ignores buttons, and may begin late."""

    def rule(memory: bytearray, held: frozenset[str], _: int) -> None:
        if memory[LEFT] == 0:
            for number, button in enumerate(BUTTONS, start=1):
                if button in held:
                    memory[LEFT] = frames
                    memory[DELAY] = delay
                    memory[WANTED] = number
        if memory[LEFT] and memory[DELAY]:
            memory[DELAY] -= 1
        elif memory[LEFT]:
            memory[LEFT] -= 1
            place = Y if memory[WANTED] == 3 else X
            memory[place] = (memory[place] + (-1 if memory[WANTED] == 1 else 1)) % 256

    return rule


def trial_of(game: ScriptedMemory) -> ButtonTrial:
    screens: dict[Button | None, tuple[bytes, ...]] = {}
    state = game.save_state()
    for button in (None, *BUTTONS):
        game.load_state(state)
        game.hold(() if button is None else (button,))
        seen = []
        for _ in range(24):
            game.tick(2, render=True)
            seen.append(screen_digest(cast("Emulator", game)))
        screens[button] = tuple(seen)
    game.load_state(state)
    return ButtonTrial({}, screens, np.zeros(0, np.bool_))


@pytest.mark.parametrize(("frames", "busy"), [(1, 4), (4, 4), (16, 16), (24, 24)])
def test_a_game_takes_no_button_while_a_step_lasts(frames: int, busy: int) -> None:
    game = ScriptedMemory([90, 90, 0, 0, 0], walks(frames), drawn=[X, Y])
    trial = trial_of(game)
    state = game.save_state()
    found = pace_of(cast("Emulator", game), [state, state], [trial], BUTTONS)
    assert found.n_presses == 6
    for each in found.busy.values():
        assert all(busy - 4 <= frames <= busy for frames in each)  # a press lasts for 4
    assert found.shown_after == 2


@pytest.mark.parametrize("delay", [0, 5, 9])
def test_a_press_shows_when_the_step_begins(delay: int) -> None:
    game = ScriptedMemory([90, 90, 0, 0, 0], walks(4, delay=delay), drawn=[X, Y])
    found = pace_of(cast("Emulator", game), [], [trial_of(game)], BUTTONS)
    assert found.shown_after == -(-(delay + 1) // 2) * 2
    assert (found.n_presses, found.busy_frames) == (0, 0)


def survey_of(pace: ButtonPace, stretches: Stretches) -> GameSurvey:
    return GameSurvey(
        buttons=BUTTONS,
        taps=(),
        place=(),
        ending=None,
        bar=None,
        pace=pace,
        stretches=stretches,
        n_episodes=6,
        n_ended=0,
        median_frames=14_400,
        moments=(),
    )


def run_of(survey: GameSurvey) -> str:
    return proposed_run(title="Mine", file="run.yaml", run_dir="runs/mine", survey=survey)


START = PlayableStart(
    StartWay((), 60),
    ButtonTrial(
        {}, dict.fromkeys((None, "left", "right", "up", "down"), ()), np.zeros(0, np.bool_)
    ),
    b"",
    (),
)
NO_STRETCHES = Stretches(60, 2)
QUICK = ButtonPace(4, {"left": (4, 4), "right": (4, 4), "a": (8, 20)})
SLOW = ButtonPace(2, {"left": (16, 16), "right": (16, 4), "a": (64, 64)})


def test_a_timestep_lasts_as_long_as_most_presses() -> None:
    quick = run_of(survey_of(QUICK, NO_STRETCHES))
    assert "  frame_skip: 8   #" in quick
    assert "A press shows after 4 frames, and the game takes the next one within 4 (6" in quick
    slow = run_of(survey_of(SLOW, NO_STRETCHES))
    assert "  frame_skip: 16   # one timestep = 16 frames = 268 ms" in slow
    assert "takes no other button for at least 16" in " ".join(slow.replace("#", " ").split())
    slowest = ButtonPace(2, {"left": (64, 64)})
    assert "  frame_skip: 32   #" in run_of(survey_of(slowest, NO_STRETCHES))


def test_step_is_proposed_where_buttons_count_for_nothing_for_long() -> None:
    def actions_of(survey: GameSurvey) -> str:
        return " ".join(proposed_sections(START, survey)["actions"].replace("#", " ").split())

    found = Stretches(40, 8, address=0xC0A3, value=1, others=2)
    text = actions_of(survey_of(replace(QUICK, busy={"left": (4,)}), found))
    assert "In 8 of 40 moments of random play" in text
    assert "busy: {address: 0xC0A3}, which was 1 elsewhere, as 2 other bytes are" in text
    assert "step: {until: {variable: busy, equals: 1}, at_most_frames: 240}" in text
    slow = actions_of(survey_of(SLOW, NO_STRETCHES))
    assert "long: a (64 frames or more)" in slow
    assert "step:" not in actions_of(survey_of(QUICK, NO_STRETCHES))
