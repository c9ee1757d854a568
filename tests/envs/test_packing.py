import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from game_rl.envs.observation import FrameFormat
from game_rl.envs.packing import FramePacking
from game_rl.games.screen_area import CropSpec

formats = st.builds(
    FrameFormat,
    size=st.sampled_from(["full", "half"]),
    colour=st.sampled_from(["grey", "rgb"]),
    four_shades=st.booleans(),
    crop=st.builds(
        lambda rows, columns: CropSpec(height=2 * rows, width=2 * columns),
        st.integers(1, 20),
        st.integers(1, 20),
    ),
)
seeds = st.integers(0, 2**32 - 1)


def screens(seed: int, n: int, *, four_shades: bool) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    if four_shades:
        return [np.repeat(85 * rng.integers(0, 4, (144, 160, 1)), 3, 2).astype(np.uint8)] * n
    return [rng.integers(0, 256, (144, 160, 3)).astype(np.uint8) for _ in range(n)]


@given(formats, seeds, st.integers(1, 3))
def test_every_frame_comes_back_bit_for_bit(
    frame_format: FrameFormat, seed: int, n_frames: int
) -> None:
    packing = frame_format.packing
    pictures = screens(seed, n_frames, four_shades=frame_format.four_shades)
    frames = np.stack([frame_format.observe(picture) for picture in pictures])
    packed = packing.pack(frames)
    assert packed.shape == (n_frames, packing.nbytes)
    assert packed.dtype == np.uint8
    np.testing.assert_array_equal(packing.unpack(packed), frames)


@pytest.mark.parametrize("colour", ["grey", "rgb"])
@pytest.mark.parametrize("four_shades", [True, False])
def test_many_frames_are_packed_as_each_by_itself(colour: str, four_shades: bool) -> None:
    frame_format = FrameFormat(size="full", colour=colour, four_shades=four_shades)  # type: ignore[arg-type]
    pictures = [*screens(0, 1, four_shades=four_shades), *screens(1, 1, four_shades=four_shades)]
    frames = np.stack([frame_format.observe(picture) for picture in pictures * 7])
    packing = frame_format.packing
    one_by_one = [packing.pack(frame) for frame in frames]
    np.testing.assert_array_equal(packing.pack(frames), one_by_one)
    stacks = frames.reshape(2, 7, *packing.shape)
    np.testing.assert_array_equal(packing.pack(stacks[:, 3]), one_by_one[3::7])
    np.testing.assert_array_equal(packing.pack(stacks).reshape(14, -1), one_by_one)


def test_one_pixel_among_many_frames_is_refused() -> None:
    packing = FramePacking((1, 144, 160), bits=2)
    frames = np.zeros((40, 1, 144, 160), np.uint8)
    frames[33, 0, 100, 7] = 98
    with pytest.raises(ValueError, match="a pixel of 98"):
        packing.pack(frames)


@given(formats, seeds)
def test_torch_unpacks_as_numpy_does(frame_format: FrameFormat, seed: int) -> None:
    packing = frame_format.packing
    pictures = screens(seed, 3, four_shades=frame_format.four_shades)
    packed = packing.pack(np.stack([frame_format.observe(picture) for picture in pictures]))
    packed = np.stack([packed, packed[::-1]])
    expected = packing.unpack(packed)
    found = torch.empty((2, 3, int(np.prod(packing.shape))), dtype=torch.uint8)
    packing.unpack_into(torch.from_numpy(packed), found)
    np.testing.assert_array_equal(found.numpy(), expected.reshape(found.shape))


def test_no_two_frames_are_packed_alike() -> None:
    packing = FramePacking((1, 1, 2), bits=4)
    levels = [(85 * q + 3) // 4 for q in range(13)]
    frames = np.array([[[[a, b]]] for a in levels for b in levels], np.uint8)
    assert len(np.unique(packing.pack(frames), axis=0)) == 13 * 13


def test_black_is_packed_as_zeros() -> None:
    """What a stack has before its episode's first frame needs no code of its own."""
    for bits in (2, 4, 8):
        packing = FramePacking((3, 5, 7), bits=bits, is_one_plane=bits == 2)
        assert not packing.pack(np.zeros((2, 3, 5, 7), np.uint8)).any()


@pytest.mark.parametrize("bits", [2, 4])
def test_a_pixel_that_would_be_lost_is_refused(bits: int) -> None:
    packing = FramePacking((1, 2, 2), bits=bits)  # type: ignore[arg-type]
    frame = np.zeros((1, 2, 2), np.uint8)
    frame[0, 1, 1] = 99
    with pytest.raises(ValueError, match="a pixel of 99"):
        packing.pack(frame)


def test_channels_that_differ_are_refused_where_one_is_kept() -> None:
    packing = FramePacking((3, 1, 1), bits=2, is_one_plane=True)
    with pytest.raises(ValueError, match="the same in each channel"):
        packing.pack(np.array([[[0]], [[85]], [[0]]], np.uint8))
