"""A dumb Lake of parts: whole observations in a list, and the play that fills both."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from game_rl.envs.observation import ObservationFormat
from game_rl.lake.sampler import Batch
from game_rl.lake.writer import LakeWriter
from tests.buffers.part_plays import Frame, some_parts


@dataclass(frozen=True)
class PartsTransition:
    seen: Frame
    action: int
    reward: float
    following: Frame
    terminated: bool
    truncated: bool


@dataclass
class PartsPlay:
    """Random episodes of some envs; what a writer is given is also kept whole.

    Attributes:
        frames: of each env, the frames of its episode so far.
        stored: of each env, all its transitions in order.
    """

    form: ObservationFormat
    rng: np.random.Generator
    n_envs: int = 1
    end_chance: float = 0.15
    frames: list[list[Frame]] = field(default_factory=list)
    stored: list[list[PartsTransition]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stored = [[] for _ in range(self.n_envs)]
        self.frames = [[self._frame()] for _ in range(self.n_envs)]

    def _frame(self) -> Frame:
        frames = some_parts(self.rng, self.form, 1)
        return {name: array[0] for name, array in frames.items()}

    def seen(self, env: int) -> Frame:
        """The observation: of stacked parts the newest arrays, zeros before the episode."""
        frames, found = self.frames[env], {}
        for name, n in self.form.stacks.items():
            arrays = [np.zeros_like(frames[0][name])] * n + [frame[name] for frame in frames]
            found[name] = np.concatenate(arrays[-n:])
        return found

    def batch(self) -> Frame:
        seen = [self.seen(env) for env in range(self.n_envs)]
        return {name: np.stack([each[name] for each in seen]) for name in seen[0]}

    def step(self, writer: LakeWriter, *, packs: bool) -> None:
        n, rng, form = self.n_envs, self.rng, self.form
        before, observations = [self.seen(env) for env in range(n)], self.batch()
        frames: Any = form.newest(observations)
        actions, rewards = rng.integers(0, 5, n), rng.normal(size=n).astype(np.float32)
        terminated, truncated = rng.random((2, n)) < self.end_chance / 2
        truncated &= ~terminated
        new = [self._frame() for _ in range(n)]
        next_frames: Any = {name: np.stack([frame[name] for frame in new]) for name in new[0]}
        writer.append(
            observations=observations,
            frames=form.pack(frames) if packs else frames,
            actions=actions,
            rewards=rewards,
            next_frames=form.pack(next_frames) if packs else next_frames,
            terminated=terminated,
            truncated=truncated,
        )
        for env in range(n):
            self.frames[env].append(new[env])
            ends = bool(terminated[env]), bool(truncated[env])
            row = before[env], int(actions[env]), float(rewards[env]), self.seen(env), *ends
            self.stored[env].append(PartsTransition(*row))
            if any(ends):
                self.frames[env] = [self._frame()]

    def steps(self, writer: LakeWriter, n: int, *, packs: bool = True) -> None:
        for _ in range(n):
            self.step(writer, packs=packs)


def assert_same_parts(found: Any, expected: Frame) -> None:
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def assert_rows_are(
    batch: Batch, i: int, rows: list[PartsTransition], at: int, *, n_step: int, gamma: float
) -> None:
    """Row i of a batch is the transition `at` of this list, with n steps one at a time."""
    total, discount = 0.0, 1.0
    for last in rows[at : at + n_step]:
        total, discount = total + discount * last.reward, discount * gamma
        if last.terminated or last.truncated:
            break
    stacks: Any = batch.stacks
    next_stacks: Any = batch.next_stacks
    assert_same_parts({name: array[i] for name, array in stacks.items()}, rows[at].seen)
    assert_same_parts({name: array[i] for name, array in next_stacks.items()}, last.following)
    assert batch.actions[i] == rows[at].action
    np.testing.assert_allclose(batch.rewards[i], total, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(batch.discounts[i], 0 if last.terminated else discount, rtol=1e-6)
