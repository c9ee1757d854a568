"""The layout against the arrays that are really allocated, and against SB3's."""

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer

from game_rl.buffers.layout import (
    REPLAY_LAYOUTS,
    pond_layout,
    rollout_buffer_layout,
    total_bytes,
)
from game_rl.buffers.pond import Pond
from game_rl.buffers.replay_buffer import REPLAY_STORES
from game_rl.buffers.rollout_buffer import PackedRolloutBuffer
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking


def arrays_of(buffer: RolloutBuffer) -> dict[str, tuple[tuple[int, ...], np.dtype[np.generic]]]:
    return {
        name: (value.shape, value.dtype)
        for name, value in vars(buffer).items()
        if isinstance(value, np.ndarray)
    }


@pytest.mark.parametrize(
    ("n_steps", "n_envs", "frame_stack", "bits"), [(16, 2, 4, 4), (5, 1, 1, 2), (7, 3, 2, 8)]
)
def test_the_layout_is_what_is_allocated(
    n_steps: int, n_envs: int, frame_stack: int, bits: int
) -> None:
    packing = FramePacking((1, 36, 40), bits=bits)  # type: ignore[arg-type]
    observation_format = ObservationFormat(packing, frame_stack)
    space = spaces.Box(0, 255, (frame_stack, 36, 40), np.uint8)
    actions = spaces.Discrete(9)
    ours = PackedRolloutBuffer(
        n_steps, space, actions, n_envs=n_envs, observation_format=observation_format
    )
    layout = rollout_buffer_layout(observation_format, n_steps=n_steps, n_envs=n_envs)
    assert {a.name: (a.shape, np.dtype(a.dtype)) for a in layout} == arrays_of(ours)
    assert total_bytes(layout) == sum(
        value.nbytes for value in vars(ours).values() if isinstance(value, np.ndarray)
    )
    theirs = arrays_of(RolloutBuffer(n_steps, space, actions, n_envs=n_envs))
    small = {name: array for name, array in arrays_of(ours).items() if name != "frames"}
    del theirs["observations"]
    assert small == theirs


@pytest.mark.parametrize(
    ("capacity", "n_envs", "frame_stack", "bits", "n_actions"),
    [(64, 2, 4, 4, 9), (7, 3, 1, 2, 300), (50, 1, 3, 8, 2)],
)
def test_the_layout_of_a_pond_is_what_is_allocated(
    capacity: int, n_envs: int, frame_stack: int, bits: int, n_actions: int
) -> None:
    packing = FramePacking((1, 36, 40), bits=bits)  # type: ignore[arg-type]
    observation_format = ObservationFormat(packing, frame_stack)
    pond = Pond(
        capacity=capacity,
        n_envs=n_envs,
        n_actions=n_actions,
        observation_format=observation_format,
        rng=np.random.default_rng(0),
    )
    layout = pond_layout(observation_format, capacity=capacity, n_envs=n_envs, n_actions=n_actions)
    frames = pond._frames.numpy()
    real = {"frames": frames} | pond._small
    assert {a.name: (a.shape, np.dtype(a.dtype)) for a in layout} == {
        name: (array.shape, array.dtype) for name, array in real.items()
    }
    assert total_bytes(layout) == sum(array.nbytes for array in real.values())


def test_every_replay_store_has_a_layout_of_as_many_bytes() -> None:
    assert REPLAY_STORES.keys() == REPLAY_LAYOUTS.keys()
    observation_format = ObservationFormat(FramePacking((1, 36, 40), bits=2), 4)
    sizes = {"capacity": 60, "n_envs": 3, "n_actions": 9}
    for name, make in REPLAY_STORES.items():
        store = make(**sizes, observation_format=observation_format, rng=np.random.default_rng(0))
        assert store.nbytes == total_bytes(REPLAY_LAYOUTS[name](observation_format, **sizes))
