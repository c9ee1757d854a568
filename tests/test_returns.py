"""Q(lambda) targets, compared with a plain recursion over numbers and with values by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.returns import discounted_sums, endless_advantages, q_lambda_returns


def one(
    rewards: list[float], values: list[float], ends: str, *, gamma: float, lam: float
) -> list[float]:
    """Return the targets of one env; in `ends`, T is terminated, C is cut off and . is neither."""
    found = q_lambda_returns(
        np.array(rewards, np.float32)[:, None],
        np.array(values, np.float32)[:, None],
        np.array([[end == "T"] for end in ends]),
        np.array([[end != "."] for end in ends]),
        gamma=gamma,
        lam=lam,
    )
    assert found.dtype == np.float32
    return found[:, 0].tolist()


def target(
    t: int, rewards: list[float], values: list[float], ends: str, gamma: float, lam: float
) -> float:
    """Return the target at t in the forward view, without arrays."""
    if ends[t] == "T":
        return rewards[t]
    if ends[t] == "C" or t == len(rewards) - 1:
        return rewards[t] + gamma * values[t]
    ahead = target(t + 1, rewards, values, ends, gamma, lam)
    return rewards[t] + gamma * ((1 - lam) * values[t] + lam * ahead)


@pytest.mark.parametrize(
    ("ends", "lam", "expected"),
    [
        ("...", 0.0, [1 + 0.5 * 10, 2 + 0.5 * 20, 3 + 0.5 * 40]),  # one step and a value
        ("...", 1.0, [1 + 0.5 * (2 + 0.5 * (3 + 0.5 * 40)), 2 + 0.5 * (3 + 0.5 * 40), 23]),
        ("..T", 1.0, [1 + 0.5 * (2 + 0.5 * 3), 2 + 0.5 * 3, 3]),  # nothing after the end
        (".T.", 1.0, [1 + 0.5 * 2, 2, 23]),  # and nothing of the next episode
        (".C.", 1.0, [1 + 0.5 * (2 + 0.5 * 20), 2 + 0.5 * 20, 23]),  # but a limit is no end
        ("...", 0.5, [1 + 0.5 * (0.5 * 10 + 0.5 * 12.75), 2 + 0.5 * (0.5 * 20 + 0.5 * 23), 23]),
    ],
)
def test_returns_are_those_worked_out_by_hand(ends: str, lam: float, expected: list[float]) -> None:
    assert one([1, 2, 3], [10, 20, 40], ends, gamma=0.5, lam=lam) == pytest.approx(expected)


@given(
    steps=st.lists(
        st.tuples(st.floats(-10, 10), st.floats(-10, 10), st.sampled_from(".....TC")), min_size=1
    ),
    gamma=st.floats(0, 1),
    lam=st.floats(0, 1),
)
def test_returns_are_those_of_the_forward_view(
    steps: list[tuple[float, float, str]], gamma: float, lam: float
) -> None:
    rewards, values = ([float(np.float32(step[i])) for step in steps] for i in (0, 1))
    ends = "".join(step[2] for step in steps)
    expected = [target(t, rewards, values, ends, gamma, lam) for t in range(len(steps))]
    found = one(rewards, values, ends, gamma=gamma, lam=lam)
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_envs_do_not_see_each_other() -> None:
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=(2, 9, 4)).astype(np.float32)
    ends = rng.random((9, 4)) < 0.3
    terminated = ends & (rng.random((9, 4)) < 0.5)
    together = q_lambda_returns(rewards, values, terminated, ends, gamma=0.9, lam=0.7)
    for env in range(4):
        one = np.s_[:, env : env + 1]
        alone = q_lambda_returns(
            rewards[one], values[one], terminated[one], ends[one], gamma=0.9, lam=0.7
        )
        np.testing.assert_array_equal(together[:, env], alone[:, 0])


def test_discounted_sums_count_the_first_rewards_of_each_row() -> None:
    rewards = np.array([[1, 2, 4], [1, 2, 4], [1, 2, 4]], np.float32)
    sums = discounted_sums(rewards, np.array([1, 2, 3]), gamma=0.5)
    assert sums.dtype == np.float32
    assert sums.tolist() == [1.0, 2.0, 3.0]


def test_endless_advantages_are_the_sums_of_later_errors_of_the_values() -> None:
    """Schulman et al. 2016, equation 16, without an episode's end."""
    rng = np.random.default_rng(0)
    rewards = rng.random((3, 7), np.float32)
    values = rng.random((3, 7), np.float32)
    found = endless_advantages(rewards, values, gamma=0.9, lam=0.8)
    after = np.concatenate((values[:, 1:], values[:, -1:]), axis=1)
    errors = rewards + 0.9 * after - values
    for step in range(7):
        wanted = sum((0.9 * 0.8) ** k * errors[:, step + k] for k in range(7 - step))
        np.testing.assert_allclose(found[:, step], wanted, rtol=1e-5)
