"""Demonstrations, margins and held-out stretches, against plain loops."""

import numpy as np
import pytest
import torch

from game_rl.algorithms.cloning import held_out_stretches
from game_rl.algorithms.demonstrations import Demonstrations, Imitating, large_margin
from game_rl.config.learn_from import ImitateConfig, QImitateConfig
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.played.replayed_episode import ReplayedEpisode

SHAPE = (1, 4, 4)
FORM = ObservationFormat(FramePacking(SHAPE, bits=8), 3)
GAMMA = 0.9
CPU = torch.device("cpu")


def episode(rng: np.random.Generator, n: int, *, terminated: bool) -> ReplayedEpisode:
    pictures = rng.integers(256, size=(n + 1, *SHAPE), dtype=np.uint8)
    return ReplayedEpisode(
        frames=FORM.pack(pictures),
        actions=rng.integers(4, size=n),
        rewards=rng.normal(size=n).astype(np.float32),
        reward=0.0,
        terminated=terminated,
        ending="over" if terminated else "",
        success=None,
    )


def demonstrations(n_step: int = 2) -> tuple[list[ReplayedEpisode], Demonstrations]:
    rng = np.random.default_rng(0)
    played = [episode(rng, 7, terminated=True), episode(rng, 1, terminated=False)]
    played.append(episode(rng, 4, terminated=False))
    kept = Demonstrations(
        played, FORM, n_actions=4, gamma=GAMMA, n_step=n_step, seed=1, learned=None
    )
    return played, kept


def stack(played: ReplayedEpisode, at: int) -> np.ndarray:
    """The picture at a timestep with the two before it, zeros before the first."""
    pictures = FORM.unpack(played.frames)
    assert isinstance(pictures, np.ndarray)
    seen = [pictures[t] if t >= 0 else np.zeros(SHAPE, np.uint8) for t in range(at - 2, at + 1)]
    return np.concatenate(seen)


def test_every_timestep_is_kept_with_its_stack_action_and_return() -> None:
    played, kept = demonstrations()
    assert len(kept) == 12
    observations, actions = kept.take(np.arange(12), CPU)
    assert isinstance(observations, torch.Tensor)
    flat = [(each, t) for each in played for t in range(each.n_timesteps)]
    returns = kept.returns()
    for number, (each, t) in enumerate(flat):
        np.testing.assert_array_equal(observations[number].numpy(), stack(each, t))
        assert actions[number, 0] == each.actions[t]
        following = each.rewards[t:]
        expected = sum(reward * GAMMA**k for k, reward in enumerate(following))
        assert returns[number] == pytest.approx(expected, rel=1e-5)


def test_draws_are_timesteps_with_n_step_returns_that_end_with_the_episode() -> None:
    played, kept = demonstrations(n_step=3)
    drawn = kept.draw(64, CPU)
    flat = [(each, t) for each in played for t in range(each.n_timesteps)]
    known = {stack(each, t).tobytes(): (each, t) for each, t in flat}
    assert isinstance(drawn.observations, torch.Tensor)
    assert isinstance(drawn.next_observations, torch.Tensor)
    assert drawn.discounts is not None
    for i in range(64):
        each, t = known[drawn.observations[i].numpy().tobytes()]
        n = min(3, each.n_timesteps - t)
        expected = sum(each.rewards[t + k] * GAMMA**k for k in range(n))
        assert drawn.rewards[i, 0] == pytest.approx(expected, rel=1e-4, abs=1e-6)
        assert drawn.discounts[i, 0] == pytest.approx(GAMMA**n)
        assert drawn.dones[i, 0] == float(t + n == each.n_timesteps and each.terminated)
        np.testing.assert_array_equal(drawn.next_observations[i].numpy(), stack(each, t + n))


def test_a_restored_state_goes_on_with_the_same_draws_and_knows_other_frames() -> None:
    played, kept = demonstrations()
    kept.draw(5, CPU)
    state = kept.state()
    expected = kept.draw(20, CPU)
    _, other = demonstrations()
    other.load_state(state)
    assert not other.was_other
    assert torch.equal(other.draw(20, CPU).rewards, expected.rewards)
    fewer = Demonstrations(
        played[1:], FORM, n_actions=4, gamma=GAMMA, n_step=2, seed=1, learned=None
    )
    fewer.load_state(state)
    assert fewer.was_other


def test_the_margin_loss_is_that_of_a_loop() -> None:
    values = torch.tensor([[1.0, 2.0, 0.5], [3.0, 1.0, 0.0], [1.0, 0.9, 0.0]])
    actions = torch.tensor([[0], [0], [1]])
    expected = 0.0
    for row, (action,) in zip(values.tolist(), actions.tolist(), strict=True):
        raised = [q + (0.8 if a != action else 0.0) for a, q in enumerate(row)]
        expected += max(raised) - row[action]
    found = large_margin(values, actions, 0.8)
    assert found.loss.item() == pytest.approx(expected)
    assert int(found.right) == 1
    assert found.values.tolist() == pytest.approx([1.0, 3.0, 0.9])


def test_the_weight_falls_to_0_or_stays() -> None:
    _, kept = demonstrations()
    fading = Imitating(ImitateConfig(weight=0.4, fraction=0.5), kept, timesteps=1_000)
    weights = [fading.weight_at(t) for t in (0, 250, 500, 900)]
    assert weights == pytest.approx([0.4, 0.2, 0, 0])
    staying = Imitating(QImitateConfig(weight=2.0), kept, timesteps=1_000)
    assert staying.weight_at(900) == 2.0
    assert (staying.n_of(32), staying.n_of(2)) == (8, 1)


@pytest.mark.parametrize("n", [2, 3, 10, 200, 5_000, 100_000])
def test_stretches_are_held_out_in_about_the_wanted_share(n: int) -> None:
    for share in (0.05, 0.1, 0.5):
        found = held_out_stretches(n, share, np.random.default_rng(n))
        assert len(np.unique(found)) == len(found)
        assert 0 < len(found) < n
        assert (found >= 0).all()
        assert (found < n).all()
        assert abs(len(found) - share * n) <= max(1, min(128, share * n))
