"""`step` of game.yaml: a timestep that goes on until the game waits for the player."""

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from game_rl.config.strict_model import Problem, StrictModel
from game_rl.emulator.emulator import Button
from game_rl.games.actions import button_problems
from game_rl.games.conditions import Condition

PRESS_FRAMES = 8
"""Frames for which the buttons of `press` are held, and for which they are up before each press."""

_LEAST_WITH_PRESS = 2 * PRESS_FRAMES + 1  # up, down, and one frame that releases the buttons


class StepWait(StrictModel):
    """`{until: {variable: locked, equals: 0}, press: [a], at_most_frames: 600}`."""

    until: Condition
    """After the action of a timestep, the env plays on until this holds. `increases`, `decreases`
    and `changes` compare with the beginning of the timestep."""
    press: Annotated[
        tuple[Button, ...], Field(min_length=1, exclude_if=lambda buttons: not buttons)
    ] = ()
    """Buttons to press meanwhile, again and again: 8 frames without buttons, then 8 frames with
    these, so that each press is a new one. Without it, no button is held."""
    at_most_frames: Annotated[int, Field(ge=1, le=36_000)]
    """Frames after which the timestep ends even if the condition does not hold."""

    def problems(self) -> Iterable[Problem]:
        for key, part in self.until.parts():
            if part.for_timesteps is not None:
                yield Problem(
                    ("until", *key, "for"),
                    "counts timesteps, and `until` is judged within one; remove it",
                )
        yield from button_problems(("press",), self.press)
        if self.press and self.at_most_frames < _LEAST_WITH_PRESS:
            yield Problem(
                ("at_most_frames",),
                f"a press takes {PRESS_FRAMES} frames without buttons, {PRESS_FRAMES} with them, "
                f"and one that releases them; write at least {_LEAST_WITH_PRESS}, or remove "
                "`press`",
                reads=(("press",),),
            )
