"""PPO with a memory against sb3-contrib's RecurrentPPO, from the same random numbers."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor
from torch.nn import functional

from game_rl.algorithms.data_parallel import data_parallel, torch_threads
from game_rl.algorithms.recurrent_ppo import LeanRecurrentPPO, make_recurrent_ppo
from game_rl.config.algorithms import PPOConfig
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from tests.algorithms.test_ppo import Curves
from tests.tiny_context import tiny_context
from tests.tiny_env import TinyEnv, short_episodes

N_ENVS = 3
CONFIG: dict[str, Any] = {
    "n_steps": 16,
    "batch_size": 48,  # a rollout, so that both shuffle nothing
    "n_epochs": 2,
    "ent_coef": 0.02,
    "learning_rate": 1e-3,
}
SIZE = 24


def vec_env_of(make: Callable[[], gym.Env[Any, Any]]) -> VecEnv:
    return VecMonitor(DummyVecEnv([make] * N_ENVS))


def ours(env: VecEnv, memory: dict[str, Any] | None = None, **values: object) -> LeanRecurrentPPO:
    memory = {"size": SIZE, "sequence": 16, "init": "uniform", **(memory or {})}
    config = PPOConfig.model_validate({**CONFIG, **values, "memory": memory})
    return make_recurrent_ppo(config, tiny_context(env))


def theirs(env: VecEnv, layers: int = 1, **values: object) -> RecurrentPPO:
    arguments = {**CONFIG, **values}
    kwargs = {"lstm_hidden_size": SIZE, "n_lstm_layers": layers}
    return RecurrentPPO(
        "CnnLstmPolicy", env, seed=0, device="cpu", policy_kwargs=kwargs, **arguments
    )


def learned(model: Any, timesteps: int) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    curves = Curves()
    model.set_logger(Logger(None, [curves]))
    with torch_threads(1):
        model.learn(timesteps, log_interval=1)
    model.logger.dump()
    return dict(model.policy.state_dict()), curves.values


@pytest.fixture
def _in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sb3-contrib begin its only minibatch of a rollout with the first timestep."""
    monkeypatch.setattr(np.random, "randint", lambda *_: 0)


@pytest.mark.usefixtures("_in_order")
@pytest.mark.parametrize("make", [TinyEnv, short_episodes])
@pytest.mark.parametrize("layers", [1, 2])
def test_it_learns_what_sb3_contrib_learns(
    make: Callable[[], gym.Env[Any, Any]], layers: int
) -> None:
    """Episodes begin within the sequence; those of three timesteps are truncated."""
    expected, their_curves = learned(theirs(vec_env_of(make), layers), 96)
    found, our_curves = learned(ours(vec_env_of(make), {"layers": layers}), 96)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, atol=1e-5, rtol=1e-4, msg=name)
    for name in ("train/loss", "train/value_loss", "train/approx_kl"):
        assert our_curves[name] == pytest.approx(their_curves[name], rel=1e-3, abs=1e-6), name


def collected(model: Any) -> None:
    """Play a first rollout."""
    model.set_logger(Logger(None, []))
    model._setup_learn(1, None)
    callback = CallbackList([])
    callback.init_callback(model)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)


def their_gradient(model: RecurrentPPO, timesteps: NDArray[np.int64]) -> list[torch.Tensor]:
    """The gradient of RecurrentPPO.train's loss for these timesteps of its rollout."""
    buffer: Any = model.rollout_buffer
    next(iter(buffer.get(1)))  # lays the arrays out by env
    env_change = np.zeros((buffer.buffer_size * N_ENVS, 1))
    env_change[:: buffer.buffer_size] = 1
    part = buffer._get_samples(timesteps, env_change)
    actions = part.actions.long().flatten()
    policy: Any = model.policy
    values, log_prob, entropy = policy.evaluate_actions(
        part.observations, actions, part.lstm_states, part.episode_starts
    )
    mask = part.mask > 0.5
    advantages = part.advantages[mask]
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    ratio = torch.exp(log_prob - part.old_log_prob)[mask]
    clipped = torch.clamp(ratio, 0.8, 1.2)
    loss = -torch.min(advantages * ratio, advantages * clipped).mean()
    loss += 0.5 * functional.mse_loss(values.flatten()[mask], part.returns[mask])
    loss -= 0.02 * entropy[mask].mean()
    return list(torch.autograd.grad(loss, list(policy.parameters())))


@pytest.mark.parametrize("micro_batch_size", [None, 16])
def test_the_gradient_of_a_sequence_is_sb3_contribs(micro_batch_size: int | None) -> None:
    """Of the second sequence of the second env, whose gradient ends at its beginning."""
    with torch_threads(1):
        contrib = theirs(vec_env_of(TinyEnv), n_steps=32)
        collected(contrib)
        lean = ours(vec_env_of(TinyEnv), n_steps=32, micro_batch_size=micro_batch_size)
        collected(lean)
        expected = their_gradient(contrib, np.arange(48, 64))
        lean.rollout_buffer.number_by_env()
        parameters = list(lean.policy.parameters())
        with data_parallel(parameters, lean.device, lean._threads) as parallel:
            lean._backward(parallel, np.array([3]))
    for parameter, gradient in zip(parameters, expected, strict=True):
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-5, rtol=1e-5)
    assert max(float(gradient.abs().max()) for gradient in expected) > 1e-2


def test_parts_and_threads_give_the_gradient_of_the_whole() -> None:
    found = []
    for threads, micro in ((1, None), (2, None), (1, 16), (2, 16)):
        memory = {"sequence": 4, "kind": "gru"}
        model = ours(vec_env_of(short_episodes), memory, micro_batch_size=micro)
        with torch_threads(1):
            collected(model)
        model.rollout_buffer.number_by_env()
        parameters = list(model.policy.parameters())
        with (
            torch_threads(threads),
            data_parallel(parameters, model.device, model._threads) as parallel,
        ):
            model._backward(parallel, np.arange(12))
        found.append([parameter.grad for parameter in parameters])
    for gradients in found[1:]:
        torch.testing.assert_close(gradients, found[0], atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_the_stored_states_are_those_of_every_timestep(kind: str) -> None:
    """The values of the rollout are found again, sequence by sequence, from the stored states."""
    model = ours(vec_env_of(short_episodes), {"kind": kind, "sequence": 4, "layers": 2})
    with torch_threads(1), torch.no_grad():
        collected(model)
        buffer = model.rollout_buffer
        values = buffer.values.swapaxes(0, 1).ravel()
        buffer.number_by_env()
        sequences = np.array([7, 0, 11, 4])
        lengths, memory = buffer.unbroken(sequences)
        timesteps = buffer.timesteps_of(sequences)
        samples = buffer.samples(timesteps)
        found, log_probs, _ = model.policy.evaluate_pieces(
            samples.observations, samples.actions.long().flatten(), lengths, memory
        )
    assert lengths.sum() == 16
    assert len(lengths) > 4  # episodes of three timesteps begin within
    np.testing.assert_allclose(found.flatten(), values[timesteps], atol=1e-5)
    torch.testing.assert_close(log_probs, samples.old_log_prob, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@given(cuts=st.lists(st.integers(1, 31), max_size=12, unique=True))
def test_layers_get_few_shapes_however_episodes_end(kind: str, cuts: list[int]) -> None:
    """Two sequences of 16 and any cuts: each piece has what it has alone, from its own memory."""
    model = _batch_of(kind)
    ends = sorted({*cuts, 16, 32})
    lengths = np.diff([0, *ends])
    numbers = torch.Generator().manual_seed(sum(cuts))
    seen = torch.randint(0, 256, (32, *model.observation_space.shape), generator=numbers)
    obs = seen.to(torch.uint8)
    actions = torch.randint(0, 2, (32,), generator=numbers)
    memory = torch.randn(len(lengths), *model.policy.memory_shape, generator=numbers)
    shapes: list[tuple[int, ...]] = []
    with torch_threads(1), torch.no_grad():
        alone = [
            model.policy.evaluate_pieces(
                obs[end - length : end], actions[end - length : end], lengths[[i]], memory[[i]]
            )
            for i, (end, length) in enumerate(zip(ends, lengths, strict=True))
        ]
        hook = model.policy.lstm_actor.register_forward_pre_hook(
            lambda _, given: shapes.append(tuple(given[0].shape[:2]))
        )
        together = model.policy.evaluate_pieces(obs, actions, lengths, memory)
        hook.remove()
    for found, expected in zip(together, zip(*alone, strict=True), strict=True):
        torch.testing.assert_close(found, torch.cat(expected), atol=1e-5, rtol=1e-5)
    few = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16]
    assert shapes == [
        tuple(min(n for n in few if n >= most) for most in (max(lengths), len(lengths)))
    ]


@cache
def _batch_of(kind: str) -> LeanRecurrentPPO:
    return ours(vec_env_of(TinyEnv), {"kind": kind})


class Seen(BaseCallback):
    """What a callback sees of each vec step, with the values that the live page gets."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[dict[str, Any]] = []

    def _on_step(self) -> bool:
        model: Any = self.model
        _, rewards, _, infos = self.locals["step"].outcome
        self.steps.append(
            {
                "observations": np.array(model._last_obs),
                "begins": np.array(model._last_episode_starts),
                "shown": model.shown_values(),
                "rewards": np.array(rewards),
                "lasts": {
                    number: info["terminal_observation"]
                    for number, info in enumerate(infos)
                    if info.get("TimeLimit.truncated")
                },
            }
        )
        return True


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_in_halves_each_env_remembers_its_own_episode(vec_env: HalvedVecEnv, kind: str) -> None:
    """Env by env and timestep by timestep, from the beginning of an episode on."""
    memory = {"kind": kind, "size": 8, "sequence": 5}
    config = PPOConfig.model_validate(
        {"n_steps": 10, "batch_size": 5, "gamma": 0.9, "memory": memory}
    )
    model = make_recurrent_ppo(config, tiny_context(vec_env, frame_stack=2))
    model.set_logger(Logger(None, []))
    seen = Seen()
    seen.init_callback(model)
    model._setup_learn(1, None)
    remembered = torch.zeros(N_ENVS, *model.policy.memory_shape)
    for rollout in range(3):
        assert model.env is not None
        model.collect_rollouts(model.env, seen, model.rollout_buffer, 10)
        buffer = model.rollout_buffer
        for row, step in enumerate(seen.steps[10 * rollout :]):
            for env in range(N_ENVS):
                before = remembered[env : env + 1] * float(not step["begins"][env])
                if row % 5 == 0:
                    np.testing.assert_allclose(buffer.states[row // 5, env], before[0], atol=1e-6)
                with torch.no_grad():
                    one = torch.from_numpy(step["observations"][env : env + 1])
                    value, log_probs, after = model.policy.outputs(one, before)
                remembered[env] = after[0]
                assert buffer.values[row, env] == pytest.approx(float(value), abs=1e-5)
                expected = [float(value), *log_probs.exp()[0].tolist()]
                assert step["shown"][env].tolist() == pytest.approx(expected, abs=1e-5)
                reward = step["rewards"][env]
                if env in step["lasts"]:
                    with torch.no_grad():
                        last = torch.from_numpy(step["lasts"][env][None])
                        reward += 0.9 * float(model.policy.values_after(last, after))
                assert buffer.rewards[row, env] == pytest.approx(reward, abs=1e-5)
    np.testing.assert_allclose(model.env_arrays()["memory"], remembered, atol=1e-5)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_new_memory_keeps_for_up_to_a_sequence(kind: str) -> None:
    """Without input, each unit loses a share 1/t of its state a timestep, t from 2 to 100."""
    memory = {"kind": kind, "sequence": 100, "size": 200, "layers": 2, "init": "chrono"}
    policy = ours(vec_env_of(TinyEnv), memory, n_steps=100, batch_size=100).policy
    for layers in (policy.lstm_actor, policy.lstm_critic):
        for number in range(2):
            (gates,) = layers.all_weights[number][2:3]
            hidden = layers.all_weights[number][3]
            assert not gates.any()
            kept = torch.sigmoid(hidden[200:400])
            t = 1 / (1 - kept.detach().numpy())
            assert 1.99 < t.min() < 10
            assert 90 < t.max() < 100.01
            assert t.mean() == pytest.approx(51, abs=8)
            if kind == "lstm":
                torch.testing.assert_close(torch.sigmoid(hidden[:200]), 1 - kept)
                assert not hidden[400:].any()
            else:
                assert not hidden[:200].any()
                assert not hidden[400:].any()


def test_a_gru_acts_in_predict_as_in_the_rollout() -> None:
    policy = ours(vec_env_of(TinyEnv), {"kind": "gru", "layers": 2}).policy
    rng = np.random.default_rng(0)
    memory = torch.zeros(2, *policy.memory_shape)
    state = None
    for step in range(12):
        begins = np.array([step in (0, 5), step in (0, 7)])
        observations = rng.integers(0, 256, (2, *TinyEnv.observation_space.shape), np.uint8)
        with torch.no_grad():
            memory[torch.from_numpy(begins)] = 0
            actions, _, _, memory = policy(torch.from_numpy(observations), memory, True)
        found, state = policy.predict(observations, state, begins, deterministic=True)
        assert found.tolist() == actions.tolist()
        assert state is not None
        np.testing.assert_allclose(state[0], memory[:, 0].swapaxes(0, 1), atol=1e-6)


OWN = """\
import torch
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

class Rows(BaseFeaturesExtractor):
    def __init__(self, observation_space, n=5):
        super().__init__(observation_space, n)
        self.layer = torch.nn.Linear(observation_space.shape[1], n)

    def forward(self, observations):
        return torch.relu(self.layer(observations.mean(dim=(1, 3))))
"""


def test_a_network_of_your_own_learns_before_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows_before_memory.py").write_text(OWN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    network = {"rows_before_memory:Rows": {"n": 7}}
    model = ours(vec_env_of(short_episodes), {"sequence": 8}, network=network)
    before = {name: tensor.clone() for name, tensor in model.policy.state_dict().items()}
    assert before["lstm_actor.weight_ih_l0"].shape == (4 * SIZE, 7)
    after, _ = learned(model, 48)
    for name in ("features_extractor.layer.weight", "lstm_actor.weight_ih_l0"):
        assert not torch.equal(after[name], before[name]), name
