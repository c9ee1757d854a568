"""What is drawn from the packed replay against SB3's own buffers, fed with the same timesteps."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecEnv

from game_rl.buffers.array_file import StoredArray, dump_arrays, read_arrays
from game_rl.buffers.pond import Pond
from game_rl.buffers.replay_buffer import PackedReplayBuffer
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.errors import CheckpointError
from tests.buffers.scripted_env import N_ACTIONS, scripted_vec_env
from tests.examples import examples

SHAPE = (1, 3, 4)
GAMMA = 0.9
PACKINGS = [FramePacking(SHAPE, bits=2), FramePacking(SHAPE, bits=4), FramePacking(SHAPE, bits=8)]
Add = Callable[..., None]


def play(vec_env: VecEnv, vec_steps: int, *adds: Add, obs: Any = None) -> NDArray[np.uint8]:
    """As SB3's OffPolicyAlgorithm hands timesteps to its replay buffer."""
    obs = vec_env.reset() if obs is None else obs
    rng = np.random.default_rng(len(obs) + vec_steps)
    for _ in range(vec_steps):
        actions = rng.integers(N_ACTIONS, size=vec_env.num_envs)
        new_obs, rewards, dones, infos = vec_env.step(actions)
        next_obs = new_obs.copy()
        for i in np.flatnonzero(dones):
            next_obs[i] = infos[i]["terminal_observation"]
        for add in adds:
            add(obs, next_obs, actions, rewards, dones, infos)
        obs = new_obs
    return obs


def packed(vec_env: VecEnv, packing: FramePacking, *, frame_stack: int, **values: Any) -> Any:
    return PackedReplayBuffer(
        observation_space=vec_env.observation_space,
        action_space=vec_env.action_space,
        device="cpu",
        n_envs=vec_env.num_envs,
        observation_format=ObservationFormat(packing, frame_stack),
        gamma=GAMMA,
        **values,
    )


class Oracle:
    """SB3's buffers, one for each env so that a timestep can be named."""

    def __init__(self, vec_env: VecEnv, *, n_step: int, size: int) -> None:
        kind: Any = NStepReplayBuffer if n_step > 1 else ReplayBuffer
        more = {"n_steps": n_step, "gamma": GAMMA} if n_step > 1 else {}
        self._buffers = [
            kind(size, vec_env.observation_space, vec_env.action_space, device="cpu", **more)
            for _ in range(vec_env.num_envs)
        ]

    def add(self, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: Any) -> None:
        for i, buffer in enumerate(self._buffers):
            one = slice(i, i + 1)
            buffer.add(obs[one], next_obs[one], action[one], reward[one], done[one], [infos[i]])

    def timesteps(self, env: int, timesteps: NDArray[np.int64]) -> ReplayBufferSamples:
        return self._buffers[env]._get_samples(timesteps)


def assert_all_held_are_sb3s(ours: PackedReplayBuffer, oracle: Oracle, played: int) -> int:
    """Every timestep that can be drawn; returns how many."""
    store: Any = ours.store
    envs, numbers = store.held()
    for env in range(ours.n_envs):
        mine = numbers[envs == env]
        batch = store.batch(
            np.full(len(mine), env), mine, n_step=ours.n_step, gamma=GAMMA, device="cpu"
        )
        theirs = oracle.timesteps(env, np.arange(played - len(mine), played))
        expected = (theirs.observations, theirs.actions, theirs.rewards, theirs.next_observations)
        for mine_is, theirs_is in zip(batch, (*expected, theirs.dones), strict=False):
            torch.testing.assert_close(mine_is, theirs_is, rtol=0, atol=0)
        if theirs.discounts is not None:
            torch.testing.assert_close(batch.discounts, theirs.discounts, rtol=0, atol=0)
    return len(envs)


@settings(max_examples=examples(60))
@given(
    packing=st.sampled_from(PACKINGS),
    n_envs=st.integers(1, 3),
    frame_stack=st.integers(1, 4),
    n_step=st.integers(1, 4),
    per_env=st.integers(2, 20),
    vec_steps=st.integers(1, 50),
    seed=st.integers(0, 2**16),
)
def test_every_timestep_comes_out_as_sb3s_buffers_would_give_it(
    packing: FramePacking,
    n_envs: int,
    frame_stack: int,
    n_step: int,
    per_env: int,
    vec_steps: int,
    seed: int,
) -> None:
    vec_env = scripted_vec_env(packing, n_envs=n_envs, frame_stack=frame_stack, seed=seed)
    ours = packed(
        vec_env, packing, frame_stack=frame_stack, n_step=n_step, buffer_size=per_env * n_envs
    )
    oracle = Oracle(vec_env, n_step=n_step, size=vec_steps + 1)
    play(vec_env, vec_steps, ours.add, oracle.add)
    held = assert_all_held_are_sb3s(ours, oracle, vec_steps)
    assert held == ours.size() <= n_envs * min(per_env, vec_steps)
    # an episode of one timestep has two frames, and shorter ones there are none
    assert held >= n_envs * min(per_env // 2, vec_steps)


def test_a_stream_that_begins_inside_an_episode_has_its_first_stack() -> None:
    packing = PACKINGS[0]
    vec_env = scripted_vec_env(packing, n_envs=3, frame_stack=4, seed=8)
    ours = packed(vec_env, packing, frame_stack=4, buffer_size=90)
    oracle = Oracle(vec_env, n_step=1, size=100)
    obs = play(vec_env, 7)
    assert obs[:, :3].any(axis=(1, 2, 3)).any()  # an episode is going on
    play(vec_env, 12, ours.add, oracle.add, obs=obs)
    assert assert_all_held_are_sb3s(ours, oracle, 12) == 36


def test_every_timestep_is_as_likely_as_every_other() -> None:
    packing, draws = PACKINGS[0], 40_000
    vec_env = scripted_vec_env(packing, n_envs=2, frame_stack=2)
    ours = packed(vec_env, packing, frame_stack=2, buffer_size=40)
    play(vec_env, 100, ours.add)
    store: Any = ours.store
    envs, numbers = store.held()
    drawn = np.stack(ours.store._draw(draws))
    held = dict.fromkeys(zip(envs.tolist(), numbers.tolist(), strict=True), 0)
    for pair in zip(*drawn.tolist(), strict=True):
        held[pair] += 1  # a pair that is not held is a KeyError
    expected = draws / len(held)
    chi_square = sum((count - expected) ** 2 / expected for count in held.values())
    freedom = len(held) - 1
    assert chi_square < freedom + 4 * (2 * freedom) ** 0.5


def through_a_file(pond: Pond) -> dict[str, StoredArray]:
    """Its state, as it comes back from where it was written."""
    return read_arrays(BytesIO(b"".join(dump_arrays(pond.state_dict()))))


def test_a_restored_replay_goes_on_bit_for_bit() -> None:
    packing = PACKINGS[1]
    vec_env = scripted_vec_env(packing, n_envs=2, frame_stack=3, seed=3)
    make = lambda seed: packed(  # noqa: E731
        vec_env, packing, frame_stack=3, n_step=2, buffer_size=30, sampling_seed=seed
    )
    ours, again = make(0), make(1)
    obs = play(vec_env, 25, ours.add)
    again.store.load_state_dict(through_a_file(ours.store))
    play(vec_env, 10, ours.add, again.add, obs=obs)
    for mine, theirs in zip(ours.sample(64), again.sample(64), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)


def test_episodes_that_a_restored_replay_does_not_see_go_on_are_cut() -> None:
    packing = PACKINGS[2]
    vec_env = scripted_vec_env(packing, n_envs=2, frame_stack=3, seed=5)
    ours = packed(vec_env, packing, frame_stack=3, n_step=3, buffer_size=200)
    oracle = Oracle(vec_env, n_step=3, size=100)
    cut: list[Any] = []

    def add_cut(*step: Any) -> None:
        """As an env whose limit was hit when the training ended."""
        cut[:] = step

    obs = play(vec_env, 20, ours.add, oracle.add)
    play(vec_env, 1, add_cut, obs=obs)
    obs, next_obs, action, reward, done, infos = cut
    ours.add(*cut)
    over = [{"TimeLimit.truncated": not d} | dict(i) for d, i in zip(done, infos, strict=True)]
    oracle.add(obs, next_obs, action, reward, np.ones_like(done), over)
    ours.store.load_state_dict(through_a_file(ours.store))
    play(vec_env, 20, ours.add, oracle.add)  # resets: episodes begin anew
    assert_all_held_are_sb3s(ours, oracle, 41)


def test_a_replay_of_another_shape_is_refused() -> None:
    packing = PACKINGS[2]
    vec_env = scripted_vec_env(packing, n_envs=2, frame_stack=3)
    one, other = (packed(vec_env, packing, frame_stack=3, buffer_size=n) for n in (20, 30))
    play(vec_env, 3, one.add)
    with pytest.raises(CheckpointError, match=r"13 slots for 2 envs .* 18, 2"):
        other.store.load_state_dict(one.store.state_dict())


@pytest.mark.gpu
def test_frames_on_a_gpu_come_out_as_those_in_ram() -> None:
    packing = PACKINGS[1]
    vec_env = scripted_vec_env(packing, n_envs=2, frame_stack=3)
    in_ram, on_gpu = (
        packed(vec_env, packing, frame_stack=3, n_step=2, buffer_size=40, frames_device=device)
        for device in ("cpu", "cuda")
    )
    play(vec_env, 50, in_ram.add, on_gpu.add)
    for mine, theirs in zip(in_ram.sample(64), on_gpu.sample(64), strict=True):
        torch.testing.assert_close(mine, theirs.cpu(), rtol=0, atol=0)
    state = through_a_file(on_gpu.store)
    on_gpu.store.load_state_dict(state)
    frames = on_gpu.store.state_dict()["frames"]
    np.testing.assert_array_equal(torch.as_tensor(frames).cpu(), state["frames"])


def test_a_reset_forgets_all_timesteps() -> None:
    packing = PACKINGS[1]
    vec_env = scripted_vec_env(packing, n_envs=2, frame_stack=3)
    buffer = packed(vec_env, packing, frame_stack=3, n_step=1, buffer_size=40)
    obs = play(vec_env, 10, buffer.add)
    before = buffer.size()
    buffer.reset()
    assert buffer.size() == 0
    play(vec_env, 10, buffer.add, obs=obs)
    assert buffer.size() == before
