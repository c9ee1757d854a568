"""PQN's targets against single timesteps looked at one by one, and whether it learns."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecFrameStack, VecMonitor

from game_rl.algorithms.data_parallel import Threads, data_parallel
from game_rl.algorithms.pqn import PQN, make_pqn
from game_rl.buffers.layout import Transitions
from game_rl.buffers.pond import Pond
from game_rl.config.algorithms import PQNConfig
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from tests.tiny_context import tiny_context
from tests.tiny_env import FRAME, TinyEnv

STACK = 2
SMALL = {
    "name": "pqn",
    "n_steps": 12,
    "batch_size": 8,
    "n_epochs": 3,
    "gamma": 0.9,
    "q_lambda": 0.7,
    "max_grad_norm": 0.8,
}


class LimitedEnv(TinyEnv):
    """Every other episode is cut off after its third timestep."""

    _episodes = 0

    def reset(self, **keywords: Any) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        self._episodes += 1
        return super().reset(**keywords)

    def step(self, action: np.int64) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        frame, reward, over, _, info = super().step(action)
        is_cut = self._episodes % 2 == 0 and self._timestep == 3
        return frame, reward + 0.1 * self._timestep, over, is_cut, info


def vec_env(env: type[gym.Env[Any, Any]] = TinyEnv, n_envs: int = 2) -> VecEnv:
    stacked = VecFrameStack(DummyVecEnv([env] * n_envs), STACK, channels_order="first")
    return VecMonitor(stacked)


def make(env: VecEnv | None = None, *, seed: int = 0, total: int = 1_000, **values: Any) -> PQN:
    model = make_pqn(
        PQNConfig.model_validate(SMALL | values),
        tiny_context(env or vec_env(), frame_stack=STACK, seed=seed, schedule_timesteps=total),
    )
    model.set_logger(Logger(None, []))
    return model


class Recorder:
    """A feed that keeps what it gets."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []

    def append(self, transitions: Transitions) -> None:
        """With the stacks that the frames make."""
        step = transitions._asdict()
        stacks, channels = step["observations"], FRAME[0]
        pixels = FramePacking(FRAME).unpack
        np.testing.assert_array_equal(pixels(step["frames"]), stacks[:, -channels:])
        step["next_observations"] = np.concatenate(
            (stacks[:, channels:], pixels(step["next_frames"])), axis=1
        )
        self.steps.append({name: np.array(value) for name, value in step.items()})

    def stacked(self, name: str) -> NDArray[Any]:
        return np.stack([step[name] for step in self.steps])


class RolloutEnd(BaseCallback):
    """Keeps the targets of the rollout and the network that played it."""

    def __init__(self) -> None:
        super().__init__()
        self.returns: list[NDArray[np.float32]] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        assert isinstance(self.model, PQN)
        self.returns.append(self.model.rollout_buffer.returns.copy())
        self.weights = {k: v.clone() for k, v in self.model.policy.state_dict().items()}


def test_every_number_of_the_config_reaches_pqn() -> None:
    model = make(learning_rate={"start": 0.4, "end": 0.1}, layer_norm="picture")
    for name in set(SMALL) - {"name"}:
        assert getattr(model, name) == SMALL[name], name
    assert [model.lr_schedule(p) for p in (1.0, 0.0)] == pytest.approx([0.4, 0.1])
    assert isinstance(model.policy.optimizer, torch.optim.RAdam)
    norms = model.policy.q_net.features_extractor.norms
    assert [norm.weight.ndim for norm in norms] == [3, 3, 3, 1]


@pytest.mark.parametrize("q_lambda", [0.0, 0.7, 1.0])
def test_targets_are_those_of_the_timesteps_one_by_one(q_lambda: float) -> None:
    model, feed, end = make(vec_env(LimitedEnv, 3), q_lambda=q_lambda), Recorder(), RolloutEnd()
    model.feeds = [feed]
    model.learn(36, callback=end)
    model.policy.load_state_dict(end.weights)
    terminated, truncated = feed.stacked("terminated"), feed.stacked("truncated")
    assert terminated.any()
    assert truncated.any()
    for env in range(3):
        following = None
        for t in reversed(range(12)):
            step = {name: array[env] for name, array in feed.steps[t].items()}
            next_value = (
                model.policy(torch.from_numpy(step["next_observations"][None])).max().item()
            )
            if following is None or step["truncated"]:
                ahead = next_value
            else:
                ahead = (1 - q_lambda) * next_value + q_lambda * following
            following = step["rewards"] + 0.9 * ahead * (not step["terminated"])
            assert end.returns[0][t, env] == pytest.approx(following, rel=1e-4, abs=1e-5)


def test_a_feed_gets_every_timestep_with_the_true_last_observation() -> None:
    env, feed = vec_env(LimitedEnv, 2), Recorder()
    model = make(env)
    model.feeds = [feed]
    model.learn(48)
    assert len(feed.steps) == 24
    twin = vec_env(LimitedEnv, 2)
    twin.seed(model.seed)
    observations = twin.reset()
    for step in feed.steps:
        np.testing.assert_array_equal(step["observations"], observations)
        observations, rewards, dones, infos = twin.step(step["actions"])
        expected = np.array(observations)
        for i in np.flatnonzero(dones):
            expected[i] = infos[i]["terminal_observation"]
        np.testing.assert_array_equal(step["next_observations"], expected)
        np.testing.assert_allclose(step["rewards"], rewards)
        np.testing.assert_array_equal(step["terminated"] | step["truncated"], dones)
        limits = [bool(info["TimeLimit.truncated"]) for info in infos]
        np.testing.assert_array_equal(step["truncated"], limits)


def test_a_gradient_step_goes_down_half_the_squared_error_with_clipped_length() -> None:
    model = make(max_grad_norm=1e-3)
    model.learn(24)
    indices = next(iter(model.rollout_buffer.minibatches(8)))
    samples = model.rollout_buffer.samples(indices)
    values = model.policy(samples.observations)
    losses = [
        0.5 * (values[i, int(samples.actions[i])].item() - samples.returns[i].item()) ** 2
        for i in range(8)
    ]
    with data_parallel(model.policy.parameters(), model.device, Threads()) as parallel:
        loss = model._gradient_step(parallel, indices)
    assert loss == pytest.approx(np.mean(losses), rel=1e-4)
    length = sum(p.grad.square().sum().item() for p in model.policy.parameters()) ** 0.5
    assert length == pytest.approx(1e-3, rel=1e-3)


def test_epsilon_falls_over_the_rollouts_and_goes_on_where_it_was() -> None:
    exploration = {"start": 0.8, "end": 0.2, "fraction": 0.5}
    model = make(total=240, exploration=exploration)
    found = []

    class Note(BaseCallback):
        def _on_step(self) -> bool:
            return True

        def _on_rollout_end(self) -> None:
            found.append(self.logger.name_to_value["rollout/exploration_rate"])

    model.learn(144, callback=Note())
    assert found == pytest.approx([0.8, 0.68, 0.56, 0.44, 0.32, 0.2])
    other = make(seed=3)
    other.load_state(model.state())
    assert other.state() == model.state()


def test_the_same_seed_learns_the_same_weights() -> None:
    weights = []
    for seed in (5, 5, 6):
        model = make(seed=seed)
        model.learn(100)
        weights.append(torch.cat([p.detach().flatten() for p in model.policy.parameters()]))
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


@pytest.mark.parametrize(
    "layer_norm",
    [
        "channels",
        pytest.param("picture", marks=pytest.mark.slow),
        pytest.param("none", marks=pytest.mark.slow),
    ],
)
def test_pqn_learns_to_take_the_rewarded_action(layer_norm: str) -> None:
    model = make(
        vec_env(n_envs=4),
        total=1_200,
        layer_norm=layer_norm,
        gamma=0.5,
        learning_rate=1e-3,
        exploration={"start": 1.0, "end": 0.1, "fraction": 0.5},
    )
    model.learn(1_200)
    observation: Any = model.get_env().reset()
    actions, _ = model.predict(observation, deterministic=True)
    assert actions.tolist() == [1] * 4


def test_a_pond_can_be_fed_and_gives_back_what_was_played() -> None:
    env, recorder = vec_env(LimitedEnv, 2), Recorder()
    pond = Pond(
        capacity=1_000,
        n_envs=2,
        n_actions=2,
        observation_format=ObservationFormat(FramePacking(FRAME), STACK),
        rng=np.random.default_rng(0),
    )
    model = make(env)
    model.feeds = [recorder, pond]
    model.learn(72)
    envs, numbers = pond.held()
    assert len(pond) == len(envs) == 72
    for i in range(2):
        batch = pond.batch(envs[envs == i], numbers[envs == i], n_step=1, gamma=0.9, device="cpu")
        for name, tensor in (
            ("observations", batch.observations),
            ("next_observations", batch.next_observations),
            ("actions", batch.actions[:, 0]),
            ("rewards", batch.rewards[:, 0]),
            ("terminated", batch.terminated[:, 0]),
        ):
            np.testing.assert_array_equal(tensor.numpy(), recorder.stacked(name)[:, i])
