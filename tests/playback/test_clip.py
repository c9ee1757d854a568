from itertools import chain
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageSequence

from game_rl.playback.clip import last_of_mp4, write_gif, write_mp4

Pictures = list[NDArray[np.uint8]]


def shown_by(path: Path) -> Pictures:
    """What a viewer shows every hundredth of a second, at half of its size."""
    with Image.open(path) as gif:
        return list(
            chain.from_iterable(
                [np.asarray(frame.convert("RGB"))[::2, ::2]] * (frame.info["duration"] // 10)
                for frame in ImageSequence.Iterator(gif)
            )
        )


def moving(n: int, colours: NDArray[np.uint8], rng: np.random.Generator) -> Pictures:
    """A picture of noise in which one rectangle after another changes, and sometimes none."""
    pictures = [colours[rng.integers(0, len(colours), (6, 5))]]
    for _ in range(n - 1):
        after = pictures[-1].copy()
        top, left = rng.integers(0, 6), rng.integers(0, 5)
        if rng.random() < 0.6:
            after[top : top + 2, left : left + 3] = colours[rng.integers(len(colours))]
        pictures.append(after)
    return pictures


@pytest.mark.parametrize("n_colours", [1, 2, 4, 15, 16, 255, 256])
def test_a_gif_shows_every_picture_exactly_where_there_are_256_colours_or_fewer(
    n_colours: int, tmp_path: Path
) -> None:
    rng = np.random.default_rng(n_colours)
    colours = rng.integers(0, 256, (n_colours, 3), dtype=np.uint8)
    pictures = moving(40, colours, rng)
    write_gif(iter(pictures), 0.07, tmp_path / "clip.gif")
    shown = shown_by(tmp_path / "clip.gif")
    np.testing.assert_array_equal(shown, np.repeat(pictures, 7, axis=0))
    with Image.open(tmp_path / "clip.gif") as gif:
        assert gif.info["loop"] == 0
        assert gif.size == (10, 12)


def test_each_pixel_of_the_screen_is_a_square_of_four(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (5, 4, 3), dtype=np.uint8)
    write_gif([picture], 0.02, tmp_path / "clip.gif")
    with Image.open(tmp_path / "clip.gif") as gif:
        found = np.asarray(gif.convert("RGB"))
    np.testing.assert_array_equal(found, np.kron(picture, np.ones((2, 2, 1), np.uint8)))


def test_a_picture_that_stays_longer_than_a_gif_can_say_stays_as_long(tmp_path: Path) -> None:
    still = np.zeros((4, 4, 3), np.uint8)
    write_gif([still] * 5, 300.0, tmp_path / "clip.gif")
    with Image.open(tmp_path / "clip.gif") as gif:
        lengths = [frame.info["duration"] for frame in ImageSequence.Iterator(gif)]
    assert sum(lengths) == 5 * 300_000
    assert max(lengths) <= 655_350


def test_more_colours_come_close(tmp_path: Path) -> None:
    ramp = np.arange(48, dtype=np.uint8) * 5
    picture = np.stack(np.broadcast_arrays(ramp[:, None], ramp[None, :], np.uint8(90)), axis=2)
    write_gif([picture, picture[::-1]], 0.02, tmp_path / "clip.gif")
    for found, expected in zip(
        shown_by(tmp_path / "clip.gif")[::2], (picture, picture[::-1]), strict=True
    ):
        assert np.abs(found.astype(int) - expected).mean() < 8


def test_an_mp4_has_a_frame_for_each_picture_in_colours_that_come_close(tmp_path: Path) -> None:
    colours = np.array([[200, 30, 40], [30, 160, 60], [60, 90, 220]], np.uint8)
    pictures = [np.broadcast_to(colour, (144, 160, 3)) for colour in colours]
    write_mp4(pictures, 1 / 15, tmp_path / "clip.mp4")
    with av.open(str(tmp_path / "clip.mp4")) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert [frame.shape for frame in frames] == [(288, 320, 3)] * 3
    for frame, colour in zip(frames, colours, strict=True):
        assert np.abs(frame.astype(int) - colour).mean() < 8


def test_the_last_picture_of_an_mp4_is_found_however_long_it_is(tmp_path: Path) -> None:
    file = tmp_path / "clip.mp4"
    for n in (1, 2, 600):
        shades = np.linspace(20, 240, n).astype(np.uint8)
        write_mp4((np.full((144, 160, 3), shade) for shade in shades), 1 / 15, file)
        with av.open(str(file)) as container:
            *_, last = container.decode(video=0)
        np.testing.assert_array_equal(
            last_of_mp4(file.read_bytes()), last.to_ndarray(format="rgb24")
        )
    content = file.read_bytes()
    for damaged in (b"", b"an mp4", content[: len(content) // 2]):
        with pytest.raises(OSError, match="it is no MP4, or is damaged"):
            last_of_mp4(damaged)
