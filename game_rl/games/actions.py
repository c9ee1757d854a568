"""What an action does with the buttons within one timestep, and how long the timestep goes on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import Discriminator, Field, Tag

from game_rl.config.schema import MOST_FRAME_SKIP
from game_rl.config.strict_model import Key, Problem, StrictModel
from game_rl.emulator.emulator import Button, Press
from game_rl.errors import UsageError
from game_rl.games.conditions import Condition
from game_rl.games.start_state import ScriptStep

_OPPOSITES: tuple[tuple[Button, Button], ...] = (("left", "right"), ("up", "down"))


class PulseAction(StrictModel):
    """`{hold: [a], frames: 8}`: the rest of the timestep is played without buttons."""

    hold: Annotated[tuple[Button, ...], Field(min_length=1)]
    frames: Annotated[int, Field(ge=1, lt=MOST_FRAME_SKIP)]
    """Frames for which the buttons are held, fewer than a timestep has."""


def _form(action: object) -> str:
    if isinstance(action, dict | PulseAction):
        return "pulse"
    has_steps = isinstance(action, list | tuple) and any(
        isinstance(step, dict | ScriptStep) for step in action
    )
    return "script" if has_steps else "held"


ActionSpec = Annotated[
    Annotated[tuple[Button, ...], Tag("held")]
    | Annotated[PulseAction, Tag("pulse")]
    | Annotated[tuple[ScriptStep, ...], Field(min_length=1), Tag("script")],
    Discriminator(_form),
]
"""One entry of `actions` in game.yaml."""


def presses_of(action: ActionSpec, frames: int) -> tuple[Press, ...]:
    """Return what the action does in `frames` frames; what goes beyond them is cut off."""
    steps = _steps(action)
    if steps is None:
        return (Press(_held(action), frames),)
    found = []
    left = frames
    for buttons, n_frames in (*steps, Press(frozenset(), frames)):
        if left > 0:
            found.append(Press(buttons, min(n_frames, left)))
            left -= n_frames
    return tuple(found)


def buttons_of(action: ActionSpec) -> frozenset[Button]:
    """Return all buttons that the action presses, at whatever frame of a timestep."""
    steps = _steps(action)
    if steps is None:
        return _held(action)
    return frozenset(button for press in steps for button in press.buttons)


def nearest_action(actions: Mapping[str, ActionSpec], presses: Sequence[Press]) -> str:
    """Return the name of the action that is nearest to what was held in a timestep.

    That is the one with the fewest buttons that differ, counted frame by frame. Of equally near
    ones it is the one that presses more of what was held, so that a short press counts.
    """
    held = _frame_by_frame(presses)
    pressed = frozenset(button for buttons in held for button in buttons)

    def distance(name: str) -> tuple[int, int]:
        own = _frame_by_frame(presses_of(actions[name], len(held)))
        differing = sum(len(one ^ other) for one, other in zip(own, held, strict=True))
        return differing, -len(buttons_of(actions[name]) & pressed)

    return min(actions, key=distance)


def _frame_by_frame(presses: Sequence[Press]) -> list[frozenset[Button]]:
    return [press.buttons for press in presses for _ in range(press.frames)]


def least_frame_skip(actions: Mapping[str, ActionSpec]) -> int:
    """Return the smallest `env.frame_skip` in which every action fits."""
    return max(map(_frames_needed, actions.values()))


def frame_skip_problem(actions: Mapping[str, ActionSpec], frame_skip: int) -> str | None:
    """Return why the actions cannot be played in so many frames; None if they can."""
    name = next((n for n, action in actions.items() if _frames_needed(action) > frame_skip), None)
    if name is None:
        return None
    return (
        f"env.frame_skip is {frame_skip}, and the action {name} takes "
        f"{_frames_needed(actions[name])} frames{_with_release(actions[name])}; write "
        f"env.frame_skip={least_frame_skip(actions)}, or shorten the action in game.yaml"
    )


def action_problems(actions: Mapping[str, ActionSpec]) -> Iterator[Problem]:
    """Yield what is wrong with the section `actions`; keys begin with the action's name."""
    names: dict[object, str] = {}
    for name, action in actions.items():
        for key, buttons in _buttons_of(action):
            yield from button_problems((name, *key), buttons)
        yield from _script_problems(name, action)
        does = _effect(action)
        if does in names:
            what = "does the same" if isinstance(does, tuple) else "holds the same buttons"
            yield Problem((name,), f"{what} as {names[does]}; remove one of the two")
        names.setdefault(does, name)


def _buttons_of(action: ActionSpec) -> Iterator[tuple[Key, tuple[Button, ...]]]:
    """Yield buttons that are held at once, with the key of the list."""
    if isinstance(action, PulseAction):
        yield ("hold",), action.hold
        return
    steps = [step for step in action if isinstance(step, ScriptStep)]
    if not steps:
        yield (), tuple(button for button in action if not isinstance(button, ScriptStep))
    for index, step in enumerate(steps):
        if step.hold is not None:
            yield (str(index), "hold"), step.hold


def button_problems(key: Key, buttons: tuple[Button, ...]) -> Iterable[Problem]:
    """Yield why buttons cannot be held at once."""
    for one, other in _OPPOSITES:
        if one in buttons and other in buttons:
            yield Problem(key, f"{one} and {other} cannot be held at once; remove one of them")
    if len(set(buttons)) != len(buttons):
        yield Problem(key, "a button is named twice; remove one")


def _script_problems(name: str, action: ActionSpec) -> Iterable[Problem]:
    steps = _steps(action)
    if steps is None:
        return
    if not any(press.buttons for press in steps):
        yield Problem((name,), "presses no button; write [] for an action that does nothing")
    if _frames_needed(action) > MOST_FRAME_SKIP:
        yield Problem(
            (name,),
            f"takes {_frames_needed(action):_} frames{_with_release(action)}, and a timestep has "
            f"at most {MOST_FRAME_SKIP}; shorten it",
        )
    for index in range(1, len(steps)):
        if steps[index].buttons and steps[index].buttons == steps[index - 1].buttons:
            yield Problem(
                (name, str(index)),
                "continues with the buttons of the step before, so the game sees one long press; "
                "put a `wait` between the two, or join them",
            )


def _steps(action: ActionSpec) -> tuple[Press, ...] | None:
    """Return the steps of a script; None if the action holds its buttons throughout."""
    if isinstance(action, PulseAction):
        return (Press(frozenset(action.hold), action.frames),)
    found = tuple(
        Press(frozenset(step.hold or ()), step.frames or step.wait or 0)
        for step in action
        if isinstance(step, ScriptStep)
    )
    return found or None


def _effect(action: ActionSpec) -> object:
    """Return what the action does, equal for two that do the same: a set of buttons or presses."""
    steps = _steps(action)
    if steps is None:
        return _held(action)
    found: list[Press] = []
    for buttons, frames in steps:
        before = found.pop() if found and found[-1].buttons == buttons else Press(buttons, 0)
        found.append(Press(buttons, before.frames + frames))
    if not found[-1].buttons:  # as the rest of the timestep
        found.pop()
    return tuple(found)


def _held(action: ActionSpec) -> frozenset[Button]:
    assert not isinstance(action, PulseAction)
    return frozenset(button for button in action if not isinstance(button, ScriptStep))


def _frames_needed(action: ActionSpec) -> int:
    steps = _steps(action)
    if steps is None:
        return 1
    return sum(press.frames for press in steps) + bool(steps[-1].buttons)


def _with_release(action: ActionSpec) -> str:
    """Return in words why an action takes one frame more than its steps."""
    steps = _steps(action)
    is_longer = steps is not None and bool(steps[-1].buttons)
    return ", the last one without buttons, so that the next press is a new one" * is_longer


RANDOM = "random"
BEST_CONSTANT = "best-constant"


def constant_action(policy: str, action_names: Sequence[str]) -> int | None:
    """Return the action of `constant:ACTION`, which may be a name or a number.

    Returns:
        None for `random` and `best-constant`, the other policies that learn nothing.

    Raises:
        UsageError: there is no such policy, or the game has no such action.
    """
    if policy in (RANDOM, BEST_CONSTANT):
        return None
    kind, _, action = policy.partition(":")
    if kind == "constant" and action in action_names:
        return list(action_names).index(action)
    if kind == "constant" and action.isdecimal() and int(action) < len(action_names):
        return int(action)
    raise UsageError(
        f"there is no policy {policy!r}; choose {RANDOM}, {BEST_CONSTANT} or constant:ACTION, "
        f"where ACTION is one of {', '.join(action_names)}"
    )


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
    """Buttons to press repeatedly meanwhile: 8 frames without buttons, then 8 frames with
    these, so that each press is a new one. Without it, no button is held."""
    at_most_frames: Annotated[int, Field(ge=1, le=36_000)]
    """Frames after which the timestep ends even if the condition does not hold."""

    def problems(self) -> Iterable[Problem]:
        for key, part in self.until.parts():
            if part.for_timesteps is not None:
                yield Problem(
                    ("until", *key, "for"),
                    "counts timesteps, and `until` is checked within one; remove it",
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
