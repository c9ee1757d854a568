"""Stuck episodes and looped rewards, against a list of all states."""

import json
from collections.abc import Sequence
from contextlib import closing

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.envs.episode_progress import STUCK_AFTER_TIMESTEPS, RepetitionGuard
from game_rl.envs.game_boy_env import EnvState
from game_rl.games.variables import Values
from tests.envs.example import fake_env, fake_game, moment

TERMS = ("back_and_forth", "way", "rare")
TERM = {"variable": "x", "on": "increase"}
GAME = fake_game(
    rewards={**dict.fromkeys(TERMS, TERM), "alive": {"variable": "x", "on": "value"}}
).definition
PICTURE = np.zeros((1, 4, 4), np.uint8)


def look(guard: RepetitionGuard, timestep: int, values: Values, gained: Sequence[str] = ()) -> None:
    guard.step(moment(values, timesteps=timestep, observation=PICTURE, gained=list(gained)))


def play(guard: RepetitionGuard, states: list[int], *, begins_at: int = 1) -> None:
    for timestep, state in enumerate(states, start=begins_at):
        look(guard, timestep, {"x": state})


def stuck_by_hand(states: list[int]) -> int:
    """Count by looking back at every eighth state."""
    sampled = states[7::8]
    runs, run = [], 0
    for index, state in enumerate(sampled):
        run = run + 1 if state in sampled[:index] else 0
        runs.append(run)
    ends = [run for run, following in zip(runs, [*runs[1:], 0], strict=False) if not following]
    return sum(8 * run for run in ends if 8 * run >= STUCK_AFTER_TIMESTEPS)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 400)), max_size=12))
def test_timesteps_without_a_new_state_are_counted(parts: list[tuple[int, int]]) -> None:
    states = [state for state, n in parts for _ in range(n)]
    guard = RepetitionGuard(GAME)
    guard.reset(moment({}))
    play(guard, states)
    assert guard.stuck_timesteps == stuck_by_hand(states)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 200)), min_size=1, max_size=9),
    st.integers(0, 1000),
)
def test_a_guard_that_was_saved_and_loaded_counts_on(
    parts: list[tuple[int, int]], saved_after: int
) -> None:
    states = [state for state, n in parts for _ in range(n)]
    cut = saved_after % len(states)
    whole, first, second = (RepetitionGuard(GAME) for _ in range(3))
    play(whole, states)
    play(first, states[:cut])
    second.load_state(json.loads(json.dumps(first.save_state())), moment({}))
    play(second, states[cut:], begins_at=cut + 1)
    assert second.save_state() == whole.save_state()


def test_a_loop_of_many_states_is_found_and_a_walk_is_not() -> None:
    loop, walk = RepetitionGuard(GAME), RepetitionGuard(GAME)
    play(loop, [n % 100 for n in range(2_000)])
    play(walk, list(range(2_000)))
    assert loop.stuck_timesteps > 1_000
    assert walk.stuck_timesteps == 0


def test_the_games_random_numbers_are_no_part_of_its_state() -> None:
    guard = RepetitionGuard(GAME)
    for timestep in range(1, 600):
        look(guard, timestep, {"x": 1, "seed": timestep})
    assert guard.stuck_timesteps > 0


def test_a_term_that_is_earned_in_the_same_states_again_is_looped() -> None:
    guard = RepetitionGuard(GAME)
    for timestep in range(1, 401):
        there = timestep % 10 == 0
        gained = ["alive", *["back_and_forth", "way"] * there]
        values = {"x": timestep % 20, "result": 0, "a_clock_of_a_part": timestep}
        look(guard, timestep, values, gained)
    assert guard.looped_terms == {"back_and_forth": 38 / 40, "way": 38 / 40}


def test_a_term_that_is_earned_on_the_way_is_not_looped_nor_one_earned_rarely() -> None:
    guard = RepetitionGuard(GAME)
    for timestep in range(1, 401):
        gained = ["rare"] * (timestep in {50, 51, 100}) + ["way"] * (timestep % 10 == 0)
        look(guard, timestep, {"x": timestep}, gained)
    assert guard.looped_terms == {"way": 0.0}


def test_an_env_counts_on_after_a_state_was_loaded() -> None:
    limit = 2 * STUCK_AFTER_TIMESTEPS
    with closing(fake_env(max_episode_timesteps=limit)) as env:
        env.reset(seed=0)
        for _ in range(limit - 100):
            env.step(0)
        state = EnvState.model_validate_json(env.save_state().model_dump_json())
        first = [env.step(0)[4] for _ in range(100)][-1]
        env.load_state(state)
        assert [env.step(0)[4] for _ in range(100)][-1] == first
    assert "stuck_timesteps" in first
