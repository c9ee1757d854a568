"""The form of a part: what is packed comes back, in as few bytes as it has information."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.envs.observation import part_space
from game_rl.games.parts.part_format import PartFormat, Stretch, bits_of

STRETCHES = st.lists(
    st.builds(Stretch, st.integers(1, 21), st.sampled_from((1, 2, 4, 8, 16, 32))),
    min_size=1,
    max_size=4,
)


def some_values(rng: np.random.Generator, stretch: Stretch, n: int) -> np.ndarray:
    if stretch.bits == 32:
        return rng.standard_normal((n, stretch.size)).astype(np.float32)
    return rng.integers(0, 1 << stretch.bits, (n, stretch.size)).astype(np.float32)


@given(stretches=STRETCHES, seed=st.integers(0, 99), batch=st.sampled_from(((), (3,), (2, 4))))
def test_a_packed_vector_comes_back(
    stretches: list[Stretch], seed: int, batch: tuple[int, ...]
) -> None:
    rng, n = np.random.default_rng(seed), int(np.prod(batch))
    values = np.concatenate([some_values(rng, each, n) for each in stretches], axis=1)
    part = PartFormat("vector", (values.shape[1],), 0, tuple(stretches))
    packed = part.pack(values.reshape(*batch, -1))
    assert packed.shape == (*batch, part.nbytes)
    assert part.nbytes == sum(-(-each.size * each.bits // 8) for each in stretches)
    back = part.unpack(packed)
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, values.reshape(*batch, -1))


@given(n_values=st.integers(2, 65_536), seed=st.integers(0, 99))
def test_a_packed_grid_comes_back(n_values: int, seed: int) -> None:
    part = PartFormat.of_indices("grid", (1, 3, 5), n_values)
    grid = np.random.default_rng(seed).integers(0, n_values, (2, 1, 3, 5)).astype(part.dtype)
    back = part.unpack(part.pack(grid))
    assert back.dtype == part.dtype
    np.testing.assert_array_equal(back, grid)
    assert part_space(part, 1).contains(grid[0])


def test_flags_take_a_bit_each() -> None:
    assert PartFormat("vector", (2488,), 0, (Stretch(2488, 1),)).nbytes == 311


@pytest.mark.parametrize(
    ("n_values", "bits"), [(2, 1), (3, 2), (4, 2), (5, 4), (17, 8), (256, 8), (257, 16)]
)
def test_an_index_takes_the_bits_of_the_largest(n_values: int, bits: int) -> None:
    assert bits_of(n_values) == bits


@pytest.mark.parametrize("value", [2, -1, 0.5, np.nan])
def test_a_flag_that_is_none_is_refused(value: float) -> None:
    part = PartFormat("vector", (3,), 0, (Stretch(1, 32), Stretch(2, 1)))
    with pytest.raises(ValueError, match="not a whole number from 0 to 1"):
        part.pack(np.array([0.5, 1, value], np.float32))


def test_a_stacked_part_is_longer_along_its_first_axis() -> None:
    grid = PartFormat.of_indices("grid", (1, 3, 5), 4, is_stacked=True)
    assert part_space(grid, 4).shape == (4, 3, 5)
    assert part_space(grid, 1).shape == (1, 3, 5)
