"""Rewards to learn from, against SB3's VecNormalize and plain loops."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import JsonValue, TypeAdapter
from stable_baselines3 import PPO
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor, VecNormalize

from game_rl.algorithms.dqn import LeanDQN, make_dqn
from game_rl.algorithms.ppo import make_ppo
from game_rl.algorithms.pqn import make_pqn
from game_rl.algorithms.reward_scaling import (
    RewardScaling,
    make_reward_scaling,
    reward_state,
    take_reward_state,
)
from game_rl.buffers.layout import Transitions
from game_rl.config.algorithms import DQNConfig, PPOConfig, PQNConfig, RewardConfig
from game_rl.envs.packing import FramePacking
from tests.algorithms.conftest import Witness
from tests.algorithms.test_mixed_replay import mixture_of, played, replay_of
from tests.buffers.scripted_env import N_ACTIONS, scripted_vec_env
from tests.examples import examples
from tests.tiny_context import tiny_context
from tests.tiny_env import TinyEnv, short_episodes

GAMMA = 0.93
NORMALIZED = {"normalize": True, "clip": 1.5, "scale": 0.5}


def scaling(n_envs: int = 1, gamma: float = GAMMA, **values: Any) -> RewardScaling:
    return RewardScaling(RewardConfig(**values), gamma=gamma, n_envs=n_envs)


def plain(reward: float, variance: float, config: RewardConfig) -> float:
    learned = reward / np.sqrt(variance + 1e-8) if config.normalize else reward
    learned *= config.scale
    return learned if config.clip is None else min(max(learned, -config.clip), config.clip)


class PlainStatistics:
    """The variance of all returns so far, from the list of them."""

    def __init__(self, n_envs: int, gamma: float) -> None:
        self._gamma, self._returns, self._all = gamma, [0.0] * n_envs, list[float]()

    def observe(self, rewards: NDArray[Any], dones: NDArray[Any]) -> float:
        for env, reward in enumerate(rewards.tolist()):
            self._returns[env] = self._returns[env] * self._gamma + reward
        self._all += self._returns
        self._returns = [0.0 if d else r for d, r in zip(dones, self._returns, strict=True)]
        return float(np.var(self._all))


@settings(max_examples=examples(30))
@given(
    n_envs=st.integers(1, 4),
    gamma=st.floats(0, 1),
    clip=st.sampled_from([0.1, 1.0, 10.0]),
    seed=st.integers(0, 2**16),
    factor=st.sampled_from([1e-3, 1.0, 1e4]),
)
def test_normalised_rewards_are_those_of_vec_normalize(
    n_envs: int, gamma: float, clip: float, seed: int, factor: float
) -> None:
    rng = np.random.default_rng(seed)
    vec_env = scripted_vec_env(FramePacking((1, 3, 4)), n_envs=n_envs, frame_stack=1, seed=seed)
    theirs = VecNormalize(vec_env, norm_obs=False, clip_reward=clip, gamma=gamma)
    ours = scaling(n_envs, gamma, normalize=True, clip=clip)
    vec_env.step_wait = _times(vec_env.step_wait, factor)  # type: ignore[method-assign]
    theirs.reset()
    for _ in range(40):
        _, expected, dones, _ = theirs.step(rng.integers(N_ACTIONS, size=n_envs))
        ours.observe(theirs.get_original_reward(), dones)
        np.testing.assert_array_equal(ours(theirs.get_original_reward()), expected)


def _times(step_wait: Any, factor: float) -> Any:
    def scaled() -> Any:
        observations, rewards, dones, infos = step_wait()
        return observations, rewards * np.float32(factor), dones, infos

    return scaled


@settings(max_examples=examples(50))
@given(
    rewards=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20),
    scale=st.floats(1e-3, 1e3),
    clip=st.none() | st.floats(1e-3, 1e3),
)
def test_rewards_are_scaled_and_then_clipped(
    rewards: list[float], scale: float, clip: float | None
) -> None:
    config = RewardConfig(scale=scale, clip=clip)
    given_ones = np.array(rewards, np.float32)
    found = RewardScaling(config, gamma=GAMMA, n_envs=1)(given_ones)
    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx([plain(r, 1, config) for r in rewards], rel=1e-6)
    assert given_ones.tolist() == [np.float32(r) for r in rewards]  # unchanged
    assert not np.shares_memory(found, given_ones)


def test_rewards_as_they_are_need_nothing() -> None:
    assert make_reward_scaling(RewardConfig(), gamma=GAMMA, n_envs=2) is None
    assert reward_state(None) == {}
    assert reward_state(scaling(scale=2)) == {}


@settings(max_examples=examples(50))
@given(
    rewards=st.lists(st.floats(-(2.0**90), 2.0**90, width=32), min_size=2, max_size=2),
    n=st.integers(1, 9),
)
def test_statistics_go_on_bit_for_bit_through_a_checkpoint(rewards: list[float], n: int) -> None:
    one, dones = scaling(2, normalize=True), np.zeros(2, np.bool_)
    for step in range(n):
        one.observe((np.array(rewards, np.float32) / (step + 1)).astype(np.float32), dones)
    saved = TypeAdapter(dict[str, JsonValue]).dump_json(reward_state(one) | {"more": 1})
    other = scaling(2, normalize=True)
    rest = take_reward_state(other, TypeAdapter(dict[str, JsonValue]).validate_json(saved))
    assert rest == {"more": 1}
    for each in (one, other):
        each.observe(np.array(rewards[::-1], np.float32), np.array([True, False]))
    assert other.state() == one.state()


def test_returns_begin_anew_with_the_episodes_and_the_variance_stays() -> None:
    one = scaling(2, normalize=True)
    one.observe(np.array([3, -1], np.float32), np.array([False, False]))
    before = one.state()
    one.begin_episodes()
    assert one.state() == before | {"returns": [0, 0]}
    three = scaling(3, normalize=True)
    three.load_state(before)
    assert three.state() == before | {"returns": [0, 0, 0]}


@pytest.mark.parametrize(
    "state",
    [
        {"mean": 0.0, "var": 1.0, "count": 1.0},
        {"mean": 0.0, "var": -1.0, "count": 1.0, "returns": [0.0]},
        {"mean": 0.0, "var": float("nan"), "count": 1.0, "returns": [0.0]},
        {"mean": "x", "var": 1.0, "count": 1.0, "returns": [0.0]},
        {"mean": 0.0, "var": 1.0, "count": 1.0, "returns": [[0.0]]},
        {"mean": 0.0, "var": 1.0, "count": None, "returns": [0.0]},
    ],
)
def test_other_data_is_no_state(state: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        scaling(normalize=True).load_state(state)


# ------------------------------------------------------------------ algorithms

ENVS = pytest.mark.parametrize("env_fn", [TinyEnv, short_episodes], ids=["ends", "truncated"])
PPO_NUMBERS = {"n_steps": 24, "batch_size": 24, "n_epochs": 2, "learning_rate": 1e-3, "gamma": 0.9}


class Rewards:
    """A feed that keeps the rewards and the ends of episodes."""

    def __init__(self) -> None:
        self.rewards: list[NDArray[np.float32]] = []
        self.dones: list[NDArray[np.bool_]] = []

    def append(self, transitions: Transitions) -> None:
        self.rewards.append(np.array(transitions.rewards))
        self.dones.append(transitions.terminated | transitions.truncated)


def tiny(env_fn: Any, n_envs: int = 2) -> VecEnv:
    return VecMonitor(DummyVecEnv([env_fn] * n_envs))


def with_logger(model: Any) -> Any:
    model.set_logger(Logger(None, []))
    return model


@ENVS
@pytest.mark.parametrize("feeds", [[], [Rewards()]], ids=["alone", "fed"])
def test_ppo_learns_what_sb3s_learns_on_vec_normalize(env_fn: Any, feeds: list[Rewards]) -> None:
    config = PPOConfig(**PPO_NUMBERS, reward=RewardConfig(normalize=True, clip=1.2))  # type: ignore[arg-type]
    ours = with_logger(make_ppo(config, tiny_context(tiny(env_fn))))
    ours.feeds = feeds
    ours.learn(96)
    normalizing = VecNormalize(tiny(env_fn), norm_obs=False, clip_reward=1.2, gamma=0.9)
    theirs = with_logger(PPO("CnnPolicy", normalizing, seed=0, device="cpu", **PPO_NUMBERS))  # type: ignore[arg-type]
    theirs.learn(96)
    # the value of a truncated episode's last observation is added to its reward
    np.testing.assert_allclose(ours.rollout_buffer.rewards, theirs.rollout_buffer.rewards, 1e-4)
    expected = theirs.policy.state_dict()
    for name, tensor in ours.policy.state_dict().items():
        torch.testing.assert_close(tensor, expected[name], rtol=1e-3, atol=1e-5)
    assert ours.reward_scaling.state()["var"] == pytest.approx(normalizing.ret_rms.var, rel=1e-9)
    assert np.isin([e["r"] for e in ours.ep_info_buffer], range(6)).all()  # the game's rewards


def test_feeds_of_ppo_get_the_games_rewards(vec_env: Any) -> None:
    config = PPOConfig(n_steps=12, batch_size=36, reward=RewardConfig(scale=7, clip=5))
    model, feed = with_logger(make_ppo(config, tiny_context(vec_env, frame_stack=2))), Rewards()
    model.feeds, witness = [feed], Witness()
    model.learn(36, callback=witness)
    seen = [each[0] for each in witness.seen if isinstance(each, list)]
    np.testing.assert_array_equal(feed.rewards, seen)
    assert set(np.unique(feed.rewards)) == {0, 1}
    assert set(model.rollout_buffer.rewards[~np.array(feed.dones)]) == {0, 5}


@pytest.mark.parametrize("values", [NORMALIZED, {"scale": 0.5, "clip": 0.4}])
def test_pqn_learns_from_such_rewards_and_feeds_the_games(values: dict[str, Any]) -> None:
    reward = RewardConfig(**values)
    config = PQNConfig(name="pqn", n_steps=12, batch_size=8, gamma=0.9, reward=reward)
    model, feed = with_logger(make_pqn(config, tiny_context(tiny(short_episodes)))), Rewards()
    model.feeds = [feed]
    statistics = PlainStatistics(2, 0.9)
    for _ in range(2):
        feed.rewards, feed.dones = [], []
        model.learn(24, reset_num_timesteps=False)
        assert set(np.unique(feed.rewards)) <= {0, 1}
        for row, (rewards, dones) in enumerate(zip(feed.rewards, feed.dones, strict=True)):
            variance = statistics.observe(rewards, dones)
            expected = [plain(r, variance, reward) for r in rewards.tolist()]
            assert model.rollout_buffer.rewards[row] == pytest.approx(expected, rel=1e-3)


def make_a_dqn(n_step: int, **reward: Any) -> LeanDQN:
    config = DQNConfig.model_validate(
        {
            "name": "dqn", "replay": {"capacity": 80}, "learning_starts": 10, "train_freq": 2,
            "batch_size": 8, "gamma": GAMMA, "n_step": n_step, "reward": reward,
        }
    )  # fmt: skip
    made: LeanDQN = with_logger(make_dqn(config, tiny_context(tiny(short_episodes))))
    return made


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("values", [NORMALIZED, {"scale": 0.5, "clip": 0.4}, {"normalize": True}])
def test_dqn_transforms_each_timestep_of_a_batch_by_the_newest_statistics(
    n_step: int, values: dict[str, Any]
) -> None:
    model, feed, config = make_a_dqn(n_step, **values), Rewards(), RewardConfig(**values)
    model.feeds = [feed]
    model.learn(60)
    statistics, variance = PlainStatistics(2, GAMMA), 1.0
    for rewards, dones in zip(feed.rewards, feed.dones, strict=True):
        variance = statistics.observe(rewards, dones)
    pond: Any = model.replay_buffer.store
    envs, numbers = pond.held()
    raw = pond.batch(envs, numbers, n_step=1, gamma=GAMMA, device="cpu").rewards
    expected_raw = np.array(feed.rewards).T.ravel()
    np.testing.assert_array_equal(raw.flatten(), expected_raw)  # the replay has the game's
    found = pond.batch(
        envs, numbers, n_step=n_step, gamma=GAMMA, device="cpu",
        learned=model.replay_buffer.learned_rewards,
    ).rewards.flatten()  # fmt: skip
    expected = []
    for env in range(2):
        for t in range(30):
            total = 0.0
            for k in range(n_step):
                if t + k < 30:
                    reward = float(feed.rewards[t + k][env])
                    total += GAMMA**k * plain(reward, variance, config)
                if t + k >= 29 or feed.dones[t + k][env]:
                    break
            expected.append(total)
    assert found.tolist() == pytest.approx(expected, rel=1e-3)
    state = pond._rng.bit_generator.state
    batch = model.replay_buffer.sample(16).rewards
    pond._rng.bit_generator.state = state
    same = pond.sample(16, n_step=n_step, gamma=GAMMA, learned=model.reward_scaling).rewards
    assert torch.equal(batch, same)


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("values", [NORMALIZED, {"scale": 0.5, "clip": 0.4}])
def test_rows_of_a_lake_are_transformed_as_those_of_the_replay(
    tmp_path: Path, n_step: int, values: dict[str, Any]
) -> None:
    rows, learned = played(tmp_path, 120), scaling(**values)
    mixture = mixture_of(tmp_path, 0.0, n_step=n_step, learned=learned)
    replay = replay_of(rows, n_step=n_step)
    store: Any = replay.store
    for reward in (5.0, -7.0, 20.0):  # statistics are of now, not of when the Lake was opened
        learned.observe(np.array([reward], np.float32), np.array([False]))
        drawn = mixture.pool.draw(np.random.default_rng(3), 300)
        numbers = store.held()[1][drawn.batch.numbers]
        theirs = store.batch(
            np.zeros_like(numbers), numbers, n_step=n_step, gamma=GAMMA, device="cpu",
            learned=learned,
        )  # fmt: skip
        np.testing.assert_array_equal(drawn.batch.rewards, theirs.rewards.flatten())
    raw = mixture_of(tmp_path, 0.0, n_step=n_step).pool.draw(np.random.default_rng(3), 300)
    assert not np.array_equal(raw.batch.rewards, drawn.batch.rewards)


@pytest.mark.parametrize("make", [make_a_dqn])
def test_the_statistics_are_in_the_algorithms_state(make: Any) -> None:
    model, other = make(1, **NORMALIZED), make(1, **NORMALIZED)
    model.learn(20)
    state = json.loads(json.dumps(model.state()))
    other.load_state(state)
    assert other.state() == model.state()
    third = make(1, **NORMALIZED)
    third.load_state({"reward": state["reward"]})  # of a fork that takes over nothing else
    assert third.state()["reward"] == state["reward"]
    plain_one = make(1)
    plain_one.load_state(state)  # of a run that has stopped to normalise
    assert plain_one.state().keys() == {"exploration", "n_calls"}
    assert make(1).replay_buffer.learned_rewards is None
