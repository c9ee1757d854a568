"""A window of this machine to play in, by SDL, which PyBoy brings. The only import of sdl2."""

import ctypes
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from game_rl.emulator.emulator import SCREEN_HEIGHT, SCREEN_WIDTH, Button
from game_rl.errors import UsageError
from game_rl.play.play_table import PlayTable

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="Using SDL2 binaries")
    import sdl2

KEYS: dict[str, Button] = {
    "Up": "up",
    "Down": "down",
    "Left": "left",
    "Right": "right",
    "A": "a",
    "S": "b",
    "Return": "start",
    "Backspace": "select",
}
"""Names of SDL for the keys, as on the page."""

_SCALE = 4
_WRITTEN_EVERY_S = 10.0
_TITLE_EVERY_FRAMES = 15


def play_in_window(
    table: PlayTable, *, greeting: str = "", wait: Callable[[float], None] = time.sleep
) -> None:
    """Let a person play in a window until they close it.

    Args:
        greeting: what to tell once the window is open.
        wait: waits so many seconds for the next frame.

    Raises:
        UsageError: no window can be opened here.
        OSError: the episode cannot be written.
    """
    with _window(table.title) as (sdl, show, rename):
        if greeting:
            table.tell(greeting)
        held: dict[int, Button] = {}
        written = time.monotonic()
        frames = 0
        rename(_words(table))
        while True:
            for event in _events(sdl):
                if event.type == sdl.SDL_QUIT:
                    return
                _take(sdl, event, table, held)
            table.frame()
            show(table.session.screen)
            frames += 1
            if frames % _TITLE_EVERY_FRAMES == 0:
                rename(_words(table))
            if time.monotonic() - written > _WRITTEN_EVERY_S:
                written = time.monotonic()
                table.save()
            wait(max(0.0, table.wait_s()))


def _events(sdl: ModuleType) -> Iterator[Any]:
    event = sdl.SDL_Event()
    while sdl.SDL_PollEvent(ctypes.byref(event)):
        yield event


def _take(sdl: ModuleType, event: Any, table: PlayTable, held: dict[int, Button]) -> None:  # noqa: ANN401 - of ctypes
    """Do what a key asks for."""
    if event.type == sdl.SDL_WINDOWEVENT and event.window.event == sdl.SDL_WINDOWEVENT_FOCUS_LOST:
        held.clear()
        table.hold(())
        return
    if event.type not in (sdl.SDL_KEYDOWN, sdl.SDL_KEYUP):
        return
    key = event.key.keysym.sym
    name = sdl.SDL_GetKeyName(key).decode()
    is_down = event.type == sdl.SDL_KEYDOWN
    if name in KEYS:
        held.pop(key, None)
        if is_down:
            held[key] = KEYS[name]
        table.hold(tuple(held.values()))
    elif is_down and not event.key.repeat and name in _DEEDS:
        _DEEDS[name](table)


def _go_or_pause(table: PlayTable) -> None:
    if table.is_paused:
        table.go()
    else:
        table.pause()


def _fast_or_normal(table: PlayTable) -> None:
    if table.is_fast:
        table.go_normally()
    else:
        table.go_fast()


_DEEDS: dict[str, Callable[[PlayTable], None]] = {
    "P": _go_or_pause,
    "Space": _go_or_pause,
    "F": _fast_or_normal,
    "R": PlayTable.take_back,
    "M": PlayTable.mark,
    "K": PlayTable.keep,
    "N": PlayTable.begin_again,
}

KEYS_IN_WORDS = """\
arrows: directional pad   A: A   S: B   Enter: START   Backspace: SELECT
P or Space: pause   R: take back ten seconds   F: four times as fast
M: mark a moment    K: keep as a start state   N: a new episode"""


def _words(table: PlayTable) -> str:
    """Return the title of the window."""
    state = table.state()
    if state["over"] is not None:
        doing = f"over: {state['over']} (N: new episode, R: ten seconds back)"
    elif not state["begun"]:
        doing = "press a button to start"
    elif state["paused"]:
        doing = "paused (P: continue)"
    else:
        doing = f"{state['seconds']:.0f} s"
    reward = f", reward {state['reward']:g}" if state["reward_terms"] else ""
    return f"{table.title}: {doing}{reward}"


@contextmanager
def _window(
    title: str,
) -> Iterator[tuple[ModuleType, Callable[[np.ndarray[Any, Any]], None], Callable[[str], None]]]:
    """Yield SDL, what shows a picture (uint8 [144, 160, 3]), and what sets the title."""
    sdl: Any = sdl2
    if sdl.SDL_InitSubSystem(sdl.SDL_INIT_VIDEO):
        raise _no_window(sdl)
    try:
        sdl.SDL_SetHint(sdl.SDL_HINT_RENDER_SCALE_QUALITY, b"0")
        middle = sdl.SDL_WINDOWPOS_CENTERED
        size = SCREEN_WIDTH * _SCALE, SCREEN_HEIGHT * _SCALE
        flags = sdl.SDL_WINDOW_RESIZABLE
        window = sdl.SDL_CreateWindow(title.encode(), middle, middle, *size, flags)
        if not window:
            raise _no_window(sdl)
        renderer = sdl.SDL_CreateRenderer(window, -1, 0)
        sdl.SDL_RenderSetLogicalSize(renderer, SCREEN_WIDTH, SCREEN_HEIGHT)
        streaming = sdl.SDL_TEXTUREACCESS_STREAMING
        size = SCREEN_WIDTH, SCREEN_HEIGHT
        texture = sdl.SDL_CreateTexture(renderer, sdl.SDL_PIXELFORMAT_RGB24, streaming, *size)

        def show(screen: np.ndarray[Any, Any]) -> None:
            pixels = np.ascontiguousarray(screen)
            sdl.SDL_UpdateTexture(texture, None, pixels.ctypes.data, 3 * SCREEN_WIDTH)
            sdl.SDL_RenderClear(renderer)
            sdl.SDL_RenderCopy(renderer, texture, None, None)
            sdl.SDL_RenderPresent(renderer)

        def rename(text: str) -> None:
            sdl.SDL_SetWindowTitle(window, text.encode())

        try:
            yield sdl2, show, rename
        finally:
            sdl.SDL_DestroyTexture(texture)
            sdl.SDL_DestroyRenderer(renderer)
            sdl.SDL_DestroyWindow(window)
    finally:
        sdl.SDL_QuitSubSystem(sdl.SDL_INIT_VIDEO)


def _no_window(sdl: Any) -> UsageError:  # noqa: ANN401 - of ctypes
    why = sdl.SDL_GetError().decode() or "no reason given"
    return UsageError(
        f"--window: no window can be opened here ({why}); play in the browser without --window, or "
        "start it where there is a display"
    )
