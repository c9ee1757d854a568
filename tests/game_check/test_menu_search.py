import pytest

from game_rl.emulator.emulator import Button, Emulator
from game_rl.emulator.pyboy_emulator import PyBoyEmulator
from game_rl.game_check.menu_search import MenuSearch, MenuSearchResult
from game_rl.games.definition import load_game
from game_rl.games.start_state import play_script
from tests.emulator.fake_emulator import FakeEmulator, X

_TITLE_FRAMES = 70
_PLAY_FRAMES = 25
_STAGE = 0xC010
_SINCE = 0xC011  # frames in this stage, at most 255


class MenuEmulator(FakeEmulator):
    """A title that START leaves after 70 frames, a menu that A leaves, and play after 25 more.

    In the menu, right moves a cursor by one step a press.
    """

    def _advance(self) -> None:
        memory, held = self._memory, self._wanted
        stage = memory[_STAGE]
        if stage == 2 and memory[_SINCE] >= _PLAY_FRAMES:
            self._wanted = held - {"start"}
            super()._advance()
            self._wanted = held
            return
        memory[_SINCE] = min(255, memory[_SINCE] + 1)
        is_left = stage == 0 and "start" in held and memory[_SINCE] > _TITLE_FRAMES
        if is_left or (stage == 1 and "a" in held):
            memory[_STAGE] += 1
            memory[_SINCE] = 0
        if stage == 1:
            memory[0xC012] = "right" in held

    def _draw(self) -> None:
        super()._draw()
        if self._memory[_STAGE] < 2:
            self._screen[:] = 40 * self._memory[_STAGE] + 90 * self._memory[0xC012]
            self._screen[:8] = 255


def search(emulator: Emulator, limit_s: float = 600) -> MenuSearchResult:
    def ignore(_: int, __: int) -> None: ...

    return MenuSearch(emulator, seed=0, limit_s=limit_s, progress=ignore).run()


@pytest.mark.slow
def test_the_shortest_script_leads_through_the_menu_to_the_first_frame_that_obeys() -> None:
    found = search(MenuEmulator()).start
    assert found is not None
    assert found.is_smooth
    assert [press.button for press in found.way.presses] == ["start", "a"]
    first, second = found.way.presses
    # START is seen in one of its four frames, from the 71st frame of the title on
    assert first.wait == _TITLE_FRAMES - 3
    assert second.wait <= 2
    assert found.way.wait == pytest.approx(_PLAY_FRAMES, abs=4)
    emulator = MenuEmulator()
    play_script(emulator, found.way.script)
    before = emulator.read(X)
    emulator.hold(("right",))
    emulator.tick(1, render=True)
    assert emulator.read(X) == before + 1
    assert emulator.read(_STAGE) == 2


class DeadEmulator(FakeEmulator):
    def _advance(self) -> None: ...


def test_a_game_that_never_changes_is_given_up_soon() -> None:
    result = search(DeadEmulator())
    assert result.start is None
    assert result.presses < 100
    assert result.screens
    assert not result.is_cut_off


def test_a_search_without_time_ends_at_once() -> None:
    result = search(MenuEmulator(), limit_s=0)
    assert result.presses <= 5
    assert result.is_cut_off


_MOVED: dict[str, tuple[str, tuple[Button, Button]]] = {
    "duel": ("player_x", ("left", "right")),
    "beacon": ("player_x", ("left", "right")),
    "seasons": ("runner_x", ("left", "right")),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", _MOVED)
def test_the_bundled_games_are_played_from_the_found_start(name: str) -> None:
    """The game's own variables, from its symbol file, say whether its player obeys."""
    game = load_game(name)
    variable, buttons = _MOVED[name]
    emulator = PyBoyEmulator(game.rom, colour=game.is_colour)
    found = search(emulator).start
    assert found is not None
    assert found.way.frames <= 130
    read = game.variables[[v.name for v in game.variables].index(variable)].read
    fresh = PyBoyEmulator(game.rom, colour=game.is_colour)
    play_script(fresh, found.way.script)
    assert fresh.save_state() == found.state
    moved = {}
    for button in buttons:
        fresh.load_state(found.state)
        before = read(fresh)
        fresh.hold((button,))
        fresh.tick(8, render=False)
        moved[button] = read(fresh) - before
    assert moved["left"] < 0 < moved["right"]
