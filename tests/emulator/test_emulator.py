import numpy as np
import pytest

from game_rl.emulator.emulator import RecordingEmulator, picture_frames
from tests.emulator.fake_emulator import FakeEmulator


@pytest.mark.parametrize(
    ("frame_skip", "expected"), [(1, 1), (2, 2), (4, 4), (5, 1), (6, 3), (8, 4), (24, 4)]
)
def test_pictures_are_evenly_apart_and_at_most_four_frames(frame_skip: int, expected: int) -> None:
    assert picture_frames(frame_skip) == expected
    assert frame_skip % expected == 0


def test_watching_changes_nothing_and_keeps_every_picture() -> None:
    plain, watched = FakeEmulator(), RecordingEmulator(FakeEmulator(), picture_frames=2)
    expected = []
    for emulator in (plain, watched):
        emulator.hold(["right"])
    for frames in (8, 5, 4):
        watched.tick(frames, render=True)
        for part in [2] * (frames // 2) + [1] * (frames % 2):
            plain.tick(part, render=True)
            expected.append(plain.screen().copy())
        watched.tick(3, render=False)
        plain.tick(3, render=False)
    np.testing.assert_array_equal(watched.take_pictures(), expected)
    assert watched.take_pictures() == []
    assert watched.save_state() == plain.save_state()
    np.testing.assert_array_equal(watched.screen(), plain.screen())
