import re

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.buffers import ReplayBuffer

from game_rl.errors import UsageError
from game_rl.preflight.plain_storage import PlainStorage, parse_storage

TEXT = (
    "shape=504x108x9,dtype=float32,capacity=200_000,per_generation=2_000,generations=25,members=16,"
    "weights=15MB,action=864,saved=0.65,installation=20GB,disk=50GB"
)


def test_every_number_is_read() -> None:
    assert parse_storage(TEXT) == PlainStorage(
        shape=(504, 108, 9),
        dtype="float32",
        capacity=200_000,
        per_generation=2_000,
        generations=25,
        members=16,
        weights_bytes=15_000_000,
        action_bytes=864,
        saved=0.65,
        installation_bytes=20_000_000_000,
        disk_bytes=50_000_000_000,
    )


def test_a_timestep_takes_what_a_replay_of_sb3_takes() -> None:
    """SB3's ReplayBuffer has observations, next observations, actions, rewards, dones, timeouts."""
    buffer = ReplayBuffer(
        10, spaces.Box(0, 255, (4, 36, 40), np.uint8), spaces.Discrete(4), n_envs=1
    )
    kept = (buffer.observations, buffer.next_observations, buffer.actions, buffer.rewards)
    action = buffer.actions.nbytes // 10
    storage = parse_storage(f"shape=4x36x40,capacity=10,action={action}")
    assert storage.pair_bytes * 10 == sum(a.nbytes for a in kept) + 10  # a byte whether it is over


@given(
    capacity=st.integers(1, 10_000),
    per_generation=st.integers(1, 1_000),
    generations=st.integers(1, 30),
    saved=st.floats(0, 0.9),
    disk=st.integers(0, 2_000_000),
)
def test_the_disk_is_full_when_a_plain_loop_says_so(
    capacity: int, per_generation: int, generations: int, saved: float, disk: int
) -> None:
    storage = PlainStorage(
        shape=(10, 10),
        dtype="uint8",
        capacity=capacity,
        per_generation=per_generation,
        generations=generations,
        saved=saved,
        weights_bytes=1_000,
        disk_bytes=disk,
    )
    before, full_at, most = 0, None, 0
    for generation in range(1, generations + 1):
        kept = min(capacity, generation * per_generation)
        file = round(kept * 206 * (1 - saved))  # two observations, action, reward, done
        most = 1_000 + before + file  # the new file is written beside the old one
        if most > disk and full_at is None:
            full_at = generation
        before = file
    assert storage.full_at == full_at
    assert storage.minimum_bytes == most
    assert storage.total_bytes <= most <= storage.recommended_bytes <= storage.comfortable_bytes


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "shape is missing"),
        ("shape=84x84", "capacity is missing"),
        ("shape=84x,capacity=5", "shape must be a whole number above 0, found ''"),
        ("shape=84,capacity=0", "capacity must be a whole number above 0, found '0'"),
        ("shape=84,capacity=5,saved=1.5", "0 to 1, not '1.5'"),
        ("shape=84,capacity=5,capacity=6", "capacity is given twice"),
        ("shape=84,capacity=5,colour=red", "'colour=red' is not one of shape"),
        ("shape=84,capacity=5,dtype=int", "write one of uint8"),
    ],
)
def test_a_wrong_number_is_named(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        parse_storage(text)
