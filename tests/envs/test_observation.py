import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from game_rl.config.schema import frame_shape
from game_rl.envs.observation import FrameFormat, ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.games.parts.part_format import PartFormat, Stretch
from game_rl.games.screen_area import CropSpec

Screen = NDArray[np.uint8]
crops = st.builds(
    lambda top, left, rows, columns: CropSpec(
        top=top, left=left, height=2 * rows, width=2 * columns
    ),
    st.integers(0, 100),
    st.integers(0, 100),
    st.integers(1, 22),
    st.integers(1, 30),
)
seeds = st.integers(0, 2**32 - 1)


def four_shades(seed: int) -> Screen:
    shades = np.random.default_rng(seed).integers(0, 4, (144, 160, 1))
    return np.repeat(255 - 85 * shades, 3, axis=2).astype(np.uint8)


def colours(seed: int) -> Screen:
    return np.random.default_rng(seed).integers(0, 256, (144, 160, 3)).astype(np.uint8)


def pixels(screen: Screen, crop: CropSpec) -> list[list[list[int]]]:
    rows = range(crop.top, crop.top + crop.height)
    columns = range(crop.left, crop.left + crop.width)
    return [[[int(c) for c in screen[y, x]] for x in columns] for y in rows]


def halved(plane: list[list[int]], *, round_up_from: int) -> list[list[int]]:
    """Block sums over 4, rounded by adding `round_up_from` before the division."""
    return [
        [
            (plane[y][x] + plane[y][x + 1] + plane[y + 1][x] + plane[y + 1][x + 1] + round_up_from)
            // 4
            for x in range(0, len(plane[0]), 2)
        ]
        for y in range(0, len(plane), 2)
    ]


@given(seeds, crops)
def test_full_size_grey_of_four_shades_is_the_screen(seed: int, crop: CropSpec) -> None:
    screen = four_shades(seed)
    expected = [[p[0] for p in row] for row in pixels(screen, crop)]
    frame = FrameFormat(size="full", crop=crop).observe(screen)
    assert frame.tolist() == [expected]


@given(seeds, crops)
def test_half_size_grey_of_four_shades_is_the_formula(seed: int, crop: CropSpec) -> None:
    screen = four_shades(seed)
    shades = [[(255 - p[0]) // 85 for p in row] for row in pixels(screen, crop)]
    expected = [
        [
            255
            - 85 * (shades[y][x] + shades[y][x + 1] + shades[y + 1][x] + shades[y + 1][x + 1]) // 4
            for x in range(0, crop.width, 2)
        ]
        for y in range(0, crop.height, 2)
    ]
    assert FrameFormat(crop=crop).observe(screen).tolist() == [expected]


@given(seeds, crops)
def test_luma_is_the_formula(seed: int, crop: CropSpec) -> None:
    screen = colours(seed)
    luma = [[(77 * r + 150 * g + 29 * b) >> 8 for r, g, b in row] for row in pixels(screen, crop)]
    full = FrameFormat(size="full", four_shades=False, crop=crop)
    half = FrameFormat(size="half", four_shades=False, crop=crop)
    assert full.observe(screen).tolist() == [luma]
    assert half.observe(screen).tolist() == [halved(luma, round_up_from=2)]


@given(seeds, crops)
def test_rgb_is_each_channel_by_itself(seed: int, crop: CropSpec) -> None:
    screen = colours(seed)
    channels = [[[p[c] for p in row] for row in pixels(screen, crop)] for c in range(3)]
    full = FrameFormat(size="full", colour="rgb", four_shades=False, crop=crop)
    half = FrameFormat(size="half", colour="rgb", four_shades=False, crop=crop)
    assert full.observe(screen).tolist() == channels
    assert half.observe(screen).tolist() == [halved(c, round_up_from=2) for c in channels]


@pytest.mark.parametrize("size", ["full", "half"])
@pytest.mark.parametrize("colour", ["grey", "rgb"])
@pytest.mark.parametrize("shades", [True, False])
def test_every_format_gives_private_contiguous_frames_of_its_shape(
    size: str, colour: str, shades: bool
) -> None:
    crop = CropSpec(top=8, height=100, width=120)
    frame_format = FrameFormat(size=size, colour=colour, four_shades=shades, crop=crop)  # type: ignore[arg-type]
    screen = four_shades(0)
    frame = frame_format.observe(screen)
    assert frame.shape == frame_format.shape == frame_shape(size, colour, 100, 120)  # type: ignore[arg-type]
    assert frame.dtype == np.uint8
    assert frame.flags.c_contiguous
    assert frame.flags.writeable
    assert not np.shares_memory(frame, screen)


@pytest.mark.parametrize(
    ("size", "shades", "bits", "nbytes"),
    [("full", True, 2, 5_760), ("half", True, 4, 2_880), ("half", False, 8, 5_760)],
)
def test_a_frame_takes_as_few_bits_as_it_has_levels(
    size: str, shades: bool, bits: int, nbytes: int
) -> None:
    frame_format = FrameFormat(size=size, four_shades=shades)  # type: ignore[arg-type]
    screens = [four_shades(seed) if shades else colours(seed) for seed in range(5)]
    n_levels = len(np.unique([frame_format.observe(screen) for screen in screens]))
    assert n_levels in range(2 ** (bits // 2) + 1, 2**bits + 1)
    assert frame_format.packing.bits == bits
    assert frame_format.packing.nbytes == nbytes


def test_the_shape_of_a_whole_screen() -> None:
    assert frame_shape("full", "grey", 144, 160) == (1, 144, 160)
    assert frame_shape("half", "rgb", 144, 160) == (3, 72, 80)


PARTS = (
    ("flags", PartFormat("vector", (13,), 0, (Stretch(3, 32), Stretch(10, 1)))),
    ("tiles", PartFormat.of_indices("grid", (1, 4, 5), 3, is_stacked=True)),
)


def some_observations(form: ObservationFormat, n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    flags = np.concatenate([rng.random((n, 3)), rng.integers(0, 2, (n, 10))], axis=1)
    return {
        "flags": flags.astype(np.float32),
        "screen": (85 * rng.integers(0, 4, (n, *form.shape))).astype(np.uint8),
        "tiles": rng.integers(0, 3, (n, 3, 4, 5)).astype(np.uint8),
    }


def test_an_observation_with_parts_is_a_dict_of_arrays() -> None:
    form = ObservationFormat(FramePacking((1, 6, 4), bits=2), 3, PARTS)
    seen = some_observations(form, 2)
    assert isinstance(form.space, spaces.Dict)
    for env in range(2):
        assert form.space.contains({name: array[env] for name, array in seen.items()})
    assert form.nbytes == sum(array[0].nbytes for array in seen.values())
    assert form.row_bytes == 6 + (12 + 2) + 5


def test_rows_of_stacks_hold_each_frame_once() -> None:
    form = ObservationFormat(FramePacking((1, 6, 4), bits=2), 3, PARTS)
    seen = some_observations(form, 2)
    rows = form.pack_stacks(seen)
    np.testing.assert_array_equal(rows[:, -1], form.pack(form.newest(seen)))
    frames = form.unpack(rows)
    np.testing.assert_array_equal(frames["screen"].reshape(2, 3, 6, 4), seen["screen"])
    np.testing.assert_array_equal(frames["tiles"].reshape(2, 3, 4, 5), seen["tiles"])
    np.testing.assert_array_equal(frames["flags"][:, -1], seen["flags"])
    assert not frames["flags"][:, :-1].any()


def test_parts_need_no_screen() -> None:
    form = ObservationFormat(None, 3, PARTS)
    seen = some_observations(ObservationFormat(FramePacking((1, 6, 4)), 3, PARTS), 2)
    del seen["screen"]
    back = form.unpack(form.pack(form.newest(seen)))
    np.testing.assert_array_equal(back["flags"], seen["flags"])
    np.testing.assert_array_equal(back["tiles"], seen["tiles"][:, -1:])
