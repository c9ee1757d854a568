"""Imitation before the run and while it plays, against gradients of whole batches."""

from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor
from torch.nn import functional

from game_rl.algorithms.algorithm import LeanAlgorithm
from game_rl.algorithms.cloning import ClonedEpoch, Cloning
from game_rl.algorithms.data_parallel import Threads, data_parallel
from game_rl.algorithms.demonstrations import Demonstrations, Imitating
from game_rl.algorithms.dqn import make_dqn
from game_rl.algorithms.ppo import make_ppo
from game_rl.algorithms.pqn import make_pqn
from game_rl.config.algorithms import DQNConfig, PPOConfig, PQNConfig
from game_rl.config.learn_from import CloningConfig, ImitateConfig, QImitateConfig
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.played.replayed_episode import ReplayedEpisode
from tests.tiny_context import tiny_context
from tests.tiny_env import FRAME, TinyEnv

FORM = ObservationFormat(FramePacking(FRAME), 1)
WHITE, BLACK = 255, 0
GAMMA = 0.9


def demonstrations(n: int = 120, n_step: int = 1) -> Demonstrations:
    """One episode, in which the player takes action 1 on the bright pictures."""
    rng = np.random.default_rng(0)
    actions = rng.integers(2, size=n)
    pictures = np.where(rng.random((n + 1, *FRAME)) < 0.3, WHITE, BLACK).astype(np.uint8)
    pictures[:-1][actions == 1, :, :18] = WHITE
    episode = ReplayedEpisode(
        frames=FORM.pack(pictures),
        actions=actions,
        rewards=rng.normal(size=n).astype(np.float32),
        reward=0.0,
        terminated=True,
        ending="over",
        success=True,
    )
    return Demonstrations(
        [episode], FORM, n_actions=2, gamma=GAMMA, n_step=n_step, seed=3, learned=None
    )


def make(name: str) -> Any:
    context = tiny_context(VecMonitor(DummyVecEnv([TinyEnv] * 2)))
    model: LeanAlgorithm
    if name == "ppo":
        config = PPOConfig(n_steps=8, batch_size=8, learning_rate=1e-3, gamma=GAMMA)
        model = make_ppo(config, context)
    elif name == "dqn":
        settings = {"replay": {"capacity": 40}, "batch_size": 8, "learning_starts": 0}
        model = make_dqn(
            DQNConfig.model_validate({"name": "dqn", "gamma": GAMMA, **settings}), context
        )
    else:
        pqn = PQNConfig(name="pqn", n_steps=8, batch_size=8, learning_rate=1e-3, gamma=GAMMA)
        model = make_pqn(pqn, context)
    model.set_logger(Logger(None, []))
    return model


def cloned(model: Any, **settings: Any) -> tuple[Cloning, list[ClonedEpoch]]:
    cloning = Cloning(
        model,
        demonstrations(),
        CloningConfig.model_validate(settings),
        margin=0.8,
        value_weight=0.5,
        seed=5,
    )
    return cloning, list(cloning.epochs(is_stopped=lambda: False, tell=lambda _: None))


@pytest.mark.parametrize("name", ["ppo", "dqn", "pqn"])
def test_a_network_learns_the_players_actions_and_keeps_its_optimiser(name: str) -> None:
    model = make(name)
    cloning, epochs = cloned(model, n_epochs=12, no_improvement_epochs=12)
    best = min(epochs, key=lambda each: each.held_out_loss)
    assert best.held_out_accuracy > 0.9
    assert [each for each in epochs if each.is_best][-1] is best
    _, accuracy = cloning._judged()  # the weights are those of the best pass
    assert accuracy == best.held_out_accuracy
    assert not model.policy.optimizer.state_dict()["state"]
    assert 0.2 < cloning.usual_accuracy < 0.9


def test_it_ends_when_the_held_out_loss_no_longer_falls_and_repeats_itself() -> None:
    _, epochs = cloned(make("ppo"), n_epochs=60, no_improvement_epochs=1)
    assert len(epochs) < 60
    assert [each.is_best for each in epochs[-3:]] == [True, False, False]
    assert cloned(make("ppo"), n_epochs=60, no_improvement_epochs=1)[1] == epochs


@pytest.mark.parametrize("name", ["ppo", "pqn"])
def test_a_gradient_step_also_has_the_gradient_of_a_played_batch(name: str) -> None:
    model = make(name)
    config: Any = ImitateConfig(share=0.5) if name == "ppo" else QImitateConfig(share=0.5)
    kept = demonstrations(n_step=3)
    model.imitating = Imitating(config, kept, timesteps=100)
    model._imitated = []
    model.policy.set_training_mode(True)
    state = kept.state()
    drawn = kept.draw(4, model.device)
    kept.load_state(state)
    weights = list(model.policy.parameters())
    before = [torch.randn_like(weight) for weight in weights]
    for weight, gradient in zip(weights, before, strict=True):
        weight.grad = gradient.clone()
    with data_parallel(weights, model.device, Threads()) as parallel:
        model._imitate(parallel)
    if name == "ppo":
        _, log_probs, _ = model.policy.evaluate_actions(drawn.observations, drawn.actions[:, 0])
        loss = -0.5 * log_probs.mean()
    else:
        values = model.policy(drawn.observations)
        with torch.no_grad():
            best = model.policy(drawn.next_observations).max(dim=1).values
        targets = drawn.rewards[:, 0] + (1 - drawn.dones[:, 0]) * drawn.discounts[:, 0] * best
        loss = torch.zeros(())
        for i, action in enumerate(drawn.actions[:, 0].tolist()):
            raised = [q + (0.8 if a != action else 0.0) for a, q in enumerate(values[i])]
            margin = torch.stack(raised).max() - values[i, action]
            loss = loss + (0.5 * (values[i, action] - targets[i]) ** 2 + margin) / 4
    expected = torch.autograd.grad(loss, weights, materialize_grads=True)
    for weight, old, new in zip(weights, before, expected, strict=True):
        assert weight.grad is not None
        torch.testing.assert_close(weight.grad, old + new, rtol=1e-3, atol=1e-5)


def test_a_batch_of_dqn_ends_with_played_timesteps_which_alone_have_a_margin() -> None:
    model = make("dqn")
    model.learn(40)
    kept = demonstrations()
    model.imitating = Imitating(QImitateConfig(share=0.25, weight=2.0), kept, timesteps=100)
    state = kept.state()
    shown = kept.draw(2, model.device)
    kept.load_state(state)
    batch = model._sample(8)
    assert torch.equal(batch.actions[6:], shown.actions)
    assert torch.equal(batch.rewards[6:], shown.rewards)
    total, losses = model._losses(batch, 0.0, 6)
    values = model.q_net(batch.observations)
    chosen = values.gather(1, batch.actions.long())
    expected = functional.smooth_l1_loss(chosen, model._targets(batch), reduction="sum").item()
    for i in (6, 7):
        action = int(batch.actions[i, 0])
        raised = [q + (0.8 if a != action else 0.0) for a, q in enumerate(values[i].tolist())]
        expected += 2.0 * (max(raised) - values[i, action].item())
    assert total.item() == pytest.approx(expected, rel=1e-4)
    assert losses.right == int((values[6:].argmax(dim=1) == batch.actions[6:, 0]).sum())
    model.train(2, 8)
    assert model.logger.name_to_value["imitate/weight"] == 2.0
