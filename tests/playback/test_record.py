from pathlib import Path

import numpy as np
import pytest

from game_rl.playback.record import _paletted


@pytest.mark.parametrize("n_colours", [1, 4, 256])
def test_up_to_256_colours_are_kept_exactly(n_colours: int) -> None:
    rng = np.random.default_rng(n_colours)
    colours = rng.integers(0, 256, (n_colours, 3), dtype=np.uint8)
    pictures = [colours[rng.integers(0, n_colours, (6, 5))] for _ in range(3)]
    for picture, frame in zip(pictures, _paletted(pictures), strict=True):
        shown = np.asarray(frame.convert("RGB"))
        np.testing.assert_array_equal(shown[::2, ::2], picture)
        np.testing.assert_array_equal(shown[1::2, 1::2], picture)


def test_more_colours_come_close(tmp_path: Path) -> None:
    ramp = np.arange(48, dtype=np.uint8) * 5
    picture = np.stack(np.broadcast_arrays(ramp[:, None], ramp[None, :], np.uint8(90)), axis=2)
    frame = _paletted([picture, picture])[0]
    frame.save(tmp_path / "frame.gif")
    difference = np.asarray(frame.convert("RGB"))[::2, ::2].astype(int) - picture
    assert np.abs(difference).mean() < 8
