import numpy as np
import pytest

from game_rl.emulator.emulator import Button, Emulator
from game_rl.errors import EmulatorError
from tests.emulator import fake_emulator as fake
from tests.emulator.fake_emulator import FakeEmulator


def test_it_keeps_the_protocol() -> None:
    emulator: Emulator = FakeEmulator()
    assert emulator.screen().shape == (144, 160, 3)


@pytest.mark.parametrize(
    ("buttons", "address", "value"),
    [(["right"], fake.X, 150), (["left"], fake.X, 0), (["b"], fake.HEALTH, 0), ([], fake.X, 80)],
)
def test_buttons_do_what_the_docstring_says(
    buttons: list[Button], address: int, value: int
) -> None:
    emulator = FakeEmulator()
    emulator.hold(buttons)
    emulator.tick(100, render=False)
    assert emulator.read(address) == value
    assert emulator.read(fake.FRAME_COUNT) == 100


def test_results_are_a_win_and_a_loss() -> None:
    for buttons, result in ((["right"], 1), (["b"], 2), (["left"], 0)):
        emulator = FakeEmulator()
        emulator.hold(buttons)  # type: ignore[arg-type]
        emulator.tick(100, render=False)
        assert emulator.read(fake.RESULT) == result


def test_a_state_brings_back_game_and_picture_without_buttons() -> None:
    emulator = FakeEmulator()
    emulator.hold(["right"])
    emulator.tick(10, render=True)
    state, picture = emulator.save_state(), emulator.screen().copy()
    emulator.tick(20, render=True)
    assert not np.array_equal(emulator.screen(), picture)
    emulator.load_state(state)
    assert np.array_equal(emulator.screen(), picture)
    emulator.tick(5, render=False)
    assert emulator.read(fake.X) == 90


def test_only_rendered_frames_are_drawn() -> None:
    emulator = FakeEmulator()
    emulator.tick(1, render=True)
    picture = emulator.screen().copy()
    emulator.hold(["right"])
    emulator.tick(5, render=False)
    assert np.array_equal(emulator.screen(), picture)


def test_four_shades_or_three_unlike_channels() -> None:
    grey, colour = FakeEmulator(), FakeEmulator(colour=True)
    for emulator in (grey, colour):
        emulator.tick(1, render=True)
    assert set(np.unique(grey.screen())) == {0, 85, 170, 255}
    assert not np.array_equal(colour.screen()[:, :, 0], colour.screen()[:, :, 2])


def test_a_closed_one_says_so() -> None:
    emulator = FakeEmulator()
    emulator.close()
    with pytest.raises(EmulatorError, match="closed"):
        emulator.tick(1, render=True)
