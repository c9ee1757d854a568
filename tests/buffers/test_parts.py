"""Buffers of observations with parts against SB3's own buffers of dicts, bit for bit."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.buffers import DictReplayBuffer, DictRolloutBuffer
from stable_baselines3.common.type_aliases import DictReplayBufferSamples, DictRolloutBufferSamples
from stable_baselines3.common.vec_env import VecEnv

from game_rl.buffers import unpacking
from game_rl.buffers.array_file import dump_arrays, read_arrays
from game_rl.buffers.pond import Pond
from game_rl.buffers.replay_buffer import PackedReplayBuffer
from game_rl.buffers.rollout_buffer import PackedRolloutBuffer
from game_rl.buffers.unpacking import unpack_observations, unpack_part_tensor
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.errors import CheckpointError
from game_rl.games.parts.part_format import PartFormat, Stretch
from tests.buffers.part_plays import (
    N_ACTIONS,
    formats,
    indices,
    parts_vec_env,
    some_parts,
    some_values,
    vectors,
)
from tests.examples import examples

GAMMA = 0.9
seeds = st.integers(0, 2**16)
EVENTS = PartFormat("vector", (2488,), 0, (Stretch(2488, 1),))
PARTS = (
    ("status", PartFormat("vector", (5,), 0, (Stretch(3, 32), Stretch(2, 1)))),
    ("tiles", PartFormat.of_indices("grid", (1, 4, 5), 5, is_stacked=True)),
)
FORM = ObservationFormat(FramePacking((1, 3, 4), bits=2), 3, PARTS)


def assert_same(ours: Any, theirs: Any) -> None:
    """Tensors, or dicts of tensors, of the same dtype and the same bits; or None, both."""
    if theirs is None:
        assert ours is None
        return
    if not isinstance(theirs, dict):
        assert ours.dtype == theirs.dtype
        assert torch.equal(ours, theirs)
        return
    assert list(ours) == list(theirs)
    for name, tensor in theirs.items():
        assert_same(ours[name], tensor)


# ---------------------------------------------------------------------- rollout


def rollout_buffers(
    vec_env: VecEnv, form: ObservationFormat, n_steps: int
) -> tuple[DictRolloutBuffer, PackedRolloutBuffer]:
    keywords: Any = {
        "buffer_size": n_steps,
        "observation_space": vec_env.observation_space,
        "action_space": vec_env.action_space,
        "device": "cpu",
        "gamma": GAMMA,
        "gae_lambda": 0.8,
        "n_envs": vec_env.num_envs,
    }
    return DictRolloutBuffer(**keywords), PackedRolloutBuffer(**keywords, observation_format=form)


@settings(max_examples=examples(60))
@given(formats, st.integers(1, 9), st.integers(1, 3), st.booleans(), seeds)
def test_minibatches_are_those_of_sb3s_buffer_of_dicts(
    form: ObservationFormat, n_steps: int, n_envs: int, packs_before: bool, seed: int
) -> None:
    """Over three rollouts, so that stacks reach back across a rollout's start."""
    vec_env = parts_vec_env(form, n_envs=n_envs, seed=seed)
    theirs, ours = rollout_buffers(vec_env, form, n_steps)
    rng = np.random.default_rng(seed)
    seen: Any = vec_env.reset()
    starts = np.ones(n_envs, np.bool_)
    for _ in range(3):
        theirs.reset()
        ours.reset()
        for _ in range(n_steps):
            values = torch.from_numpy(rng.standard_normal((2, n_envs)).astype(np.float32))
            actions = rng.integers(N_ACTIONS, size=n_envs)
            step = seen, actions[:, None], rng.normal(size=n_envs), starts, *values
            theirs.add(*step)
            frames = form.pack(form.newest(seen)) if packs_before else None
            ours.add(*step, frames=frames)
            seen, _, starts, _ = vec_env.step(actions)
        for buffer in (theirs, ours):
            buffer.compute_returns_and_advantage(torch.zeros(n_envs), starts)
        batch_size = int(rng.integers(1, n_steps * n_envs + 1))
        batches = []
        for buffer in (theirs, ours):
            np.random.seed(seed)  # noqa: NPY002 - SB3 draws from it
            batches.append(list(buffer.get(batch_size)))
        for expected, found in zip(*batches, strict=True):
            assert isinstance(found, DictRolloutBufferSamples)
            for name in expected._fields:
                assert_same(getattr(found, name), getattr(expected, name))


# ---------------------------------------------------------------------- replay


def packed(vec_env: VecEnv, form: ObservationFormat, size: int, **more: Any) -> PackedReplayBuffer:
    return PackedReplayBuffer(
        size,
        vec_env.observation_space,
        vec_env.action_space,
        device="cpu",
        n_envs=vec_env.num_envs,
        observation_format=form,
        gamma=GAMMA,
        **more,
    )


def play(vec_env: VecEnv, vec_steps: int, *adds: Callable[..., None], seen: Any = None) -> Any:
    """As SB3's OffPolicyAlgorithm hands timesteps to its replay buffer."""
    seen = vec_env.reset() if seen is None else seen
    rng = np.random.default_rng(vec_steps)
    for _ in range(vec_steps):
        actions = rng.integers(N_ACTIONS, size=vec_env.num_envs)
        new, rewards, dones, infos = vec_env.step(actions)
        following = {name: array.copy() for name, array in new.items()}
        for i in np.flatnonzero(dones):
            for name, array in infos[i]["terminal_observation"].items():
                following[name][i] = array
        for add in adds:
            add(seen, following, actions, rewards, dones, infos)
        seen = new
    return seen


class Oracle:
    """SB3's buffers, one for each env so that a timestep can be named.

    SB3 has no buffer of dicts with returns of several timesteps, so those are added up here.
    """

    def __init__(self, vec_env: VecEnv, size: int) -> None:
        space = vec_env.observation_space
        assert isinstance(space, spaces.Dict)
        self.buffers = [
            DictReplayBuffer(size, space, vec_env.action_space, device="cpu")
            for _ in range(vec_env.num_envs)
        ]

    def add(self, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: Any) -> None:
        for i, buffer in enumerate(self.buffers):
            one = slice(i, i + 1)
            now, then = (
                {name: array[one] for name, array in seen.items()} for seen in (obs, next_obs)
            )
            buffer.add(now, then, action[one], reward[one], done[one], [infos[i]])

    def timestep(self, env: int, number: int, *, n_step: int, played: int) -> Any:
        """Observation, action, reward, next observation, terminated, discount."""
        buffer = self.buffers[env]
        first = last = buffer._get_samples(np.array([number]))
        reward, discount, n = np.float32(0), 1.0, 0
        while n < n_step and number + n < played:
            last = buffer._get_samples(np.array([number + n]))
            reward += np.float32(discount) * last.rewards.numpy()[0, 0]
            n, discount = n + 1, discount * GAMMA
            if buffer.dones[number + n - 1, 0]:
                break
        return first, float(reward), last, discount


def assert_all_held_are_sb3s(ours: PackedReplayBuffer, oracle: Oracle, played: int) -> int:
    store: Any = ours.store
    envs, numbers = store.held()
    batch = store.batch(envs, numbers, n_step=ours.n_step, gamma=GAMMA, device="cpu")
    for env in range(ours.n_envs):
        rows = np.flatnonzero(envs == env)
        for row, number in zip(rows, range(played - len(rows), played), strict=True):
            first, reward, last, discount = oracle.timestep(
                env, number, n_step=ours.n_step, played=played
            )
            one = slice(row, row + 1)
            mine, next_mine = (
                {name: tensor[one] for name, tensor in seen.items()}
                for seen in (batch.observations, batch.next_observations)
            )
            assert_same(mine, first.observations)
            assert_same(next_mine, last.next_observations)
            assert_same(batch.actions[one], first.actions)
            assert_same(batch.terminated[one], last.dones)
            assert float(batch.rewards[row]) == pytest.approx(reward, rel=1e-5, abs=1e-6)
            assert float(batch.discounts[row]) == pytest.approx(discount)
            if ours.n_step == 1:
                assert_same(batch.rewards[one], first.rewards)
    return len(envs)


@settings(max_examples=examples(60))
@given(formats, st.integers(1, 3), st.integers(1, 3), st.integers(2, 12), st.integers(1, 30), seeds)
def test_every_timestep_comes_out_as_sb3s_buffer_of_dicts_gives_it(
    form: ObservationFormat, n_envs: int, n_step: int, per_env: int, vec_steps: int, seed: int
) -> None:
    vec_env = parts_vec_env(form, n_envs=n_envs, seed=seed)
    ours = packed(vec_env, form, per_env * n_envs, n_step=n_step)
    oracle = Oracle(vec_env, vec_steps + 1)
    play(vec_env, vec_steps, ours.add, oracle.add)
    held = assert_all_held_are_sb3s(ours, oracle, vec_steps)
    assert held == ours.size() >= n_envs * min(per_env // 2, vec_steps)
    if held:
        drawn = ours.sample(4)
        assert isinstance(drawn, DictReplayBufferSamples)
        assert (drawn.discounts is None) == (n_step == 1)


def test_a_stream_that_begins_inside_an_episode_has_its_first_stacks() -> None:
    vec_env = parts_vec_env(FORM, n_envs=3, seed=8)
    ours, oracle = packed(vec_env, FORM, 90), Oracle(vec_env, 100)
    seen = play(vec_env, 7)
    assert seen["tiles"][:, :2].any(axis=(1, 2, 3)).any()  # an episode is going on
    play(vec_env, 12, ours.add, oracle.add, seen=seen)
    assert assert_all_held_are_sb3s(ours, oracle, 12) == 36


def test_a_restored_replay_goes_on_bit_for_bit() -> None:
    vec_env = parts_vec_env(FORM, n_envs=2, seed=3)
    ours, again = (packed(vec_env, FORM, 30, n_step=2, sampling_seed=seed) for seed in (0, 1))
    seen = play(vec_env, 25, ours.add)
    state = read_arrays(BytesIO(b"".join(dump_arrays(ours.store.state_dict()))))
    again.store.load_state_dict(state)
    play(vec_env, 10, ours.add, again.add, seen=seen)
    for mine, theirs in zip(ours.sample(64), again.sample(64), strict=True):
        assert_same(mine, theirs)


def test_a_replay_of_other_parts_is_refused() -> None:
    one = packed(parts_vec_env(FORM, n_envs=1), FORM, 20)
    fewer = ObservationFormat(FORM.screen, 3, PARTS[:1])
    other = packed(parts_vec_env(fewer, n_envs=1), fewer, 20)
    with pytest.raises(CheckpointError, match=r"frames of 26 bytes, .* and 16; .*env.observation"):
        other.store.load_state_dict(one.store.state_dict())


def test_observations_of_other_parts_are_refused() -> None:
    other = ObservationFormat(FORM.screen, 3, PARTS[:1])
    with pytest.raises(ValueError, match="observations are Dict"):
        PackedRolloutBuffer(2, other.space, spaces.Discrete(2), observation_format=FORM)


def test_a_value_that_its_bits_cannot_hold_names_its_part() -> None:
    vec_env = parts_vec_env(FORM, n_envs=1)
    _, buffer = rollout_buffers(vec_env, FORM, 2)
    seen: Any = vec_env.reset()
    seen["status"][0, 4] = 2
    zero = torch.zeros(1)
    with pytest.raises(ValueError, match=r"part status .* a value is 2.0, not a whole number"):
        buffer.add(seen, np.zeros(1), np.zeros(1), np.ones(1), zero, zero)


# ---------------------------------------------------------------------- tensors


@given(st.one_of(vectors, indices), st.integers(0, 9), seeds)
def test_tensors_unpack_as_arrays_do(part: PartFormat, n: int, seed: int) -> None:
    rows = part.pack(some_values(np.random.default_rng(seed), part, n))
    wider = np.concatenate([np.zeros((n, 1), np.uint8), rows], axis=1)  # of no alignment
    found = unpack_part_tensor(torch.from_numpy(wider)[:, 1:], part)
    expected = part.unpack(rows).reshape(n, np.prod(part.shape))
    assert found.numpy().dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=examples(40))
@given(formats, st.integers(0, 1), seeds)
def test_a_gpus_way_gives_what_the_cpus_gives(
    form: ObservationFormat, more: int, seed: int
) -> None:
    """The way of tensors, taken on the CPU."""
    rng = np.random.default_rng(seed)
    rows = torch.from_numpy(form.pack(some_parts(rng, form, 12)))
    indices = rng.integers(0, 12, (7, form.stack + more))
    blank = np.arange(form.stack + more) < rng.integers(0, form.stack, (7, 1))
    values: Any = {"observation_format": form, "device": "cpu"}
    expected = unpack_observations(rows, indices, blank, **values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unpacking, "_are_in_ram", lambda *_: False)
        assert_same(unpack_observations(rows, indices, blank, **values), expected)


@pytest.mark.gpu
def test_parts_on_a_gpu_come_out_as_those_in_ram() -> None:
    kinds = {
        "floats": PartFormat("vector", (5,), 0, (Stretch(2, 32), Stretch(3, 16))),
        "many": PartFormat.of_indices("categories", (3,), 60_000, is_stacked=True),
        "nibbles": PartFormat.of_indices("grid", (1, 3, 5), 13),
    }
    form = ObservationFormat(FORM.screen, 3, tuple(sorted({**kinds, **dict(PARTS)}.items())))
    vec_env = parts_vec_env(form, n_envs=2)
    for n_step in (1, 2):
        in_ram, on_gpu = (
            packed(vec_env, form, 40, n_step=n_step, frames_device=device)
            for device in ("cpu", "cuda")
        )
        play(vec_env, 50, in_ram.add, on_gpu.add)
        for mine, theirs in zip(in_ram.sample(64), on_gpu.sample(64), strict=True):
            assert_same(mine, theirs)
        to_gpu = in_ram.store.sample(64, n_step=n_step, gamma=GAMMA, device="cuda")
        from_gpu = on_gpu.store.sample(64, n_step=n_step, gamma=GAMMA, device="cuda")
        for one, other in zip(to_gpu, from_gpu, strict=True):
            assert_same(one, other)


# ---------------------------------------------------------------------- bytes


def test_a_flag_takes_a_bit() -> None:
    form = ObservationFormat(None, 4, (("events", EVENTS),))
    vec_env = parts_vec_env(form, n_envs=2)
    _, rollout = rollout_buffers(vec_env, form, 64)
    assert rollout.frames[0, 0].nbytes == 311 <= 320
    assert rollout.frames.nbytes == (64 + 3) * 2 * 311
    pond = packed(vec_env, form, 2_000).store
    assert isinstance(pond, Pond)
    assert pond.nbytes == (1_000 + 4) * 2 * (311 + 1 + 4 + 1 + 1)
    assert pond.nbytes / 2_000 <= 320
