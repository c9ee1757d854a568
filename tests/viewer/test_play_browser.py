"""The page of `game-rl play` in a real browser: keys move the game, and the canvas shows it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.play.play_table import PlayTable
from tests.viewer.live_run import Watching
from tests.viewer.played_table import duel_table, served
from tests.viewer.test_page_browser import Opened, chromium, pixels_of, wait_until

__all__ = ["chromium"]  # a fixture
_ROLES = Path(__file__).with_name("page_faults.js").read_text(encoding="utf-8")

pytestmark = pytest.mark.browser


@pytest.fixture
def play(tmp_path: Path) -> Iterator[tuple[PlayTable, Watching]]:
    with duel_table(tmp_path) as table, served(table) as server:
        yield table, server


def state_of(page: Any) -> str:
    return str(page.inner_text(".state"))


def test_keys_play_and_the_canvas_shows_the_emulators_pixels(
    chromium: Any, play: tuple[PlayTable, Watching]
) -> None:
    table, server = play
    found = Opened(chromium, server)
    try:
        page = found.open()
        page.wait_for_selector(".veil b")
        assert page.inner_text(".veil b") == "Ready"
        page.keyboard.down("ArrowRight")
        wait_until(page, "document.querySelector('canvas').dataset.frame > 20")
        page.keyboard.up("ArrowRight")
        page.keyboard.press("p")
        wait_until(page, "document.querySelector('.state').textContent === 'paused'")
        assert ["right"] in [sorted(press.buttons) for press in table.session.all_presses]
        page.wait_for_timeout(500)  # the last picture is on its way
        np.testing.assert_array_equal(
            pixels_of(page, ".stage canvas"), table.session.screen[..., 0]
        )
        values = dict(
            zip(
                page.locator(".variables dt").all_inner_texts(),
                page.locator(".variables dd").all_inner_texts(),
                strict=True,
            )
        )
        assert values["player_x"] == str(table.session.variables()["player_x"])
        page.keyboard.press("r")
        wait_until(page, "document.querySelector('.said').textContent.includes('taken back')")
        page.wait_for_timeout(500)
        np.testing.assert_array_equal(
            pixels_of(page, ".stage canvas"), table.session.screen[..., 0]
        )
        assert table.session.frames == 0
        assert found.complaints == []
        assert found.hosts == {f"127.0.0.1:{server.port}"}
    finally:
        found.close()


def test_names_are_typed_without_playing_and_touch_buttons_hold(
    chromium: Any, play: tuple[PlayTable, Watching], tmp_path: Path
) -> None:
    table, server = play
    found = Opened(chromium, server, viewport={"width": 400, "height": 900}, has_touch=True)
    try:
        page = found.open()
        page.wait_for_selector(".veil b")
        page.fill("#name", "mark")
        page.keyboard.press("p")  # a letter of the name
        assert page.input_value("#name") == "markp"
        page.keyboard.press("Escape")
        page.keyboard.press("k")
        wait_until(page, "document.querySelector('.said').textContent.includes('markp.state')")
        assert (tmp_path / "markp.state").exists()
        assert not table.has_begun
        page.locator(".pad [aria-label=a]").dispatch_event(
            "pointerdown", {"pointerId": 1, "pointerType": "mouse", "bubbles": True}
        )
        wait_until(page, "document.querySelector('canvas').dataset.frame > 10")
        assert [sorted(p.buttons) for p in table.session.all_presses][-1] == ["a"]
        assert state_of(page) == "playing"
    finally:
        found.close()


def test_another_page_looks_on_and_takes_the_controls_by_a_click(
    chromium: Any, play: tuple[PlayTable, Watching]
) -> None:
    table, server = play
    first = Opened(chromium, server)
    second = Opened(chromium, server)
    try:
        one = first.open()
        one.wait_for_selector(".veil b")
        other = second.open()
        other.wait_for_selector(".veil b")
        assert other.inner_text(".veil b") == "Another page is playing"
        other.keyboard.down("a")
        one.click(".veil")
        wait_until(other, "document.querySelector('canvas').dataset.frame > 10")
        assert [press.buttons for press in table.session.all_presses] == [frozenset()]
        other.keyboard.up("a")
        other.click(".veil")
        wait_until(
            one, "document.querySelector('.veil b')?.textContent === 'Another page is playing'"
        )
        other.close()
        wait_until(one, "document.querySelector('.veil').textContent.includes('Nobody')")
        assert table.is_paused
        assert first.complaints == second.complaints == []
    finally:
        first.close()
        second.close()


_PADS = """
window.pads = [];
navigator.getGamepads = () => window.pads;
window.plug = (pressed, axes) => {
  const buttons = Array.from({length: 16}, (_, index) => ({pressed: pressed.includes(index)}));
  const isNew = !window.pads.length;
  window.pads = [{buttons, axes}, null];
  if (isNew) window.dispatchEvent(new Event("gamepadconnected"));
};
"""


def test_a_game_pad_holds_its_buttons_until_it_is_unplugged(
    chromium: Any, play: tuple[PlayTable, Watching]
) -> None:
    """The numbers are those of the standard layout: 0 below, 1 on the right, 12 to 15 the pad."""
    table, server = play
    found = Opened(chromium, server)

    def held() -> list[str]:
        return sorted(table.session.all_presses[-1].buttons)

    def played_on(page: Any) -> None:
        page.evaluate("window.since = Number(document.querySelector('canvas').dataset.frame)")
        wait_until(page, "document.querySelector('canvas').dataset.frame > window.since + 20")

    try:
        found.context.add_init_script(_PADS)
        page = found.open()
        page.wait_for_selector(".veil b")
        assert not table.has_begun
        for pressed, axes, expected in (
            ([15], [0, 0], ["right"]),  # the first button begins the play
            ([1, 15], [0, 0], ["a", "right"]),
            ([0], [-0.9, 0.1], ["b", "left"]),
            ([], [0.1, -0.8], ["up"]),
            ([9, 13], [0.4, 0.4], ["down", "start"]),
            ([8], [0, 0], ["select"]),
            ([14, 15], [0, 0], ["right"]),  # no pad holds both
        ):
            page.evaluate(f"plug({pressed}, {axes})")
            played_on(page)
            assert held() == expected
        page.evaluate("window.pads = []")
        played_on(page)
        assert held() == []
        page.evaluate("plug([12], [0, 0])")
        played_on(page)
        assert held() == ["up"]
        assert found.complaints == []
    finally:
        found.close()


def test_notes_are_hidden_until_there_is_one(
    chromium: Any, play: tuple[PlayTable, Watching]
) -> None:
    found = Opened(chromium, play[1])
    try:
        page = found.open()
        page.wait_for_selector(".veil b")
        notes = page.locator("section[aria-label=Notes]")
        assert notes.is_hidden()
        page.keyboard.press("k")
        wait_until(page, "document.querySelector('.said').textContent.includes('kept_1.state')")
        assert notes.is_visible()
    finally:
        found.close()


@pytest.mark.parametrize("width", [400, 1_280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_has_no_fault_of_accessibility(
    chromium: Any, play: tuple[PlayTable, Watching], width: int, scheme: str
) -> None:
    viewport = {"width": width, "height": 900}
    found = Opened(chromium, play[1], viewport=viewport, color_scheme=scheme)
    try:
        page = found.open()
        page.wait_for_selector(".veil b")
        for _ in range(2):
            assert page.evaluate(_ROLES) == []
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            page.keyboard.press("k")
            page.keyboard.press("a", delay=100)
            wait_until(page, "document.querySelector('.veil').hidden")
    finally:
        found.close()
