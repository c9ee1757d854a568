"""The window to play in, with SDL's driver that needs no display."""

import ctypes
import json
from pathlib import Path
from typing import Any

import pytest

from game_rl.play.game_window import play_in_window
from tests.viewer.played_table import duel_table

sdl2: Any = pytest.importorskip("sdl2")


def push_key(name: str, *, is_down: bool) -> None:
    event = sdl2.SDL_Event()
    event.type = sdl2.SDL_KEYDOWN if is_down else sdl2.SDL_KEYUP
    event.key.keysym.sym = sdl2.SDL_GetKeyFromName(name.encode())
    sdl2.SDL_PushEvent(ctypes.byref(event))


def push(kind: int) -> None:
    event = sdl2.SDL_Event()
    event.type = kind
    sdl2.SDL_PushEvent(ctypes.byref(event))


def test_keys_play_the_game_and_ask_for_what_the_page_can_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    told: list[str] = []
    with duel_table(tmp_path) as table:
        table.tell = told.append
        at: dict[int, tuple[str, bool]] = {
            1: ("Right", True), 21: ("A", True), 24: ("A", False), 31: ("Right", False),
            40: ("K", True), 41: ("M", True), 50: ("P", True), 70: ("P", True),
            90: ("Left", True), 100: ("R", True), 101: ("Left", False), 102: ("P", True),
            110: ("S", True), 115: ("S", False),
        }  # fmt: skip
        frame = 0

        def wait(_: float) -> None:
            nonlocal frame
            frame += 1
            if frame in at:
                name, is_down = at[frame]
                push_key(name, is_down=is_down)
            if frame == 130:
                push(sdl2.SDL_QUIT)

        assert table.session.frames == 0
        play_in_window(table, wait=wait)
        held = [[sorted(p.buttons), p.frames] for p in table.session.all_presses]
        assert held == [[[], 8], [["b"], 5], [[], 15]]
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "duel.moments.yaml",
            "duel_moment_1.state",
            "kept_1.state",
        ]
        first_words = [line.split()[0] for line in told]
        assert first_words == [str(tmp_path / "kept_1.state"), "moment", "1.3"]
        table.save()
    recorded = json.loads((tmp_path / "duel.json").read_text(encoding="utf-8"))
    assert recorded["presses"] == [[[], 8], [["b"], 5], [[], 15]]
