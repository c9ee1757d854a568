import numpy as np

from game_rl.game_check.button_trial import ADDRESSES, answers, read_memory, try_buttons
from tests.emulator.fake_emulator import FRAME_COUNT, RESULT, FakeEmulator, X


def test_only_the_players_position_moves_with_left_and_right() -> None:
    emulator = FakeEmulator()
    emulator.tick(1, render=True)
    trial = try_buttons(emulator, emulator.save_state())
    assert [byte.address for byte in trial.moving] == [X]
    (byte,) = trial.moving
    assert byte.buttons == ("left", "right")
    assert byte.is_two_way
    assert byte.is_smooth
    assert X in trial.changed
    assert FRAME_COUNT not in trial.changed
    assert trial.changes_screen("b")
    assert not trial.changes_screen("up")
    assert trial.n_directions == 2


def test_where_the_game_is_over_no_direction_is_answered() -> None:
    emulator = FakeEmulator()
    emulator.tick(1, render=True)
    assert answers(emulator, emulator.save_state())
    emulator.write(RESULT, 1)
    state = emulator.save_state()
    assert not answers(emulator, state)
    assert try_buttons(emulator, state).moving == ()


def test_memory_is_read_as_single_bytes_are() -> None:
    emulator = FakeEmulator()
    emulator.tick(300, render=False)
    found = read_memory(emulator)
    np.testing.assert_array_equal(found, [emulator.read(address) for address in ADDRESSES])
