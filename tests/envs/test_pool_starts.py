"""Episodes that begin in a pool: what is drawn, and that they are new episodes."""

from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.config.schema import EnvConfig
from game_rl.envs.episode_starts import EpisodeStarts, PoolBeginning, pool_draw
from game_rl.envs.game_boy_env import GameBoyEnv
from tests.emulator.fake_emulator import FakeEmulator
from tests.envs.example import FAKE_GAME_YAML, fake_env, fake_game

NAMES = tuple(FAKE_GAME_YAML["start_states"])


class Noting(EpisodeStarts):
    """Notes what is drawn, without playing it."""

    brought: tuple[str | int, int, int]

    def bring(self, name: str, *, game_seed: int, idle_frames: int) -> None:
        self.brought = name, game_seed, idle_frames

    def bring_to(self, state: PoolBeginning, *, game_seed: int, idle_frames: int) -> None:
        self.brought = state.number, game_seed, idle_frames


def noting() -> Noting:
    return Noting(FakeEmulator(), fake_game(), EnvConfig(max_idle_frames=30))


def filled(starts: EpisodeStarts, weights: dict[int, int], share: float = 1.0) -> None:
    """Give it states with these numbers and weights."""
    starts.pool.states = {
        number: PoolBeginning(number, b"", "level_2", 0.0, 0) for number in weights
    }
    starts.pool.draw = pool_draw(share, tuple(weights), tuple(weights.values()))


@settings(max_examples=50)
@given(
    st.dictionaries(st.integers(0, 99), st.integers(0, 9), min_size=1).filter(
        lambda weights: any(weights.values())
    ),
    st.floats(0, 1),
    st.integers(0, 2**32 - 1),
)
def test_the_draws_are_those_of_a_plain_loop(
    weights: dict[int, int], share: float, seed: int
) -> None:
    starts = noting()
    filled(starts, weights, share)
    random, plain = np.random.default_rng(seed), np.random.default_rng(seed)
    for _ in range(20):
        expected: str | int = NAMES[plain.integers(len(NAMES))]
        idle_frames, game_seed = plain.integers(31), plain.integers(2**32)
        is_pooled, point = plain.random() < share, plain.random()
        if is_pooled:
            total = Fraction(sum(weights.values()))
            end = Fraction(0)
            for number, weight in weights.items():
                end += weight / total
                if abs(end - Fraction(point)) < Fraction(1, 10**9):
                    return  # on a border, where sums round otherwise
                if Fraction(point) < end:
                    expected = number
                    break
        name = starts.begin(random, {})
        assert starts.brought == (expected, game_seed, idle_frames)
        assert name == ("level_2" if is_pooled else expected)
        assert (starts.begun is not None) == is_pooled
    assert random.bit_generator.state == plain.bit_generator.state


def test_an_empty_pool_draws_nothing() -> None:
    starts, random, plain = noting(), np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(20):
        name = NAMES[plain.integers(len(NAMES))]
        idle_frames, game_seed = int(plain.integers(31)), int(plain.integers(2**32))
        assert starts.begin(random, {}) == name
        assert starts.brought == (name, game_seed, idle_frames)
    assert random.bit_generator.state == plain.bit_generator.state


def test_an_env_goes_to_the_furthest_states_once() -> None:
    starts = noting()
    starts.pool.states = {n: PoolBeginning(n, b"", "level_2", float(n // 2), 0) for n in range(8)}
    random = np.random.default_rng(0)

    def begun(furthest: tuple[int, ...], share: float) -> int | None:
        starts.pool.draw = pool_draw(share, (0, 1), (1, 1), furthest)
        starts.begin(random, {})
        return None if starts.begun is None else starts.begun.number

    assert begun((), 0) is None
    assert begun((2, 3), 0) in (2, 3)
    assert [begun((2, 3), 0) for _ in range(5)] == [None] * 5
    assert {begun((4, 5), 1) for _ in range(20)} > {0, 1}
    assert begun((4, 5), 0) is None  # it was in one of them
    starts.begin(random, {"start_state": "level_3"})
    assert starts.pool.reached == 2.0
    assert begun((6, 7), 0) in (6, 7)


def test_a_reset_with_a_start_state_begins_there_and_changes_no_later_draw() -> None:
    starts, others = noting(), noting()
    randoms = [np.random.default_rng(5) for _ in range(2)]
    for each in (starts, others):
        filled(each, {4: 1, 7: 2}, 0.9)
    for turn in range(40):
        options = {"start_state": "level_3", "idle_frames": 2} if turn % 2 else {}
        name = starts.begin(randoms[0], options)
        others.begin(randoms[1], {})
        if turn % 2:
            assert (name, starts.begun, starts.brought[2]) == ("level_3", None, 2)
        else:
            assert starts.brought == others.brought


@pytest.fixture
def env() -> GameBoyEnv:
    return fake_env()


def test_an_episode_in_a_pool_is_a_new_one(env: GameBoyEnv) -> None:
    """Its rewards and limit count from there; its random seed is its own."""
    with closing(env):
        env.reset(seed=0, options={"start_state": "level_1", "idle_frames": 0})
        for _ in range(6):
            env.step(2)  # right, which earns
        earned = env.reward_terms["progress"]
        x = env.read_variables()["x"]
        assert earned > 0
        state = env.emulator.save_state()
        env.starts.pool.states = {8: PoolBeginning(8, state, "level_1", earned, 6)}
        env.starts.pool.draw = pool_draw(1.0, (8,), (1.0,))
        seeds = set()
        for _ in range(3):
            _, info = env.reset(options={"idle_frames": 0})
            assert info == {"start_state": "(pool)", "pool_state": 8}
            values = env.read_variables()
            seeds.add(values["seed"])
            assert values["x"] == x
            assert env.reward_terms == dict.fromkeys(env.reward_terms, 0.0)
            assert env.episode.timesteps == 0
            _, reward, *_ = env.step(2)
            assert env.reward_terms["progress"] == reward == pytest.approx(earned / 6)
        assert len(seeds) == 3


def test_the_last_info_and_a_saved_state_say_where_the_episode_began(env: GameBoyEnv) -> None:
    with closing(env), closing(fake_env()) as other:
        env.reset(seed=0)
        assert b'"pool_state"' not in env.save_state().model_dump_json().encode()
        state = env.emulator.save_state()
        env.starts.pool.states = {3: PoolBeginning(3, state, "level_1", 0.0, 0)}
        env.starts.pool.draw = pool_draw(1.0, (3,), (1.0,))
        env.reset()
        env.step(2)
        other.load_state(
            type(env.save_state()).model_validate_json(env.save_state().model_dump_json())
        )
        for each in (env, other):
            info: dict[str, object] = {}
            is_over = False
            while not is_over:
                *_, terminated, truncated, info = each.step(3)
                is_over = terminated or truncated
            assert (info["start_state"], info["pool_state"]) == ("(pool)", 3)
