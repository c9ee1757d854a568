"""Evaluations apart by start state: results, curves, event, table."""

import json
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from game_rl.callbacks.evaluation import Evaluation, evaluate, evaluated_event
from game_rl.cli.play_commands import evaluation_table
from game_rl.events import Evaluated
from game_rl.events.event_log import parse_event

LEVELS = ("level_1", "level_2", "level_3")


class Levels(gymnasium.Env[Any, Any]):
    """Episodes of one to four timesteps in a level that is drawn; keeps a log of its own."""

    observation_space = spaces.Box(0, 1, (1,))
    action_space = spaces.Discrete(2)

    def __init__(self, log: list[tuple[str, float, bool]], *, tells: bool = True) -> None:
        self._log, self._tells = log, tells

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._level = str(self.np_random.choice(LEVELS))
        self._left = int(self.np_random.integers(1, 5))
        self._return = 0.0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._left -= 1 + int(action)
        reward = float(self.np_random.integers(-3, 4))
        self._return += reward
        done = self._left <= 0
        info: dict[str, Any] = {}
        if done:
            success = bool(self.np_random.random() < 0.5)
            self._log.append((self._level, self._return, success))
            info = {"is_success": success}
            if self._tells:
                info["start_state"] = self._level
        return np.zeros(1, np.float32), reward, done, False, info


class Still:
    def predict(self, observation: Any, *_: Any, **_more: Any) -> tuple[Any, None]:
        return np.zeros(len(observation), int), None


def played(episodes: int = 40, **env: Any) -> tuple[Evaluation, list[tuple[str, float, bool]]]:
    """An evaluation on one env, whose episodes all count, and the env's log."""
    log: list[tuple[str, float, bool]] = []
    vec_env = VecMonitor(DummyVecEnv([lambda: Levels(log, **env)]))
    found = evaluate(Still(), vec_env, episodes=episodes, deterministic=True, seed=3)
    return found, log


def test_each_start_state_has_the_episodes_that_began_there() -> None:
    found, log = played()
    apart = found.by_start_state
    assert apart is not None
    assert tuple(apart) == LEVELS
    for level in LEVELS:
        rewards = [reward for name, reward, _ in log if name == level]
        assert apart[level].episodes == len(rewards)
        assert apart[level].successes == sum(won for name, _, won in log if name == level)
        assert apart[level].mean_reward == pytest.approx(np.mean(rewards))


def test_an_env_that_does_not_tell_has_none() -> None:
    assert played(tells=False)[0].by_start_state is None
    assert played()[0].rewards == played(tells=False)[0].rewards


EPISODES = st.lists(
    st.tuples(st.sampled_from(["", "a", "b"]), st.integers(-5, 5), st.booleans()), min_size=1
)


@given(EPISODES, st.booleans())
def test_the_parts_add_up_to_the_whole(
    episodes: list[tuple[str, int, bool]], has_success: bool
) -> None:
    names, rewards, successes = zip(*episodes, strict=True)
    evaluation = Evaluation(
        deterministic=True,
        rewards=tuple(map(float, rewards)),
        lengths=(1,) * len(rewards),
        successes=successes if has_success else (),
        start_states=names,
        seconds=0.0,
    )
    apart = evaluation.by_start_state
    known = {name for name in names if name}
    if len(known) < 2:
        assert apart is None
        return
    assert apart is not None
    assert set(apart) == known
    assert sum(each.episodes for each in apart.values()) == len([n for n in names if n])
    told = [reward for name, reward, _ in episodes if name]
    total = sum(each.mean_reward * each.episodes for each in apart.values())
    assert total == pytest.approx(sum(told))
    if not has_success:
        assert all(each.successes is None for each in apart.values())
    else:
        wins = [won for name, _, won in episodes if name]
        assert sum(each.successes or 0 for each in apart.values()) == sum(wins)


def test_the_event_comes_back_from_its_line() -> None:
    evaluation, _ = played()
    event = evaluated_event(evaluation, timesteps=100, policy_timesteps=100)
    found = parse_event(event.model_dump_json(exclude_none=True))
    assert isinstance(found, Evaluated)
    assert found.by_start_state == evaluation.by_start_state
    old = json.loads(event.model_dump_json(exclude_none=True))
    del old["by_start_state"]  # as before there was such a key
    found = parse_event(json.dumps(old))
    assert isinstance(found, Evaluated)
    assert found.by_start_state is None


def test_the_table_has_a_row_for_each() -> None:
    evaluation, _ = played()
    apart = evaluation.by_start_state
    assert apart is not None
    console = Console(width=100, record=True)
    console.print(evaluation_table(evaluation, "best policy"))
    text = console.export_text()
    assert "best policy, deterministic" in text
    for name, result in apart.items():
        (line,) = [line for line in text.splitlines() if name in line]
        assert f"{result.success_rate:.0%}" in line
        assert f" {result.episodes} " in line
    assert evaluation.to_json()["by_start_state"] == {
        name: {
            "episodes": r.episodes,
            "mean_reward": r.mean_reward,
            "success_rate": r.success_rate,
        }
        for name, r in apart.items()
    }
