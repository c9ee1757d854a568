"""DQN on lean storage against SB3's own learning step."""

import copy
import functools
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.type_aliases import RolloutReturn, TrainFreq
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from game_rl.algorithms.data_parallel import torch_threads
from game_rl.algorithms.dqn import LeanDQN, make_dqn
from game_rl.config.algorithms import DQNConfig
from game_rl.system.placement import Precision
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from tests.algorithms.conftest import Witness
from tests.tiny_context import tiny_context
from tests.tiny_env import TinyEnv

SMALL = {
    "name": "dqn",
    "replay": {"capacity": 200},
    "learning_starts": 40,
    "batch_size": 16,
    "train_freq": 2,
    "gradient_steps": 3,
    "gamma": 0.9,
    "target_update_interval": 50,
    "tau": 0.7,
    "max_grad_norm": 0.8,
}


def make(
    total_timesteps: int = 1_000, seed: int = 0, precision: Precision = "float32", **values: Any
) -> LeanDQN:
    model = make_dqn(
        DQNConfig.model_validate(SMALL | values),
        tiny_context(
            VecMonitor(DummyVecEnv([TinyEnv] * 2)),
            seed=seed,
            schedule_timesteps=total_timesteps,
            precision=precision,
        ),
    )
    model.set_logger(Logger(None, []))
    return model


def test_every_number_of_the_config_reaches_dqn() -> None:
    model = make(
        n_step=3, double_q=True, learning_rate={"start": 0.4, "end": 0.1}, layer_norm="picture"
    )
    assert model.double_q
    for name in set(SMALL) - {"name", "replay", "train_freq"}:
        assert getattr(model, name) == SMALL[name], name
    assert model.train_freq.frequency == 2
    assert model.replay_buffer.buffer_size == 200
    assert (model.replay_buffer.n_step, model.replay_buffer.gamma) == (3, 0.9)
    assert [model.lr_schedule(p) for p in (1.0, 0.0)] == pytest.approx([0.4, 0.1])
    for network in (model.q_net, model.q_net_target):
        assert [norm.weight.ndim for norm in network.features_extractor.norms] == [3, 3, 3, 1]


def weights_of(model: DQN) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in model.q_net.parameters()]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_gradient_is_sb3s(n_threads: int) -> None:
    ours = make(n_step=2)
    ours.learn(60)
    before = copy.deepcopy(ours.replay_buffer.store.state_dict())
    theirs = DQN(
        "CnnPolicy",
        ours.get_env(),
        device="cpu",
        buffer_size=10,
        gamma=0.9,
        max_grad_norm=0.8,
        learning_rate=1e-4,
    )
    theirs.set_logger(Logger(None, []))
    theirs.policy.load_state_dict(ours.policy.state_dict())
    with torch_threads(n_threads):
        ours.train(1, 100)
    ours.replay_buffer.store.load_state_dict(before)  # the same draws again
    theirs.replay_buffer = ours.replay_buffer
    theirs.train(1, 100)
    for mine, sb3s in zip(ours.q_net.parameters(), theirs.q_net.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, sb3s.grad, rtol=1e-3, atol=1e-6)


def test_double_q_lets_the_network_choose_and_the_target_judge() -> None:
    model = make(double_q=True, tau=1.0)
    model.learn(60)
    for parameter in model.q_net_target.parameters():
        parameter.data += 0.01 * torch.randn_like(parameter)
    pond = model.replay_buffer.store
    before = copy.deepcopy(pond.state_dict())
    samples = model.replay_buffer.sample(16)
    pond.load_state_dict(before)
    with torch.no_grad():
        losses = []
        chosen = model.q_net(samples.next_observations).numpy().argmax(axis=1)
        model.q_net_target.set_training_mode(False)
        judged = model.q_net_target(samples.next_observations).numpy()
        values = model.q_net(samples.observations).numpy()
        for i, action in enumerate(samples.actions[:, 0]):
            goes_on = 1 - samples.dones[i, 0].item()
            target = samples.rewards[i, 0].item() + 0.9 * goes_on * judged[i, chosen[i]]
            error = abs(values[i, action] - target)
            losses.append(0.5 * error**2 if error < 1 else error - 0.5)
    model.policy.set_training_mode(True)
    assert model._losses(samples)[0].item() == pytest.approx(np.sum(losses), rel=1e-4)


class KeptWeights(BaseCallback):
    """The weights that the network keeps as they are multiplied, at each vec step of a rollout."""

    def __init__(self) -> None:
        super().__init__()
        self.rollouts: list[list[Any]] = []

    def _on_rollout_start(self) -> None:
        self.rollouts.append([])

    def _on_step(self) -> bool:
        assert isinstance(self.model, LeanDQN)
        self.rollouts[-1].append(self.model.q_net.features_extractor._kept)
        return True


def test_weights_are_prepared_once_a_rollout() -> None:
    model, kept = make(train_freq=4), KeptWeights()
    model.learn(80, callback=kept)
    later = kept.rollouts[6:]  # the first 40 timesteps are random, and no network is asked
    assert len(later) == 4
    for weights in later:
        assert weights[0]
        assert all(other is weights[0] for other in weights)
    assert len({id(weights[0]) for weights in later}) == 4


@pytest.mark.parametrize("layer_norm", ["none", "channels"])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_the_best_actions_are_those_that_predict_chooses(
    precision: Precision, layer_norm: str
) -> None:
    model = make(precision=precision, layer_norm=layer_norm)
    model.learn(80)
    space = model.observation_space
    for n in (1, 2, 16):
        pictures = np.random.default_rng(n).integers(0, 256, (n, *space.shape), np.uint8)
        model.policy.set_training_mode(False)
        assert np.array_equal(model._best(pictures), model.predict(pictures)[0])


@pytest.mark.slow
@pytest.mark.parametrize("layer_norm", ["none", "channels"])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_the_target_network_that_judges_is_the_newest(
    precision: Precision, layer_norm: str
) -> None:
    """LeanNatureCNN keeps its weights as they are multiplied, and these change under it."""
    model = make(precision=precision, layer_norm=layer_norm, tau=1.0)
    model.learn(100)
    model.train(1, 16)
    x = model.replay_buffer.sample(8).observations
    fresh = copy.deepcopy(model.q_net_target)
    fresh.load_state_dict(model.q_net_target.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(model.q_net_target(x), fresh(x), rtol=0, atol=0)
        # a second update of the target, and a train() that asks it
        model._n_calls = 24
        before = model.q_net_target(x)
        model._on_step()
    model.train(1, 16)
    fresh.load_state_dict(model.q_net_target.state_dict())
    with torch.no_grad():
        after = model.q_net_target(x)
        assert not torch.equal(before, after)
        torch.testing.assert_close(after, fresh(x), rtol=0, atol=0)


def test_a_training_without_its_replay_waits_until_there_is_something_to_learn() -> None:
    model = make()
    model.learn(100)
    resumed = make()
    resumed.policy.load_state_dict(model.policy.state_dict())
    resumed.num_timesteps = model.num_timesteps
    weights = weights_of(resumed)
    resumed.learn(36, reset_num_timesteps=False)
    for before, after in zip(weights, weights_of(resumed), strict=True):
        assert torch.equal(before, after)
    resumed.learn(20, reset_num_timesteps=False)
    assert resumed._n_updates > 0


@pytest.mark.slow
def test_the_same_seed_learns_the_same_weights() -> None:
    one, other, different = make(seed=5), make(seed=5), make(seed=6)
    for model in (one, other, different):
        model.learn(200)
    pairs = list(zip(weights_of(one), weights_of(other), strict=True))
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not all(map(torch.equal, weights_of(one), weights_of(different)))


def test_epsilon_goes_on_where_it_was() -> None:
    model = make(exploration={"start": 1.0, "end": 0.0, "fraction": 0.5})
    model.learn(100)
    assert model.exploration_rate == pytest.approx(1 - 100 / 500)
    other = make(seed=1)
    other.load_state(model.state())
    assert other.exploration.state() == model.exploration.state()
    assert other._n_calls == model._n_calls == 50


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        {},
        pytest.param({"double_q": True, "n_step": 2}, marks=pytest.mark.slow),
        pytest.param({"layer_norm": "channels"}, marks=pytest.mark.slow),
        pytest.param({"layer_norm": "picture"}, marks=pytest.mark.soak),
    ],
)
def test_dqn_learns_to_take_the_rewarded_action(values: dict[str, Any]) -> None:
    model = make(
        learning_rate=1e-3,
        exploration={"start": 1.0, "end": 0.1, "fraction": 0.3},
        replay={"capacity": 2_000},
        gamma=0.5,
        tau=1.0,
        **values,
    )
    model.learn(1_000)
    observation: Any = model.get_env().reset()
    actions, _ = model.predict(observation, deterministic=True)
    assert actions.tolist() == [1, 1]


VEC_STEPS = 7
CONFIG = {
    "name": "dqn",
    "replay": {"capacity": 90},
    "train_freq": VEC_STEPS,
    "batch_size": 8,
    "target_update_interval": 9,
    "tau": 0.5,
    "exploration": {"start": 0.3, "end": 0.3},
}


def make_in_halves(vec_env: HalvedVecEnv) -> LeanDQN:
    model = make_dqn(
        DQNConfig.model_validate(CONFIG),
        tiny_context(vec_env, frame_stack=2),
    )
    model.set_logger(Logger(None, []))
    for parameter in model.q_net_target.parameters():
        parameter.data += 0.1  # so that an update is seen
    return model


def plain_rollout(model: LeanDQN, *arguments: Any, **keywords: Any) -> RolloutReturn:
    """SB3's loop, told what both halves do before either plays."""
    env = model.env
    assert isinstance(env, HalvedVecEnv)

    def sample(starts: int, *_: object) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        assert isinstance(model._last_obs, np.ndarray)
        halves = [model._explored(model._last_obs[bounds], starts) for bounds in env.bounds]
        return np.concatenate(halves), np.concatenate(halves)

    model._sample_action = sample  # type: ignore[method-assign, assignment]
    return OffPolicyAlgorithm.collect_rollouts(model, *arguments, **keywords)


@pytest.mark.parametrize("learning_starts", [0, 3 * VEC_STEPS, 10**6])
def test_rollouts_are_those_of_sb3s_loop(vec_env: HalvedVecEnv, learning_starts: int) -> None:
    outcomes: list[Any] = []
    for collect in (LeanDQN.collect_rollouts, plain_rollout):
        model = make_in_halves(vec_env)
        witness = Witness()
        dumps: list[int] = []
        model._setup_learn(10**6, witness)
        model.dump_logs = functools.partial(  # type: ignore[method-assign]
            lambda model, dumps: dumps.append(model.num_timesteps), model, dumps
        )
        assert isinstance(model.train_freq, TrainFreq)
        returned = [
            collect(
                model,
                vec_env,
                witness,
                model.train_freq,
                model.replay_buffer,
                learning_starts=learning_starts,
                log_interval=2,
            )
            for _ in range(3)  # the next one goes on where the last one ended
        ]
        state = {k: np.asarray(v) for k, v in model.replay_buffer.store.state_dict().items()}
        targets = torch.cat([p.flatten() for p in model.q_net_target.parameters()])
        outcomes.append(
            (
                returned,
                witness.seen,
                state,
                targets.detach().numpy(),
                model._last_obs,
                (model.num_timesteps, model._n_calls, model._episode_num, dumps),
                model.exploration.state(),
            )
        )
    np.testing.assert_equal(outcomes[0], outcomes[1])
    assert outcomes[0][-2][-1]  # something was logged, so episodes ended


def test_a_callback_can_end_the_rollout(vec_env: HalvedVecEnv) -> None:
    model, witness = make_in_halves(vec_env), Witness(last_step=9)
    model.learn(10**6, callback=witness)
    assert model.num_timesteps == 9
    assert witness.seen[-1] != "end"
