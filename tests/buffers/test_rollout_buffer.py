"""The packed rollout buffer against SB3's own, which stores whole stacks."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from stable_baselines3.common.buffers import RolloutBuffer

from game_rl.buffers.rollout_buffer import PackedRolloutBuffer
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking

Bytes = NDArray[np.uint8]
ACTIONS = spaces.Discrete(9)


@dataclass(frozen=True)
class Shape:
    n_steps: int
    n_envs: int
    frame_stack: int
    bits: int
    channels: int

    @property
    def packing(self) -> FramePacking:
        return FramePacking((self.channels, 3, 5), bits=self.bits, is_one_plane=self.bits == 2)  # type: ignore[arg-type]

    @property
    def space(self) -> spaces.Box:
        return spaces.Box(0, 255, (self.frame_stack * self.channels, 3, 5), np.uint8)

    def buffers(self) -> tuple[RolloutBuffer, PackedRolloutBuffer]:
        keywords = {"device": "cpu", "gamma": 0.9, "gae_lambda": 0.8, "n_envs": self.n_envs}
        return (
            RolloutBuffer(self.n_steps, self.space, ACTIONS, **keywords),  # type: ignore[arg-type]
            PackedRolloutBuffer(
                self.n_steps,
                self.space,
                ACTIONS,
                observation_format=ObservationFormat(self.packing, self.frame_stack),
                **keywords,  # type: ignore[arg-type]
            ),
        )


class Play:
    """Stacks as a naive vec env would make them: shift, or start again with zeros."""

    def __init__(self, shape: Shape, rng: np.random.Generator, end_chance: float) -> None:
        self.shape, self.rng, self.end_chance = shape, rng, end_chance
        self.stacks = np.zeros((shape.n_envs, *shape.space.shape), np.uint8)
        self.starts = np.ones(shape.n_envs, np.bool_)
        for env in range(shape.n_envs):
            self._push(env, start=True)

    def step(self) -> None:
        self.starts = self.rng.random(self.shape.n_envs) < self.end_chance
        self.stacks = self.stacks.copy()
        for env in range(self.shape.n_envs):
            self._push(env, start=bool(self.starts[env]))

    def _push(self, env: int, *, start: bool) -> None:
        channels = self.shape.channels
        stack = self.stacks[env]
        stack[:-channels] = 0 if start else stack[channels:].copy()
        codes = self.rng.integers(0, self.shape.packing.nbytes * 7, self.shape.packing.nbytes)
        packed = codes.astype(np.uint8)
        if self.shape.bits == 4:  # thirteen levels, not sixteen
            packed = (packed // 16 % 13 * 16 + packed % 13).astype(np.uint8)
        stack[-channels:] = self.shape.packing.unpack(packed)


shapes = st.builds(
    Shape,
    n_steps=st.integers(1, 9),
    n_envs=st.integers(1, 3),
    frame_stack=st.integers(1, 5),
    bits=st.sampled_from([2, 4, 8]),
    channels=st.sampled_from([1, 3]),
)


@given(shapes, st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_minibatches_are_sb3s_bit_for_bit(shape: Shape, seed: int, end_chance: float) -> None:
    """Over three rollouts, so that stacks reach back across a rollout's start."""
    rng = np.random.default_rng(seed)
    theirs, ours = shape.buffers()
    play = Play(shape, rng, end_chance)
    batch_size = int(rng.integers(1, shape.n_steps * shape.n_envs + 1))
    for _ in range(3):
        for buffer in (theirs, ours):
            buffer.reset()
        for _ in range(shape.n_steps):
            row = (
                play.stacks,
                rng.integers(0, 9, (shape.n_envs, 1)),
                rng.normal(size=shape.n_envs).astype(np.float32),
                play.starts,
                torch.from_numpy(rng.normal(size=(shape.n_envs, 1)).astype(np.float32)),
                torch.from_numpy(rng.normal(size=shape.n_envs).astype(np.float32)),
            )
            for buffer in (theirs, ours):
                buffer.add(*row)
            play.step()
        last_values = torch.from_numpy(rng.normal(size=(shape.n_envs, 1)).astype(np.float32))
        for buffer in (theirs, ours):
            buffer.compute_returns_and_advantage(last_values, play.starts)
        for _ in range(2):
            assert_same_minibatches(theirs, ours, batch_size, seed)
        np.testing.assert_array_equal(theirs.values.flatten(), ours.values.flatten())
        np.testing.assert_array_equal(theirs.returns.flatten(), ours.returns.flatten())


def assert_same_minibatches(
    theirs: RolloutBuffer, ours: PackedRolloutBuffer, batch_size: int, seed: int
) -> None:
    np.random.seed(seed)  # noqa: NPY002 - SB3 draws from it
    expected = list(theirs.get(batch_size))
    np.random.seed(seed)  # noqa: NPY002
    found = list(ours.get(batch_size))
    assert len(found) == len(expected)
    for a, b in zip(expected, found, strict=True):
        for name in a._fields:
            theirs_, ours_ = getattr(a, name), getattr(b, name)
            assert ours_.dtype == theirs_.dtype, name
            assert torch.equal(ours_, theirs_), name


def test_frames_take_a_stack_s_share_of_the_bits() -> None:
    theirs, ours = Shape(n_steps=64, n_envs=2, frame_stack=4, bits=2, channels=3).buffers()
    stored = theirs.observations.nbytes
    pixels = 3 * 5
    assert stored == 64 * 2 * 4 * 3 * pixels
    assert ours.frames.nbytes == (64 + 3) * 2 * -(-pixels // 4)


def test_a_sample_is_no_view_of_what_is_stored() -> None:
    shape = Shape(n_steps=1, n_envs=1, frame_stack=1, bits=8, channels=1)
    _, buffer = shape.buffers()
    ones = np.ones((1, 1, 3, 5), np.uint8)
    zero, start = np.zeros(1, np.float32), np.ones(1)
    buffer.add(ones, np.zeros((1, 1)), zero, start, torch.zeros(1), torch.zeros(1))
    next(iter(buffer.get())).observations.zero_()
    assert next(iter(buffer.get())).observations.all()


def test_stacks_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"stacks are \(4, 3, 5\), not \(3, 3, 5\)"):
        PackedRolloutBuffer(
            2,
            spaces.Box(0, 255, (4, 3, 5), np.uint8),
            ACTIONS,
            observation_format=ObservationFormat(FramePacking((1, 3, 5)), 3),
        )
