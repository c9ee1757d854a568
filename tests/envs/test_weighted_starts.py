"""Start states with weights: how often each is drawn, and that nothing else is drawn otherwise."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.config.schema import EnvConfig
from game_rl.envs.episode_starts import EpisodeStarts
from game_rl.errors import UsageError
from tests.emulator.fake_emulator import FakeEmulator
from tests.envs.example import FAKE_GAME_YAML, fake_env, fake_game

NAMES = tuple(FAKE_GAME_YAML["start_states"])


class Noting(EpisodeStarts):
    """Notes what is drawn, without playing it."""

    def bring(self, name: str, *, game_seed: int, idle_frames: int) -> None:
        self.brought = name, game_seed, idle_frames


def noting(chosen: Sequence[str] | Mapping[str, float] | None) -> Noting:
    config = EnvConfig().model_copy(update={"start_states": chosen, "max_idle_frames": 30})
    return Noting(FakeEmulator(), fake_game(), config)


def begun(chosen: Sequence[str] | Mapping[str, float] | None, n: int, seed: int = 0) -> list[str]:
    starts, random = noting(chosen), np.random.default_rng(seed)
    return [starts.begin(random, {}) for _ in range(n)]


def part_of(point: float, weights: Mapping[str, float]) -> str:
    """The name in whose part of 0..1 a number lies, walking through the parts one by one."""
    total = sum(map(Fraction, weights.values()))
    end = Fraction(0)
    for name in sorted(weights):
        end += Fraction(weights[name]) / total
        if Fraction(point) < end:
            return name
    raise AssertionError(point)


@given(
    st.dictionaries(st.sampled_from(NAMES), st.integers(1, 1_000), min_size=1),
    st.integers(0, 2**32 - 1),
)
def test_a_start_state_is_drawn_as_often_as_its_weight_says(
    weights: dict[str, int], seed: int
) -> None:
    random = np.random.default_rng(seed)
    expected = []
    for _ in range(20):
        expected.append(part_of(random.random(), weights))
        random.integers(31)
        random.integers(2**32)
    assert begun(weights, 20, seed) == expected


def test_three_of_four_begin_where_the_weight_is_three() -> None:
    counts = Counter(begun({"level_1": 1, "level_3": 3}, 10_000))
    assert set(counts) == {"level_1", "level_3"}
    assert abs(counts["level_3"] - 7_500) < 5 * 43.3  # five standard deviations


def test_the_order_of_the_names_makes_no_difference_with_weights() -> None:
    weights = {"level_3": 2.5, "level_1": 1.0, "level_2": 0.5}
    assert begun(weights, 100) == begun(dict(reversed(weights.items())), 100)


@pytest.mark.parametrize("chosen", [None, ["level_3", "level_1", "level_3"], ["level_2"]])
def test_without_weights_the_draws_are_those_of_a_plain_list(chosen: list[str] | None) -> None:
    names, random = chosen or NAMES, np.random.default_rng(7)
    expected = []
    for _ in range(50):
        expected.append(names[int(random.integers(len(names)))])
        random.integers(31)
        random.integers(2**32)
    assert begun(chosen, 50, seed=7) == expected


def test_a_fixed_start_state_does_not_change_later_episodes_with_weights() -> None:
    starts = noting({"level_1": 1, "level_3": 3})
    free, fixed = np.random.default_rng(3), np.random.default_rng(3)
    starts.begin(free, {})
    starts.begin(fixed, {"start_state": "level_2"})
    assert starts.brought[0] == "level_2"
    assert free.bit_generator.state == fixed.bit_generator.state


def test_an_env_draws_by_weights_and_goes_on_from_its_state() -> None:
    weights = {"level_1": 1.0, "level_2": 5.0}
    with closing(fake_env(start_states=weights)) as one, closing(fake_env()) as other:
        first = [one.reset(seed=1)[1]["start_state"]] + [
            one.reset()[1]["start_state"] for _ in range(9)
        ]
        assert set(first) == {"level_1", "level_2"}
        with closing(fake_env(start_states=weights)) as restored:
            restored.load_state(one.save_state())
            later = [restored.reset()[1]["start_state"] for _ in range(9)]
        assert later == [one.reset()[1]["start_state"] for _ in range(9)]
        assert {other.reset(seed=n)[1]["start_state"] for n in range(20)} == set(NAMES)


def test_an_unknown_start_state_with_a_weight_is_refused() -> None:
    with pytest.raises(UsageError, match="did you mean level_1"):
        noting({"levl_1": 1})
    with pytest.raises(UsageError, match="start_states is empty"):
        noting({})
