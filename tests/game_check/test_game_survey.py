from dataclasses import replace

import numpy as np
import pytest

from game_rl.game_check.button_trial import try_buttons
from game_rl.game_check.game_survey import GameSurvey, StatusBar, _status_bar, survey_game
from game_rl.game_check.menu_search import PlayableStart, StartWay
from tests.emulator.fake_emulator import RESULT, FakeEmulator, X


def survey(emulator: FakeEmulator, seed: int = 0) -> GameSurvey:
    emulator.tick(1, render=True)
    state = emulator.save_state()
    start = PlayableStart(StartWay((), 1), try_buttons(emulator, state), state, ())

    def ignore(_: int, __: int) -> None: ...

    return survey_game(emulator, start, seed=seed, progress=ignore)


@pytest.mark.slow
def test_of_a_game_its_buttons_place_and_end_are_found() -> None:
    found = survey(FakeEmulator())
    assert found.buttons == ("left", "right", "b")
    (place,) = found.place
    assert (place.address, place.type, place.bank) == (X, "u8", None)
    assert found.ending is not None
    assert found.ending.address == RESULT
    assert set(found.ending.values) <= {1, 2}
    assert found.ending.is_flag
    assert found.n_ended == found.n_episodes == found.ending.episodes
    assert 0 < found.median_frames < 14_400
    assert len(found.moments) > 1


@pytest.mark.slow
def test_a_survey_is_decided_by_its_seed() -> None:
    first = survey(FakeEmulator(), seed=3)
    again = survey(FakeEmulator(), seed=3)
    assert replace(first, moments=()) == replace(again, moments=())
    for one, other in zip(first.moments, again.moments, strict=True):
        np.testing.assert_array_equal(one.screen, other.screen)


@pytest.mark.parametrize("top", [0, 128])
def test_a_band_that_seldom_changes_beside_rows_that_do_is_a_status_bar(top: int) -> None:
    screens = np.random.default_rng(0).integers(4, size=(40, 144, 160)).astype(np.uint8)
    screens[:, top : top + 16] = 0
    screens[20:, top + 4, 30:38] = 1  # a life is lost
    assert _status_bar(screens) == StatusBar(top, 16)


def test_what_never_changes_is_no_status_bar_and_neither_is_a_still_screen() -> None:
    screens = np.random.default_rng(0).integers(4, size=(40, 144, 160)).astype(np.uint8)
    screens[:, 120:] = 0
    assert _status_bar(screens) is None
    assert _status_bar(np.zeros((40, 144, 160), np.uint8)) is None
    assert _status_bar(screens[:1]) is None
